package chat

import (
	"fmt"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// Calls lists the calls of an approval, one sentence each, so that a person sees every call before
// answering.
func (p *Page) Calls(a *regie.Approval) {
	var lines []string
	for i := range a.Reviews {
		if review := &a.Reviews[i]; review.Decision == nil {
			lines = append(lines, fmt.Sprintf("%3d  %s", i+1, sanitize.Line(p.Text.Sentence(review.Preview.Sentence))))
		}
	}
	if len(a.Reviews) < 2 || len(lines) == 0 {
		return
	}
	p.writeLine(p.Text.T("it asks about %d calls:", len(lines)))
	for _, line := range lines {
		p.writeLine(line)
	}
}

func (p *Page) callNumber(a *regie.Approval, i int) {
	if len(a.Reviews) > 1 {
		p.writeLine(p.Text.T("call %d of %d:", i+1, len(a.Reviews)))
	}
}

// Edited writes what a call would do with the edited arguments, and reports whether its diff was
// shortened.
func (p *Page) Edited(number int, edited *regie.Review) (cut bool) {
	p.writeNote(p.Text.T("with your arguments, this is what would run:"))
	p.Review(number, edited)
	return p.Diff(edited, shownLines)
}

// ShownEdit returns the part of a request that names the edited call the person has seen.
func ShownEdit(edited *regie.Review) []dispatch.ShownEdit {
	if edited == nil {
		return nil
	}
	return []dispatch.ShownEdit{{CallID: edited.CallID, Preconditions: edited.Preview.Preconditions}}
}
