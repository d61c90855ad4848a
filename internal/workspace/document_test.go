package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/workspace"
)

// TestDocument reads a plain file at the top and nothing else: a link could bring a secret into every prompt.
func TestDocument(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{".env": "SECRET=1", "A.md": "ways", "long.md": strings.Repeat("x", 101), "exact.md": strings.Repeat("x", 100)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".env", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]struct {
		text string
		more bool
	}{
		"A.md": {"ways", false}, "long.md": {strings.Repeat("x", 100), true}, "exact.md": {strings.Repeat("x", 100), false},
		"link.md": {}, "dir.md": {}, "none.md": {}, "../" + filepath.Base(dir) + "/A.md": {},
	} {
		if text, more := root.Document(name, 100); string(text) != want.text || more != want.more {
			t.Errorf("%s: %.20q, %v", name, text, more)
		}
	}
}
