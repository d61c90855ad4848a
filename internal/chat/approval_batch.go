package chat

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Batch is an approval as it is put to a person: call by call.
type Batch struct {
	Control Control
	Page    *Page
	Host    BatchHost
	Asked   regie.Approval
	At      int  // the call that is asked about
	Seen    Seen // the calls that were shown
	Edit    EditedCall
	Busy    bool // an answer is on its way
	covers  bool // that follows from an answer for longer
}

// BatchHost is the terminal that puts a Batch to the person.
type BatchHost interface {
	Do(order Order, work Work)
	ShowError(err error)
	// Hint says why a key does nothing.
	Hint(line string)
	// Asking reports whether the batch is still what the person is asked. Reread has them read what
	// was just written before they answer.
	Asking() bool
	Reread()
	// Moved says that another call is asked about, Closed that nothing is left to be asked.
	Moved()
	Closed()
	// Decided shows what the person decided. Elsewhere shows what somebody else did, by answer, and
	// reports whether it has.
	Decided(decisions []regie.Decision)
	Elsewhere(decisions [][]regie.Decision) bool
}

// EditedCall is a call with the arguments that the person has written, as it would run; Review is
// nil where there is none.
type EditedCall struct {
	Draft  []byte
	Review *regie.Review
	Cut    bool // its diff was shortened
	// Refused says that it cannot run as it is written. It is not asked about as it was proposed
	// before the person wants that: they have corrected it.
	Refused bool
}

// AsProposed reports whether a call is asked about as it was proposed.
func (e *EditedCall) AsProposed() bool { return e.Review == nil && !e.Refused }

// Review is the call that is asked about.
func (b *Batch) Review() *regie.Review { return &b.Asked.Reviews[b.At] }

// Over reports whether nobody is to be asked any more.
func (b *Batch) Over() bool {
	return b.At >= len(b.Asked.Reviews) || b.Asked.State != regie.ApprovalOpen
}

// Left are the calls that nobody has decided, from the one that is asked about on.
func (b *Batch) Left() []regie.Decision { return Undecided(&b.Asked, b.At) }

// Begin shows the head, with the calls, and reports whether it has not room for all of them. The
// first call is asked about.
func (b *Batch) Begin() (more bool) {
	b.Seen = Seen{}
	b.Page.ApprovalHead(&b.Asked)
	more = b.Page.Calls(&b.Asked, ListedCalls)
	b.At = -1
	b.advance()
	return more
}

// Show writes the call that is asked about as it was proposed.
func (b *Batch) Show() { b.Page.Call(&b.Asked, b.At, b.Seen) }

// ShowDiff writes its diff whole, as it is asked about.
func (b *Batch) ShowDiff() {
	switch {
	case b.Edit.Review != nil:
		b.Page.Diff(b.Edit.Review, 0)
	case !b.Edit.Refused:
		b.Page.Diff(b.Review(), 0)
	}
}

// Propose asks about the call as it was proposed again.
func (b *Batch) Propose() {
	b.Edit = EditedCall{Draft: b.Edit.Draft}
	b.Show()
	b.Host.Reread()
}

// advance goes to the next call that nobody has decided, or closes.
func (b *Batch) advance() {
	b.Edit, b.Busy = EditedCall{}, false
	b.At++
	for b.At < len(b.Asked.Reviews) && b.Review().Decision != nil {
		b.At++
	}
	if b.Over() {
		b.Host.Closed()
	} else {
		b.Host.Moved()
	}
}

// Allow allows the call once, as it is asked about.
func (b *Batch) Allow() {
	decision := regie.Decision{CallID: b.Review().CallID, Answer: regie.AnswerAllow}
	switch {
	case b.Edit.Refused:
		b.Host.Hint(b.Page.Text.T("it cannot run as you have edited it: e edits it again, b is as it was proposed"))
		return
	case b.Edit.Review != nil:
		decision.Arguments = b.Edit.Draft
	}
	b.Decide([]regie.Decision{decision})
}

// Deny denies the call; DenyLeft all that are left.
func (b *Batch) Deny(reason string) {
	b.Decide([]regie.Decision{{CallID: b.Review().CallID, Answer: regie.AnswerDeny, Reason: reason}})
}

