package tui

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
)

// completing is a model in a workspace that holds files.
func completing(t *testing.T, files ...string) *model {
	t.Helper()
	c := engine(t, nil)
	if _, err := c.Control.Workspaces.Open(t.Context(), dispatch.WorkspaceRequest{Path: c.Request.Root, Here: true}); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		path := filepath.Join(c.Request.Root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.Look = app.Look(c.Request.Root)
	m := newModel(t.Context(), c)
	m.handleMessage(tea.WindowSizeMsg{Width: 80, Height: 24})
	return m
}

// offered is what the chat offers for what is typed, once it has looked.
func offered(m *model, typed string) []string {
	m.draft, m.popup = editor{}, popup{}
	for _, r := range typed {
		works(m, m.handleMessage(tea.KeyPressMsg{Code: r, Text: string(r)}))
	}
	out := make([]string, len(m.popup.offers))
	for i, o := range m.popup.offers {
		out[i] = o.insert
	}
	return out
}

// Enter sends what names something as it stands; only where an arrow key has chosen another one, or
// where it names nothing, does it complete.
func TestEnterCompletes(t *testing.T) {
	enter, down, tab := tea.KeyPressMsg{Code: tea.KeyEnter}, tea.KeyPressMsg{Code: tea.KeyDown}, tea.KeyPressMsg{Code: tea.KeyTab}
	for name, row := range map[string]struct {
		typed string
		keys  []tea.Msg
		then  string // what stands in the prompt; "" where it was sent
	}{
		"a file":            {"read @note.txt", []tea.Msg{enter}, ""},
		"and an end":        {"read @note.txt.", []tea.Msg{enter}, ""},
		"a directory":       {"sum up @src/", []tea.Msg{enter}, ""},
		"chosen":            {"read @note.txt", []tea.Msg{down, enter}, "read @note.txt.bak "},
		"tab":               {"sum up @src/", []tea.Msg{tab}, "sum up @src/main.go "},
		"part of a name":    {"read @foot", []tea.Msg{enter}, "read @footnote.txt "},
		"a command":         {"/help", []tea.Msg{enter}, ""},
		"part of a command": {"/hel", []tea.Msg{enter}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := completing(t, "note.txt", "footnote.txt", "note.txt.bak", "src/main.go")
			offered(m, row.typed)
			for _, key := range row.keys {
				m.handleMessage(key)
			}
			if got := m.draft.fullText(); got != row.then {
				t.Errorf("the prompt holds %q", got)
			}
		})
	}
}

// A name is offered in whatever capitals it is asked for.
func TestCompletesInAnyCase(t *testing.T) {
	m := completing(t, "README.md", "deep/sub/Zebra.txt", "éclair.txt")
	for typed, want := range map[string]string{"@readme": "@README.md", "@zebra": "@deep/sub/Zebra.txt", "@ZEB": "@deep/sub/Zebra.txt", "@É": "@éclair.txt", "@deep/sub/z": "@deep/sub/Zebra.txt"} {
		if got := offered(m, typed); !slices.Contains(got, want) {
			t.Errorf("%s: offered %q, want %s", typed, got, want)
		}
	}
}
