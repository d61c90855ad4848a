package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// Look says what is there, through links too, opens nothing and leads nowhere else.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	for _, made := range []string{"docs", "docs/deep"} {
		if err := os.Mkdir(filepath.Join(dir, made), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, made := range []string{"docs/plan.md", ".env"} {
		if err := os.WriteFile(filepath.Join(dir, made), []byte("x"), 0o000); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"plan": "docs/plan.md", "out": "/etc", "gone": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]struct {
		clean string
		dir   bool
	}{
		"docs/plan.md": {"docs/plan.md", false}, "./docs//deep/": {"docs/deep", true}, ".": {".", true}, "plan": {"plan", false}, ".env": {".env", false},
		dir + "/docs": {"docs", true},
	} {
		if clean, is, err := root.Look(name); err != nil || clean != want.clean || is != want.dir {
			t.Errorf("%s is %q, a directory: %v, %v", name, clean, is, err)
		}
	}
	for name, want := range map[string]regie.Code{
		"nothing": regie.CodeFileNotFound, "gone": regie.CodeFileNotFound, "out/passwd": regie.CodePathOutside, "../x": regie.CodePathOutside, "": regie.CodePathInvalid,
		"docs/plan.md/x": regie.CodeNotADirectory,
	} {
		if clean, _, err := root.Look(name); regie.CodeOf(err) != want {
			t.Errorf("%q is %q, %v; want %s", name, clean, err, want)
		}
	}
}
