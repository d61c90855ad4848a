package chat

import (
	"context"
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

// all asks once more before all that are left are allowed, where the person had not been shown each
// of them whole.
func (a *Asker) all(ctx context.Context, asked *regie.Approval, decisions []regie.Decision) (agreed bool, err error) {
	t := a.Page.Text
	return a.onceMore(ctx, asked, decisions, t.T("[Y] again allows these %d calls  [b] back", len(decisions)),
		t.T("Y allows all of them; b goes back, and nothing is decided"), func(word string) bool { return word == "Y" })
}

// along asks once more before an answer for longer allows calls of the same approval with it that
// the person had not been shown whole.
func (a *Asker) along(ctx context.Context, asked *regie.Approval, i int, scope *regie.Scope) (agreed bool, err error) {
	more, numbers := Covered(asked, i+1, scope)
	t := a.Page.Text
	return a.onceMore(ctx, asked, more, t.T("it allows the calls %s with it: [y] yes  [b] back",
		strings.Join(numbers, ", ")),
		t.T("y allows them with this one; b goes back, and nothing is decided"), agrees)
}

// onceMore shows what of some calls the person has not been shown, and asks whether they are
// allowed. A no goes back: they are asked about the call again.
func (a *Asker) onceMore(ctx context.Context, asked *regie.Approval, calls []regie.Decision, prompt, help string,
	agrees func(word string) bool,
) (agreed bool, err error) {
	some := a.seen.Show(a.Page, asked, calls)
	cut := len(a.seen.Cut(asked, calls)) > 0
	if !some && !cut {
		return true, nil
	}
	if cut {
		prompt += "  " + a.Page.Text.T("[v] whole diff")
	}
	for {
		word, err := a.Next(ctx, prompt+" > ")
		if err != nil {
			return false, err
		}
		word = strings.TrimSpace(word)
		_, denied := denial(word)
		switch {
		case agrees(word):
			return true, nil
		case denied || word == "b" || word == "l":
			return false, nil
		case word == "v":
			a.seen.Whole(a.Page, asked, calls)
		default:
			a.Page.line("     " + help)
		}
	}
}

// edit has the person change the arguments of a call, and shows what it would do with them; nothing
// is decided by that.
func (a *Asker) edit(ctx context.Context, asked *regie.Approval, i int, e *edited) error {
	review := &asked.Reviews[i]
	shown := !e.asProposed()
	draft, err := Edit(ctx, a.Edit, review.Arguments, e.draft)
	*e = edited{draft: draft}
	if err == nil {
		return a.preview(ctx, asked, i, e)
	}
	a.Page.line("     " + a.Page.Text.Error(err))
	switch {
	case regie.CodeOf(err) != regie.CodeConflict && len(draft) > 0:
		e.refused = true
	case shown: // it is as it was proposed again
		a.Page.Call(asked, i, a.seen)
	}
	return nil
}

// preview shows what a call would do with the arguments that the person has written.
func (a *Asker) preview(ctx context.Context, asked *regie.Approval, i int, e *edited) error {
	found, err := a.Control.Review(ctx, dispatch.DecideRequest{
		ApprovalID: asked.ID,
		Decisions:  []regie.Decision{e.decision(asked.Reviews[i].CallID)},
	})
	switch {
	case err != nil:
		e.review, e.refused = nil, true
		return a.told(ctx, err)
	case len(found.Reviews) == 1:
		e.review = &found.Reviews[0]
		e.cut = a.Page.Edited(i+1, e.review)
	}
	return nil
}

// edited is a call with the arguments that the person has written, as it would run; review is nil
// where there is none.
type edited struct {
	draft  []byte
	review *regie.Review
	cut    bool
	// refused says that it cannot run as it is written. It is not asked about as it was proposed
	// before the person wants that: they have corrected it.
	refused bool
}

// asProposed reports whether a call is asked about as it was proposed.
func (e *edited) asProposed() bool { return e.review == nil && !e.refused }

// decision allows the call with the arguments that the person has written.
func (e *edited) decision(call regie.ID) regie.Decision {
	return regie.Decision{CallID: call, Answer: regie.AnswerAllow, Arguments: e.draft}
}

// ShownEdit is what a request says of an edited call that the person has been shown.
func ShownEdit(edited *regie.Review) []dispatch.ShownEdit {
	if edited == nil {
		return nil
	}
	return []dispatch.ShownEdit{{CallID: edited.CallID, Preconditions: edited.Preview.Preconditions}}
}
