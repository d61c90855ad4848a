package chat

import (
	"fmt"
	"strings"

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

// agreesToAll asks once more before all that are left are allowed, where the person had not been
// shown each of them whole.
func (h *lineHost) agreesToAll(left []regie.Decision) bool {
	t := h.Page.Text
	return h.onceMore(left, t.T("[Y] again allows these %d calls  [b] back", len(left)),
		t.T("Y allows all of them; b goes back, and nothing is decided"), func(word string) bool { return word == "Y" })
}

// agreesAlong asks once more before an answer for longer allows calls of the same approval with it
// that the person had not been shown whole.
func (h *lineHost) agreesAlong(scope *regie.Scope) bool {
	more, numbers := Covered(&h.Asked, h.At+1, scope)
	t := h.Page.Text
	return h.onceMore(more, t.T("it allows the calls %s with it: [y] yes  [b] back", strings.Join(numbers, ", ")),
		t.T("y allows them with this one; b goes back, and nothing is decided"), agrees)
}

// onceMore shows what of some calls the person has not been shown, and asks whether they are
// allowed. A no goes back: they are asked about the call again.
func (h *lineHost) onceMore(calls []regie.Decision, prompt, help string, agrees func(word string) bool) bool {
	some := h.Seen.Show(h.Page, &h.Asked, calls)
	cut := len(h.Seen.Cut(&h.Asked, calls)) > 0
	if !some && !cut {
		return true
	}
	if cut {
		prompt += "  " + h.Page.Text.T("[v] whole diff")
	}
	for {
		word := h.next(prompt + " > ")
		_, denied := denial(word)
		switch {
		case h.err != nil, denied, word == "b", word == "l":
			return false
		case agrees(word):
			return true
		case word == "v":
			h.Seen.Whole(h.Page, &h.Asked, calls)
		default:
			h.Hint(help)
		}
	}
}

// ShownEdit is what a request says of an edited call that the person has been shown.
func ShownEdit(edited *regie.Review) []dispatch.ShownEdit {
	if edited == nil {
		return nil
	}
	return []dispatch.ShownEdit{{CallID: edited.CallID, Preconditions: edited.Preview.Preconditions}}
}
