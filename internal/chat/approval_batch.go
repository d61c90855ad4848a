package chat

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Batch is an approval as it is put to a person: call by call.
type Batch struct {
	Control Control
	Page    *Page
	Host    BatchHost
	Asked   regie.Approval
	At      int // the current call
	Edit    EditedCall
	Busy    bool         // an answer is on its way
	seen    map[int]bool // the calls that were shown, and whether a diff was shortened
	whole   bool         // all that are left stand there, and Y once more allows them
	covers  bool         // that follows from an answer for longer
}

// NewBatch returns a Batch that was not begun.
func NewBatch(control Control, page *Page, host BatchHost, asked *regie.Approval) *Batch {
	return &Batch{Control: control, Page: page, Host: host, Asked: *asked, seen: map[int]bool{}}
}

// BatchHost is the terminal that puts a Batch to the person.
type BatchHost interface {
	Do(order Order, work Work)
	ShowError(err error)
	// Asking reports whether the person still sees the batch.
	Asking() bool
	// Changed has them read what was just written before they answer; own says that it follows from
	// their own answer. Another call may be asked about by now, or nothing any more.
	Changed(own bool)
	// EditCall has them write other arguments, AskReason why they say no, AskScope what an answer
	// for longer covers; PutOff leaves the approval in the inbox.
	EditCall()
	AskReason()
	AskScope(answer regie.Answer)
	PutOff(id regie.ID)
}

// EditedCall is a call with arguments that the person edited, and the review of how it would run.
// Review is nil without a valid edit.
type EditedCall struct {
	Draft  []byte
	Review *regie.Review
	Cut    bool // its diff was shortened
	// Refused says that it cannot run as it is written. It is not asked about as it was proposed
	// before the person wants that: they have corrected it.
	Refused bool
}

// AsProposed reports whether the call is unedited.
func (e *EditedCall) AsProposed() bool { return e.Review == nil && !e.Refused }

// Review returns the current call.
func (b *Batch) Review() *regie.Review { return &b.Asked.Reviews[b.At] }

// Over reports whether the batch is decided or its approval is closed.
func (b *Batch) Over() bool {
	return b.At >= len(b.Asked.Reviews) || b.Asked.State != regie.ApprovalOpen
}

// listUndecided returns the undecided calls, from the current one on.
func (b *Batch) listUndecided() (calls []int) {
	for i := b.At; i < len(b.Asked.Reviews); i++ {
		if b.Asked.Reviews[i].Decision == nil {
			calls = append(calls, i)
		}
	}
	return calls
}

// Begin shows the head and the calls, and asks about the first one.
func (b *Batch) Begin() {
	b.Page.ApprovalHead(&b.Asked)
	b.Page.Calls(&b.Asked)
	b.At = -1
	b.askNext(true)
}

// Show writes the current call as proposed.
func (b *Batch) Show() { b.showCall(b.At) }

func (b *Batch) showCall(call int) {
	b.Page.callNumber(&b.Asked, call)
	b.Page.Review(call+1, &b.Asked.Reviews[call])
	b.seen[call] = b.Page.Diff(&b.Asked.Reviews[call], shownLines)
}

// showUnseen writes those of some calls that the person has not been shown, since nothing is
// allowed that was not (decision 20). It reports whether there were any.
func (b *Batch) showUnseen(calls []int) (some bool) {
	for _, call := range calls {
		if _, seen := b.seen[call]; !seen {
			b.showCall(call)
			some = true
		}
	}
	return some
}

// isCut reports whether the diff of one of some calls was shortened.
func (b *Batch) isCut(calls []int) bool {
	return slices.ContainsFunc(calls, func(call int) bool { return b.seen[call] })
}

// showWhole writes the diffs of some calls whole.
func (b *Batch) showWhole(calls []int) {
	for _, call := range calls {
		b.Page.callNumber(&b.Asked, call)
		b.Page.Diff(&b.Asked.Reviews[call], 0)
	}
}