// DenyLeft denies all calls that are left.
func (b *Batch) DenyLeft() {
	left := b.Left()
	AnswerAll(left, regie.AnswerDeny, "")
	b.Decide(left)
}

// HasScopes reports whether an answer for longer can cover the call, and else says so.
func (b *Batch) HasScopes() bool {
	has := len(b.Review().Preview.Scopes) > 0
	if !has {
		b.Host.Hint(b.Page.Text.T("this call can only be allowed once: its tool proposes nothing wider"))
	}
	return has
}

// Decide stores decisions, one of them on an edited call as it was shown.
func (b *Batch) Decide(decisions []regie.Decision) {
	b.Busy = true
	in := dispatch.DecideRequest{
		ApprovalID: b.Asked.ID, Request: regie.NewID().String(), Decisions: decisions, Shown: ShownEdit(b.Edit.Review),
	}
	b.Host.Do(Held, func(ctx context.Context) func() {
		_, err := b.Control.Decide(ctx, in)
		return func() {
			if b.Busy = false; err != nil {
				b.refused(decisions, err)
			} else {
				b.decided(decisions)
			}
		}
	})
}

func (b *Batch) decided(decisions []regie.Decision) {
	for i := range decisions {
		reviewed(&b.Asked, decisions[i].CallID).Decision = &decisions[i]
	}
	if !b.covers {
		b.Host.Decided(decisions)
	}
	more, numbers := Covered(&b.Asked, b.At+1, decisions[0].Scope)
	if b.covers = len(more) > 0; b.covers {
		b.Page.line("     " + b.Page.Text.T("that covers, and allows, the calls %s", strings.Join(numbers, ", ")))
		b.Decide(more)
	} else if b.Host.Asking() {
		b.advance()
	}
}

// refused takes in why decisions were not stored.
func (b *Batch) refused(decisions []regie.Decision, err error) {
	code := regie.CodeOf(err)
	if code == regie.CodeConflict { // somebody else has answered, this call or another one
		b.again(err)
		return
	}
	b.Host.ShowError(err)
	switch {
	case code == regie.CodeExpired, code == regie.CodeNotFound:
		b.At = len(b.Asked.Reviews)
		b.Host.Closed()
	case code == regie.CodeStalePreview: // what it was shown on is otherwise by now
		b.preview()
	case len(decisions[0].Arguments) > 0:
		b.refuse()
	}
}

// refuse has the person say what is to become of a call that cannot run as they have written it.
func (b *Batch) refuse() {
	b.Edit.Review, b.Edit.Refused = nil, true
	b.Host.Reread()
}

// Edited takes what the person has written in place of the arguments, and shows what the call would
// do then; nothing is decided by that.
func (b *Batch) Edited(draft []byte, err error) {
	shown := !b.Edit.AsProposed()
	b.Edit, b.Busy = EditedCall{Draft: draft}, false
	if err == nil {
		b.preview()
		return
	}
	b.Host.ShowError(err)
	switch {
	case regie.CodeOf(err) != regie.CodeConflict && len(draft) > 0:
		b.Edit.Refused = true
	case shown: // it is as it was proposed again
		b.Show()
	}
	b.Host.Reread()
}

// preview shows what the call would do with the arguments that the person has written: nothing runs
// that was not shown (decision 20).
func (b *Batch) preview() {
	b.Busy = true
	number := b.At + 1
	in := dispatch.DecideRequest{ApprovalID: b.Asked.ID, Decisions: []regie.Decision{
		{CallID: b.Review().CallID, Answer: regie.AnswerAllow, Arguments: b.Edit.Draft},
	}}
	b.Host.Do(Held, func(ctx context.Context) func() {
		found, err := b.Control.Review(ctx, in)
		return func() {
			b.Busy, b.Edit.Review = false, nil
			switch {
			case regie.CodeOf(err) == regie.CodeConflict:
				b.again(err)
			case err != nil:
				b.Host.ShowError(err)
				b.refuse()
			case b.Host.Asking() && len(found.Reviews) == 1:
				b.Edit.Review = &found.Reviews[0]
				b.Edit.Cut = b.Page.Edited(number, b.Edit.Review)
				b.Host.Reread()
			}
		}
	})
}

