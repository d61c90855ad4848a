package chat

import (
	"fmt"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

// ListedCalls is how many calls of an approval its head names; of more, c names all.
const ListedCalls = 20

// Calls names the calls that an approval asks about, one sentence each, so that nobody answers for
// a call that they have not heard of. Where limit is not 0 it names at most so many, and reports
// whether there are more.
func (p *Page) Calls(a *regie.Approval, limit int) (more bool) {
	open := Undecided(a, 0)
	if len(a.Reviews) < 2 || len(open) == 0 {
		return false
	}
	p.line(p.Text.T("it asks about %d calls:", len(open)))
	named := 0
	for i := range a.Reviews {
		review := &a.Reviews[i]
		if review.Decision != nil {
			continue
		}
		if named++; limit > 0 && named > limit {
			p.line("     " + p.Text.T("… and %d more: [c] names all", len(open)-limit))
			return true
		}
		p.line(fmt.Sprintf("%3d  %s", i+1, plain.Line(p.Text.Sentence(review.Preview.Sentence))))
	}
	return false
}

// Call writes one call as a person is asked about it, with its diff, and reports whether that was
// shortened. seen notes it.
func (p *Page) Call(a *regie.Approval, i int, seen Seen) (cut bool) {
	if len(a.Reviews) > 1 {
		p.line(p.Text.T("call %d of %d:", i+1, len(a.Reviews)))
	}
	p.Review(i+1, &a.Reviews[i])
	cut = p.Diff(&a.Reviews[i], shownLines)
	seen[a.Reviews[i].CallID] = cut
	return cut
}

// Edited writes what a call would do with the arguments that the person has written, and reports
// whether its diff was shortened.
func (p *Page) Edited(number int, edited *regie.Review) (cut bool) {
	p.line("     " + p.Text.T("with your arguments, this is what would run:"))
	p.Review(number, edited)
	return p.Diff(edited, shownLines)
}

// Seen are the calls whose preview the person has been shown, and whether its diff was shortened.
type Seen map[regie.ID]bool

// Show writes those of some calls that the person has not been shown, since nothing is allowed that
// was not (decision 20). It reports whether there were any.
func (s Seen) Show(p *Page, a *regie.Approval, decisions []regie.Decision) (some bool) {
	for _, d := range decisions {
		for i := range a.Reviews {
			if _, seen := s[d.CallID]; a.Reviews[i].CallID == d.CallID && !seen {
				p.Call(a, i, s)
				some = true
			}
		}
	}
	return some
}

// Cut are the numbers, from 0, of those of some calls whose diff was shortened.
func (s Seen) Cut(a *regie.Approval, decisions []regie.Decision) (numbers []int) {
	for _, d := range decisions {
		for i := range a.Reviews {
			if a.Reviews[i].CallID == d.CallID && s[d.CallID] {
				numbers = append(numbers, i)
			}
		}
	}
	return numbers
}

// Whole writes the diffs of those of some calls whole that were shortened.
func (s Seen) Whole(p *Page, a *regie.Approval, decisions []regie.Decision) {
	for _, i := range s.Cut(a, decisions) {
		p.line(p.Text.T("call %d of %d:", i+1, len(a.Reviews)))
		p.Diff(&a.Reviews[i], 0)
	}
}

// ShownEdit is what a request says of an edited call that the person has been shown.
func ShownEdit(edited *regie.Review) []dispatch.ShownEdit {
	if edited == nil {
		return nil
	}
	return []dispatch.ShownEdit{{CallID: edited.CallID, Preconditions: edited.Preview.Preconditions}}
}