// Keys returns the keys for the current call, as proposed or as edited. Once the person sees all
// calls that are left, the keys answer for all of them.
func (b *Batch) Keys() []Key {
	t, proposed := b.Page.Text, b.Edit.AsProposed()
	noToAll := Key{"N", t.T("[N] no to all"), b.denyLeft}
	if b.whole {
		left := b.listUndecided()
		list := []Key{{"Y", t.T("[Y] again allows these %d calls", len(left)), b.allowLeft}, noToAll}
		if b.isCut(left) {
			list = append(list, Key{"v", t.T("[v] whole diff"), func() { b.showWhole(left) }})
		}
		return append(list, Key{"b esc " + noNames, t.T("[b] back"), func() { b.whole = false }})
	}
	yes, edit := Key{yesNames, t.T("[y] once"), b.allowOnce}, Key{"e", t.T("[e] edit"), b.Host.EditCall}
	shown, cut := b.Edit.Review, b.Edit.Cut
	var list []Key
	switch {
	case b.Edit.Refused:
		edit.Label, yes.Label = t.T("[e] edit again"), ""
		list = []Key{edit, {"b", t.T("[b] as it was proposed"), b.askAgain}, yes}
	case !proposed:
		yes.Label = t.T("[y] once, as edited")
		list = []Key{yes, edit}
	case len(b.Review().Preview.Scopes) > 0: // else no answer for longer can cover it
		list = []Key{
			yes,
			{"s", t.T("[s] session"), func() { b.Host.AskScope(regie.AnswerSession) }},
			{"a", t.T("[a] always"), func() { b.Host.AskScope(regie.AnswerAlways) }},
			edit,
		}
	default:
		list = []Key{yes, edit}
	}
	list = append(list, Key{noNames, t.T("[n] no"), func() { b.Deny("") }},
		Key{"r", t.T("[r] no, because…"), b.Host.AskReason})
	if proposed {
		shown, cut = b.Review(), b.seen[b.At]
		yesToAll := Key{"Y", t.T("[Y] yes to all"), b.allowAll}
		if len(b.listUndecided()) < 2 { // pressed once too often
			yesToAll.Label, noToAll.Label = "", ""
		}
		list = append(list, yesToAll, noToAll)
	}
	if cut {
		list = append(list, Key{"v", t.T("[v] whole diff"), func() { b.Page.Diff(shown, 0) }})
	}
	return append(list, Key{"l esc", t.T("[l] later"), func() { b.Host.PutOff(b.Asked.ID) }})
}

// askAgain asks about the call as it was proposed again.
func (b *Batch) askAgain() {
	b.Edit = EditedCall{Draft: b.Edit.Draft}
	b.Show()
	b.Host.Changed(false)
}

// askNext moves to the next undecided call, or closes.
func (b *Batch) askNext(own bool) {
	b.Edit, b.Busy, b.whole = EditedCall{}, false, false
	b.At++
	for b.At < len(b.Asked.Reviews) && b.Review().Decision != nil {
		b.At++
	}
	b.Host.Changed(own)
}

// allowOnce allows the current call once, with its edits.
func (b *Batch) allowOnce() {
	decision := regie.Decision{CallID: b.Review().CallID, Answer: regie.AnswerAllow}
	switch {
	case b.Edit.Refused:
		b.Page.writeNote(b.Page.Text.T("it cannot run as you have edited it: e edits it again, b is as it was proposed"))
		return
	case b.Edit.Review != nil:
		decision.Arguments = b.Edit.Draft
	}
	b.Decide([]regie.Decision{decision})
}

// allowAll allows all calls that are left. If it first has to show some of them, or a diff was
// shortened, Y must be pressed again.
func (b *Batch) allowAll() {
	if left := b.listUndecided(); b.showUnseen(left) || b.isCut(left) {
		b.whole = true
		b.Host.Changed(false)
		return
	}
	b.allowLeft()
}

func (b *Batch) allowLeft() { b.decideAll(b.listUndecided(), regie.AnswerAllow) }

