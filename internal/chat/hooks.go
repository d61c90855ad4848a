package chat

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// hookLine tells what a hook objected to, or that it could not be heard; nothing where it let
// things pass.
func hookLine(t *text.Printer, h *regie.HookRun) string {
	about := h.Tool
	if about == "" {
		about = string(h.On)
	}
	switch {
	case h.Verdict != "" || !h.Failure.IsZero():
		return "  ! " + plain.Line(t.T("%s: %s", about, t.Sentence(h.Objection())))
	default:
		return ""
	}
}

// HookLines are all that a message tells of hooks, those that let things pass too: for who looks at
// a run.
func HookLines(t *text.Printer, m *regie.Message) (lines []string) {
	notice, _ := m.ToolNotice()
	for i := range notice.Hooks {
		h := &notice.Hooks[i]
		if line := hookLine(t, h); line != "" {
			lines = append(lines, line)
			continue
		}
		took := time.Duration(h.DurationUS * int64(time.Microsecond)).Round(time.Millisecond)
		lines = append(lines, "  · "+plain.Line(t.T("the hook %s (%s %s) has run in %s", h.Hook,
			string(h.On), h.Tool, took)))
	}
	return lines
}
