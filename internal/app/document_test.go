package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// TestUnreadDocument: what is called AGENTS.md and is no text is not sent, and people and the model
// are told once why; a link to CLAUDE.md is followed.
func TestUnreadDocument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lay        func(root, path string) error
		told, sent string // to people, and in level 2
		never      string
	}{
		"a link": {lay: func(root, path string) error {
			if err := os.WriteFile(filepath.Join(root, "CLAUDE.md"), []byte("Seals are red.\n"), 0o600); err != nil {
				return err
			}
			return os.Symlink("CLAUDE.md", path)
		}, sent: "Seals are red."},
		"a link to a secret": {lay: func(root, path string) error {
			if err := os.WriteFile(filepath.Join(root, ".env"), []byte("KEY=hush\n"), 0o600); err != nil {
				return err
			}
			return os.Symlink(".env", path)
		}, told: "AGENTS.md was not read: it cannot be read (PATH_PROTECTED)", sent: "was not read: it cannot be read (PATH_PROTECTED)", never: "hush"},
		"a directory": {lay: func(_, path string) error { return os.Mkdir(path, 0o700) }, told: "AGENTS.md was not read: it cannot be read (NOT_A_FILE)", sent: "was not read: it cannot be read (NOT_A_FILE)"},
		"bytes": {
			lay:  func(_, path string) error { return os.WriteFile(path, []byte("\x00\x01hush"), 0o600) },
			told: "AGENTS.md was not read: it cannot be read (NOT_TEXT)", sent: "was not read: it cannot be read (NOT_TEXT)", never: "hush",
		},
		"Latin-1": {
			lay: func(_, path string) error {
				return os.WriteFile(path, []byte("des phoques tr\xe8s rouges, s'il vous pla\xeet\n"), 0o600)
			},
			told: "AGENTS.md is not UTF-8", sent: "AGENTS.md is not written in UTF-8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, replyWith("Hm.", call{"a", "files__list_files", `{}`}), replyWith("Done."))
			b := newHarness(t, m)
			fatal(t, c.lay(b.root, filepath.Join(b.root, "AGENTS.md")))
			view := b.run(everything)
			if !strings.Contains(string(m.requests[0]), c.sent) {
				t.Errorf("%q is not in %s", c.sent, m.requests[0])
			}
			if c.never != "" && strings.Contains(string(m.requests[0]), c.never) {
				t.Errorf("%q is in %s", c.never, m.requests[0])
			}
			if told := documents(view); (c.told == "") != (len(told) == 0) || len(told) > 1 || len(told) == 1 && !strings.Contains(told[0].String(), c.told) {
				t.Errorf("people are told %q", told)
			}
		})
	}
}

// documents are what people were told of the workspace's document.
func documents(view store.RoundView) (out []regie.Sentence) {
	for i := range view.Notices {
		if notice, ok := view.Notices[i].ToolNotice(); ok && !notice.Document.IsZero() {
			out = append(out, notice.Document)
		}
	}
	return out
}