func (b *Batch) denyLeft() { b.decideAll(b.listUndecided(), regie.AnswerDeny) }

func (b *Batch) decideAll(calls []int, answer regie.Answer) {
	var decisions []regie.Decision
	for _, call := range calls {
		decisions = append(decisions, regie.Decision{CallID: b.Asked.Reviews[call].CallID, Answer: answer})
	}
	b.Decide(decisions)
}

// Deny denies the call.
func (b *Batch) Deny(reason string) {
	b.Decide([]regie.Decision{{CallID: b.Review().CallID, Answer: regie.AnswerDeny, Reason: reason}})
}

// AllowScope allows the call with what an answer for longer covers. Calls that it would allow too
// and that have not been shown are: then it decides nothing, and returns their numbers.
func (b *Batch) AllowScope(d regie.Decision) (shown string) {
	d.CallID = b.Review().CallID
	if more := b.coveredCalls(d.Scope); b.showUnseen(more) {
		return callNumbers(more)
	}
	b.Decide([]regie.Decision{d})
	return ""
}

// Decide stores decisions, one of them on an edited call as it was shown.
func (b *Batch) Decide(decisions []regie.Decision) {
	b.Busy = true
	in := dispatch.DecideRequest{
		ApprovalID: b.Asked.ID, Request: regie.NewID().String(), Decisions: decisions, Shown: ShownEdit(b.Edit.Review),
	}
	b.Host.Do(InOrder, func(ctx context.Context) func() {
		_, err := b.Control.Decide(ctx, in)
		return func() {
			if b.Busy = false; err != nil {
				b.handleRefusal(decisions, err)
			} else {
				b.recordDecisions(decisions)
			}
		}
	})
}

func (b *Batch) recordDecisions(decisions []regie.Decision) {
	for i := range decisions {
		findReview(&b.Asked, decisions[i].CallID).Decision = &decisions[i]
	}
	t := b.Page.Text
	if !b.covers {
		b.Page.writeNote("→ " + decisionWords(t, &decisions[0], len(decisions)))
	}
	more := b.coveredCalls(decisions[0].Scope)
	if b.covers = len(more) > 0; b.covers {
		b.Page.writeNote(t.T("this covers, and allows, the calls %s", callNumbers(more)))
		b.decideAll(more, regie.AnswerAllow)
	} else if b.Host.Asking() {
		b.askNext(true)
	}
}

// handleRefusal takes in why decisions were not stored.
func (b *Batch) handleRefusal(decisions []regie.Decision, err error) {
	code := regie.CodeOf(err)
	if code == regie.CodeConflict { // another person has answered this call or another one
		b.reloadApproval(err)
		return
	}
	b.Host.ShowError(err)
	switch {
	case code == regie.CodeExpired, code == regie.CodeNotFound:
		b.At = len(b.Asked.Reviews)
		b.Host.Changed(false)
	case code == regie.CodeStalePreview: // what it was shown on is otherwise by now
		b.previewEdit()
	case len(decisions[0].Arguments) > 0:
		b.confirmRefusal(b.Edit.Draft)
	}
}

// confirmRefusal lets the person choose what to do with an edited call that cannot run.
func (b *Batch) confirmRefusal(draft []byte) {
	b.Edit = EditedCall{Draft: draft, Refused: true}
	b.Host.Changed(false)
}

// Edited replaces the arguments with the person's edit and shows what the call would do; it decides
// nothing. If the editor failed, the call stays unchanged.
func (b *Batch) Edited(draft []byte, err error) {
	b.Busy = false
	if err == nil {
		b.Edit = EditedCall{Draft: draft}
		b.previewEdit()
		return
	}
	b.Host.ShowError(err)
	switch {
	case regie.CodeOf(err) == regie.CodeConflict: // they are those that were proposed
		b.askAgain()
	case len(draft) > 0:
		b.confirmRefusal(draft)
	}
}