// again reads the approval, where a decision was refused because somebody else had decided: who did
// is told, or else why it was.
func (b *Batch) again(why error) {
	b.Host.Do(Beside, func(ctx context.Context) func() {
		inbox, err := b.Control.Inbox(ctx, store.InboxFilter{ID: b.Asked.ID})
		return func() {
			switch {
			case err != nil:
				b.Host.ShowError(why)
			case b.Host.Asking() && !b.Busy:
				b.Take(inbox.Approvals, why)
			}
		}
	})
}

// Take takes the approval as it is now; none: it is gone.
func (b *Batch) Take(now []regie.Approval, why error) {
	var decided []regie.Decision
	state := regie.ApprovalWithdrawn
	for i := range now {
		state = now[i].State
		for _, review := range now[i].Reviews {
			if review.Decision != nil {
				decided = append(decided, *review.Decision)
			}
		}
	}
	b.adopt(decided, state, why)
}

// Heard takes in what the log says that others have decided.
func (b *Batch) Heard(body json.RawMessage) {
	var event struct {
		ID    regie.ID            `json:"approval_id"`
		State regie.ApprovalState `json:"state"`
		Calls []regie.Decision    `json:"calls"`
	}
	if json.Unmarshal(body, &event) == nil && event.ID == b.Asked.ID && !b.Busy {
		b.adopt(event.Calls, event.State, nil)
	}
}

// adopt goes on where others have decided, or tells why there is nothing new.
func (b *Batch) adopt(decisions []regie.Decision, state regie.ApprovalState, why error) {
	if !b.Host.Elsewhere(b.news(decisions)) {
		b.Host.ShowError(why)
	}
	b.Asked.State = state
	switch {
	case b.Over():
		b.Host.Closed()
	case b.Review().Decision != nil:
		b.advance()
	}
}

// news takes in decisions of others, and returns those that were not known, by their answers.
func (b *Batch) news(decisions []regie.Decision) (out [][]regie.Decision) {
	for _, answer := range []regie.Answer{
		regie.AnswerAllow, regie.AnswerSession, regie.AnswerAlways, regie.AnswerDeny,
	} {
		var some []regie.Decision
		for i := range decisions {
			d := &decisions[i]
			if review := reviewed(&b.Asked, d.CallID); d.Answer == answer && review.Decision == nil {
				review.Decision = d
				some = append(some, *d)
			}
		}
		if len(some) > 0 {
			out = append(out, some)
		}
	}
	return out
}

// Covered are the calls of a batch, from one on, that an answer for longer covers, allowed, with
// their numbers; none for no scope. It was given to be asked no more; what must be asked about in
// spite of it stays (decision 19), and so does what leads through a link out of its reach.
func Covered(asked *regie.Approval, from int, scope *regie.Scope) (decisions []regie.Decision, numbers []string) {
	for i := from; scope != nil && i < len(asked.Reviews); i++ {
		review := &asked.Reviews[i]
		var arguments map[string]any
		if review.Decision != nil || review.Verdict != regie.VerdictAsk ||
			json.Unmarshal(review.Arguments, &arguments) != nil ||
			!scope.Matches(review.Tool, regie.Hash{}, arguments) || !review.Preview.Named(arguments) {
			continue
		}
		decisions = append(decisions, regie.Decision{CallID: review.CallID, Answer: regie.AnswerAllow})
		numbers = append(numbers, strconv.Itoa(i+1))
	}
	return decisions, numbers
}

// reviewed is the review of a call; an empty one where the approval has none.
func reviewed(asked *regie.Approval, call regie.ID) *regie.Review {
	at := slices.IndexFunc(asked.Reviews, func(r regie.Review) bool { return r.CallID == call })
	if at < 0 {
		return &regie.Review{Decision: &regie.Decision{}}
	}
	return &asked.Reviews[at]
}

// Undecided are the calls of an approval from one on that nobody has decided.
func Undecided(asked *regie.Approval, from int) (out []regie.Decision) {
	for i := from; i < len(asked.Reviews); i++ {
		if asked.Reviews[i].Decision == nil {
			out = append(out, regie.Decision{CallID: asked.Reviews[i].CallID})
		}
	}
	return out
}

// AnswerAll gives all of some decisions the same answer.
func AnswerAll(decisions []regie.Decision, answer regie.Answer, reason string) {
	for i := range decisions {
		decisions[i].Answer, decisions[i].Reason = answer, reason
	}
}
