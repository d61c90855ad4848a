package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/i18n"
)

// TestNarrow: what is printed fits in the terminal as narrow as it is, and a line of a diff that
// goes on keeps its bar.
func TestNarrow(t *testing.T) {
	for width := narrow; width < 45; width++ {
		a := calls("some/dir/file.txt")
		a.Asked.Reviews[0].Preview.Diff = "--- /dev/null\n+++ some/dir/file.txt\n+hello world, this is a long line\n"
		a.Asked.Reviews[0].Preview.Warnings = []regie.Sentence{regie.Say("the directory docs is made")}
		m := opened(t, a, width)
		m.Note("  ✓ files.write_file some/dir/file.txt 0.4 ms  [1]")
		m.paper.addReply(m.paper.addPiece("Some words here.\n\n- one item of a list\n  1. and another\n\n> quoted words\n\n```sh\nls -la there\n```\n\n| a | b | c |\n|---|---|---|\n| one | two | three |\n\n# Head\n"))
		m.paper.flushReply()
		rows := strings.Split(scrollback(m), "\n")
		diff := false
		for _, row := range rows {
			if n := ansi.StringWidth(row); n > width {
				t.Errorf("at %d columns %q is printed, which has %d", width, row, n)
			}
			bar := strings.HasPrefix(strings.TrimSpace(row), "│")
			if strings.Contains(row, "+hel") {
				diff = true
			}
			if diff && !bar && strings.Contains(row, "world") {
				t.Errorf("at %d columns a line of a diff goes on as %q", width, row)
			}
		}
	}
}

// TestLiveLine: a line that streams in is shown with its end, however wide the terminal is.
func TestLiveLine(t *testing.T) {
	for width := 20; width < 100; width++ {
		m := newModel(t.Context(), Config{Config: chat.Config{Text: i18n.New("en")}})
		m.handleMessage(tea.WindowSizeMsg{Width: width, Height: 60})
		var words []string
		for i := range 40 {
			words = append(words, fmt.Sprintf("word%d", i))
		}
		m.paper.addReply(m.paper.addPiece(strings.Join(words, " ")))
		view := ansi.Strip(m.View().Content)
		for _, word := range words {
			if !strings.Contains(view+" ", word) {
				t.Errorf("at %d columns %s is not seen:\n%s", width, word, view)
				break
			}
		}
	}
}
