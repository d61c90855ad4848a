package chat

import (
	"cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// hookLine tells what a hook objected to, or that it could not be heard; nothing where it let
// things pass.
func hookLine(t *text.Printer, h *regie.HookRun) string {
	if h.Verdict == "" && h.Failure.IsZero() {
		return ""
	}
	return "  ! " + plain.Line(t.T("%s: %s", cmp.Or(h.Tool, string(h.On)), t.Sentence(h.Objection())))
}
