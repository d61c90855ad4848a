package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// TestDocument reads a text at the top in whatever it is written, through a link that stays inside,
// and says of all else why it does not: a link could bring a secret into every prompt.
func TestDocument(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		".env": "SECRET=1", "A.md": "ways", "long.md": strings.Repeat("x", 101), "exact.md": strings.Repeat("x", 100), "rune.md": strings.Repeat("x", 99) + "é",
		"mark.md": "\uFEFFways", "latin.md": "les fa\xe7ons de faire", "binary.md": "\x7fELF\x00\x01\x02",
		"odd.md": "\xff\xfea", "random.md": strings.Repeat("\x81\xfe\x93", 50), "empty.md": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"link.md": "A.md", "chain.md": "link.md", "secret.md": ".env", "out.md": "/etc/passwd", "up.md": "../x.md", "nowhere.md": "none.md", "loop.md": "loop.md", "dirlink.md": "dir.md",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]struct {
		document workspace.Document
		code     regie.Code
		text     string
	}{
		"A.md": {text: "ways"}, "long.md": {text: strings.Repeat("x", 100), document: workspace.Document{More: true}}, "exact.md": {text: strings.Repeat("x", 100)},
		"rune.md": {text: strings.Repeat("x", 99), document: workspace.Document{More: true}}, "mark.md": {text: "ways"}, "empty.md": {}, "none.md": {},
		"latin.md": {text: "les fa\uFFFDons de faire", document: workspace.Document{Repaired: true}},
		"link.md":  {text: "ways"}, "chain.md": {text: "ways"},
		"binary.md": {code: regie.CodeNotText}, "odd.md": {code: regie.CodeNotText}, "random.md": {code: regie.CodeNotText},
		"secret.md": {code: regie.CodePathProtected}, "out.md": {code: regie.CodePathOutside}, "up.md": {code: regie.CodePathOutside},
		"nowhere.md": {code: regie.CodeFileNotFound}, "dir.md": {code: regie.CodeNotAFile}, "dirlink.md": {code: regie.CodeNotAFile}, "fifo.md": {code: regie.CodeSpecialFile},
	} {
		got, err := root.Document(name, 100)
		if regie.CodeOf(err) != want.code || string(got.Text) != want.text || got.More != want.document.More || got.Repaired != want.document.Repaired {
			t.Errorf("%s: %.40q, more %v, repaired %v, %v", name, got.Text, got.More, got.Repaired, err)
		}
	}
	if got, err := root.Document("loop.md", 100); err == nil {
		t.Errorf("a loop: %q", got.Text)
	}
}
