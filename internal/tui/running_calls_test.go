package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/i18n"
)

// TestPlanWindow has the step that is worked on be seen, whatever the plan's length and the room.
func TestPlanWindow(t *testing.T) {
	m := &model{Conversation: &chat.Conversation{Config: chat.Config{Text: i18n.New("en")}, Round: regie.NewID(), State: regie.SessionActive}}
	m.screen.width = 60
	for _, c := range []struct{ steps, active, most, calls int }{{20, 13, 8, 0}, {20, 13, 8, 9}, {20, 0, 5, 1}, {20, 19, 5, 1}, {20, 13, 2, 3}, {3, 1, 10, 2}, {20, -1, 6, 0}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := work{}
			for i := range c.steps {
				status := "pending"
				switch {
				case c.active < 0 || i < c.active:
					status = "done"
				case i == c.active:
					status = "active"
				}
				w.plan = append(w.plan, chat.Step{Text: fmt.Sprintf("step %d.", i), Status: status})
			}
			for i := range c.calls {
				w.running = append(w.running, running{tool: fmt.Sprintf("tool.number%d", i)})
			}
			var lines []string
			for _, line := range w.renderLines(m, c.most) {
				lines = append(lines, paintLine(line, false))
			}
			out := strings.Join(lines, "\n")
			if len(lines) > c.most || c.active >= 0 && !strings.Contains(out, fmt.Sprintf("▸ step %d.", c.active)) {
				t.Errorf("%d lines of %d:\n%s", len(lines), c.most, out)
			}
		})
	}
}

// TestProgressBar has a line that a program writes again and again be seen as it stands.
func TestProgressBar(t *testing.T) {
	m := &model{Conversation: &chat.Conversation{Config: chat.Config{Text: i18n.New("en")}, Round: regie.NewID(), State: regie.SessionActive}}
	m.screen.width = 60
	w := work{running: []running{{tool: "shell.shell_exec", tail: "begin\r\n1 of 8\r2 of 8\r\x1b[1m3 of 8\r"}}}
	var out []string
	for _, line := range w.renderLines(m, 10) {
		out = append(out, paintLine(line, false))
	}
	if got := ansi.Strip(strings.Join(out, "\n")); got != "  ⋯ shell.shell_exec\n    │ begin\n    │ 3 of 8" {
		t.Errorf("%q", got)
	}
}