// previewEdit shows what the call would do with the edited arguments: a call runs only after it was
// shown (decision 20).
func (b *Batch) previewEdit() {
	b.Busy = true
	number := b.At + 1
	in := dispatch.DecideRequest{ApprovalID: b.Asked.ID, Decisions: []regie.Decision{
		{CallID: b.Review().CallID, Answer: regie.AnswerAllow, Arguments: b.Edit.Draft},
	}}
	b.Host.Do(InOrder, func(ctx context.Context) func() {
		found, err := b.Control.Review(ctx, in)
		return func() {
			b.Busy, b.Edit.Review = false, nil
			switch {
			case regie.CodeOf(err) == regie.CodeConflict:
				b.reloadApproval(err)
			case err != nil:
				b.Host.ShowError(err)
				b.confirmRefusal(b.Edit.Draft)
			case b.Host.Asking() && len(found.Reviews) == 1:
				b.Edit.Review = &found.Reviews[0]
				b.Edit.Cut = b.Page.Edited(number, b.Edit.Review)
				b.Host.Changed(false)
			}
		}
	})
}

// reloadApproval reads the approval again after another person decided first, and shows who did.
func (b *Batch) reloadApproval(why error) {
	b.Host.Do(Beside, func(ctx context.Context) func() {
		inbox, err := b.Control.Inbox(ctx, store.InboxFilter{ID: b.Asked.ID})
		return func() {
			if b.Host.ShowError(why); err == nil && b.Host.Asking() && !b.Busy {
				b.Take(inbox.Approvals)
			}
		}
	})
}

// Take takes the approval as it is now; none: it is gone.
func (b *Batch) Take(now []regie.Approval) {
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
	b.adoptDecisions(decided, state)
}

// Heard applies decisions of other people from the log.
func (b *Batch) Heard(body *Body) {
	if body.ApprovalID == b.Asked.ID && !b.Busy {
		b.adoptDecisions(body.Decisions, regie.ApprovalState(body.State))
	}
}

// adoptDecisions tells what others have decided, and goes on there.
func (b *Batch) adoptDecisions(decisions []regie.Decision, state regie.ApprovalState) {
	for i := range decisions {
		d := &decisions[i]
		if review := findReview(&b.Asked, d.CallID); review.Decision == nil {
			review.Decision = d
			said := decisionWords(b.Page.Text, d, 1)
			b.Page.writeNote("→ " + b.Page.Text.T("elsewhere, by %s: %s", sanitize.Line(d.By), said))
		}
	}
	b.Asked.State = state
	switch {
	case b.Over():
		b.Host.Changed(false)
	case b.Review().Decision != nil:
		b.askNext(false)
	}
}

// coveredCalls returns the calls after the current one that a standing answer covers; none for a
// nil scope. It omits calls that must be asked about all the same (decision 19), and calls that a
// link leads out of the scope.
func (b *Batch) coveredCalls(scope *regie.Scope) (calls []int) {
	for i := b.At + 1; scope != nil && i < len(b.Asked.Reviews); i++ {
		review := &b.Asked.Reviews[i]
		var arguments map[string]any
		if review.Decision == nil && review.Verdict == regie.VerdictAsk &&
			json.Unmarshal(review.Arguments, &arguments) == nil &&
			scope.Matches(review.Tool, regie.Hash{}, arguments) && review.Preview.Named(arguments) {
			calls = append(calls, i)
		}
	}
	return calls
}

// callNumbers returns the numbers of some calls, as a person reads them.
func callNumbers(calls []int) string {
	numbers := make([]string, len(calls))
	for i, call := range calls {
		numbers[i] = strconv.Itoa(call + 1)
	}
	return strings.Join(numbers, ", ")
}

// findReview returns the review of a call; an empty one where the approval has none.
func findReview(asked *regie.Approval, call regie.ID) *regie.Review {
	at := slices.IndexFunc(asked.Reviews, func(r regie.Review) bool { return r.CallID == call })
	if at < 0 {
		return &regie.Review{Decision: &regie.Decision{}}
	}
	return &asked.Reviews[at]
}
