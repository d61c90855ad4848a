package chat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// The errors that end asking, beside those of Control.
var (
	// ErrMoved says that the session waits no more: somebody answered elsewhere, it was stopped, or
	// time was up.
	ErrMoved = errors.New("what was asked is settled")
	// ErrLeave says that the person has gone: the input ended.
	ErrLeave = errors.New("the person left")
)

// Asker puts to the person at the terminal what a session waits for, and stores each answer as it
// is given (spec 4.4, 4.5): what was answered before a crash stays answered.
type Asker struct {
	Control Control
	Page    *Page
	// Next shows a prompt and returns the next line of the person. It returns ErrMoved where the
	// session waits no more, ErrLeave at the end of the input.
	Next func(ctx context.Context, prompt string) (string, error)
	// Settle shows what has happened, so that it stands above what is asked next; errors are those
	// of Next.
	Settle func(ctx context.Context) error
	// Edit is the person's editor.
	Edit Editor

	later map[regie.ID]bool
	seen  Seen // of the approval that is asked about
}

// Ask puts everything that is open in a session to the person, once, except what they put off
// before. It returns how much of it they put off now or before; errors are those of Next and of
// Control.
func (a *Asker) Ask(ctx context.Context, session regie.ID) (later int, err error) {
	inbox, err := a.Control.Inbox(ctx, store.InboxFilter{SessionID: session})
	if err != nil {
		return 0, err
	}
	if a.later == nil {
		a.later = map[regie.ID]bool{}
	}
	for i := range inbox.Approvals {
		asked := &inbox.Approvals[i]
		if !a.later[asked.ID] {
			if err := a.approval(ctx, asked); err != nil {
				return later, err
			}
		}
		if a.later[asked.ID] {
			later++
		}
	}
	for i := range inbox.Questions {
		asked := &inbox.Questions[i]
		if !a.later[asked.ID] {
			if err := a.question(ctx, asked); err != nil {
				return later, err
			}
		}
		if a.later[asked.ID] {
			later++
		}
	}
	return later, nil
}

// Again forgets what was put off.
func (a *Asker) Again() { clear(a.later) }

// approval puts the undecided calls of an approval to the person, one by one.
func (a *Asker) approval(ctx context.Context, asked *regie.Approval) error {
	if err := a.Settle(ctx); err != nil {
		return err
	}
	a.Page.ApprovalHead(asked)
	a.Page.Calls(asked, ListedCalls)
	a.seen = Seen{}
	for i := range asked.Reviews {
		if asked.Reviews[i].Decision != nil {
			continue
		}
		if err := a.Settle(ctx); err != nil {
			return err
		}
		a.Page.Call(asked, i, a.seen)
		if done, err := a.call(ctx, asked, i); done || err != nil {
			return err
		}
	}
	return a.Page.Err()
}

// agrees reports whether a word says yes, in either language.
func agrees(word string) bool {
	switch strings.ToLower(word) {
	case "yes", "o", "oui":
		return true
	default:
		return word == "y" // Y is for all that are left
	}
}

// call puts one call to the person until they have decided, and reports whether the approval needs
// no more of them.
func (a *Asker) call(ctx context.Context, asked *regie.Approval, i int) (done bool, err error) {
	var e edited
	for asked.Reviews[i].Decision == nil {
		review, rest := &asked.Reviews[i], Undecided(asked, i)
		line, err := a.Next(ctx, a.choices(asked, i, &e))
		if err != nil {
			return true, err
		}
		decisions, word := []regie.Decision{{CallID: review.CallID}}, strings.TrimSpace(line)
		if word == "Y" || word == "N" {
			decisions = rest
		}
		ready, put, err := a.read(ctx, asked, i, word, decisions, &e)
		if put || err != nil {
			return true, err
		}
		if !ready {
			continue
		}
		decided, over, err := a.decide(ctx, asked, decisions, &e)
		switch {
		case decided && !over && err == nil && decisions[0].Scope != nil:
			over, err = a.covered(ctx, asked, i+1, decisions[0].Scope)
		case regie.CodeOf(err) == regie.CodeStalePreview: // what it was shown on is otherwise by now
			err = a.preview(ctx, asked, i, &e)
		}
		if decided || over || err != nil {
			return over || len(decisions) > 1, err
		}
	}
	return false, nil // somebody else has answered it
}

// read makes the decisions that a word of the person stands for; ready says that it is one. put
// says that they leave the approval for later.
func (a *Asker) read(ctx context.Context, asked *regie.Approval, i int, word string, decisions []regie.Decision,
	e *edited,
) (ready, put bool, err error) {
	review := &asked.Reviews[i]
	reason, denied := denial(word)
	switch {
	case denied:
		AnswerAll(decisions, regie.AnswerDeny, reason)
		*e = edited{draft: e.draft}
		return true, false, nil
	case agrees(word) && e.refused:
		a.Page.line("     " + a.Page.Text.T(
			"it cannot run as you have edited it: e edits it again, b is as it was proposed"))
		return false, false, nil
	case word == "b" && e.refused:
		*e = edited{draft: e.draft}
		a.Page.Call(asked, i, a.seen)
		return false, false, nil
	case agrees(word) && e.review != nil:
		decisions[0] = e.decision(review.CallID)
		return true, false, nil
	case agrees(word):
		AnswerAll(decisions, regie.AnswerAllow, "")
		return true, false, nil
	case word == "e":
		return false, false, a.edit(ctx, asked, i, e)
	case word == "v" && e.review != nil:
		a.Page.Diff(e.review, 0)
		return false, false, nil
	case word == "v" && e.asProposed():
		a.Page.Diff(review, 0)
		return false, false, nil
	case word == "c":
		a.Page.Calls(asked, 0)
		return false, false, nil
	case word == "l":
		a.putOff(asked.ID)
		return false, true, nil
	case word == "Y" && e.asProposed():
		AnswerAll(decisions, regie.AnswerAllow, "")
		ready, err = a.all(ctx, asked, decisions)
		return ready, false, err
	case (word == "s" || word == "a") && e.asProposed():
		if ready, err = a.scope(ctx, review, word, &decisions[0]); ready && err == nil {
			ready, err = a.along(ctx, asked, i, decisions[0].Scope)
		}
		return ready, false, err
	}
	a.explain()
	return false, false, nil
}

// covered allows the calls of the batch that an answer for longer covers.
func (a *Asker) covered(ctx context.Context, asked *regie.Approval, from int,
	scope *regie.Scope,
) (over bool, err error) {
	decisions, numbers := Covered(asked, from, scope)
	if len(decisions) == 0 {
		return false, nil
	}
	decided, over, err := a.decide(ctx, asked, decisions, &edited{})
	if !decided || over || err != nil {
		return over, err
	}
	a.Page.line("     " + a.Page.Text.T("that covers, and allows, the calls %s", strings.Join(numbers, ", ")))
	for i := range decisions {
		reviewed(asked, decisions[i].CallID).Decision = &decisions[i]
	}
	return false, nil
}

// Covered are the calls of a batch, from one on, that an answer for longer covers, allowed, with
// their numbers. It was given to be asked no more; what must be asked about in spite of it stays
// (decision 19), and so does what leads through a link to where the answer does not reach.
func Covered(asked *regie.Approval, from int, scope *regie.Scope) (decisions []regie.Decision, numbers []string) {
	for i := from; i < len(asked.Reviews); i++ {
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

func reviewed(asked *regie.Approval, call regie.ID) *regie.Review {
	for i := range asked.Reviews {
		if asked.Reviews[i].CallID == call {
			return &asked.Reviews[i]
		}
	}
	return &regie.Review{}
}

// denial reads "n", "N" and "n: reason".
func denial(word string) (reason string, denied bool) {
	if slices.Contains([]string{"n", "N", "no", "non", "No", "Non"}, word) {
		return "", true
	}
	if reason, ok := strings.CutPrefix(word, "n:"); ok {
		return strings.TrimSpace(reason), true
	}
	return "", false
}

// Undecided are the calls of an approval from one on that nobody has decided.
func Undecided(asked *regie.Approval, from int) []regie.Decision {
	var out []regie.Decision
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

// decide stores decisions, one of them on an edited call as it was shown. It reports whether they
// stand, and whether the approval is over; where neither, the person was told why and is asked
// again. CodeStalePreview says that the edited call has to be shown once more.
func (a *Asker) decide(ctx context.Context, asked *regie.Approval, decisions []regie.Decision,
	e *edited,
) (decided, over bool, err error) {
	_, err = a.Control.Decide(ctx, dispatch.DecideRequest{
		ApprovalID: asked.ID, Request: regie.NewID().String(), Decisions: decisions, Shown: ShownEdit(e.review),
	})
	switch regie.CodeOf(err) {
	case "":
		return true, false, nil
	case regie.CodeConflict: // somebody else has answered, this call or another one: nothing of this answer is stored
		a.Page.line("     " + a.Page.Text.Error(err))
		over, err = a.reread(ctx, asked)
		return false, over, err
	case regie.CodeExpired, regie.CodeNotFound:
		a.Page.line("     " + a.Page.Text.Error(err))
		return false, true, nil
	case regie.CodeStalePreview:
		a.Page.line("     " + a.Page.Text.Error(err))
		return false, false, err
	}
	if len(decisions[0].Arguments) > 0 {
		e.review, e.refused = nil, true
	}
	return false, false, a.told(ctx, err)
}

// reread takes an approval as it stands by now, and reports whether it is over.
func (a *Asker) reread(ctx context.Context, asked *regie.Approval) (over bool, err error) {
	inbox, err := a.Control.Inbox(ctx, store.InboxFilter{ID: asked.ID})
	if err != nil || len(inbox.Approvals) == 0 {
		return true, err
	}
	*asked = inbox.Approvals[0]
	return asked.State != regie.ApprovalOpen, nil
}

// told shows an error that the person can do something about; the others are returned.
func (a *Asker) told(ctx context.Context, err error) error {
	switch regie.CodeOf(err) {
	case regie.CodeInternal, regie.CodeEngineGone, regie.CodeLocked, regie.CodeCorrupt, regie.CodeDiskFull,
		regie.CodeDatabaseLocked, regie.CodeDatabaseDown:
		return err
	}
	if ctx.Err() != nil {
		return err
	}
	a.Page.line("     " + a.Page.Text.Error(err))
	return nil
}

// scope has the person choose what an answer for longer covers, and how long it holds; no answer
// covers more than they have read.
func (a *Asker) scope(ctx context.Context, review *regie.Review, word string, d *regie.Decision) (bool, error) {
	t, scopes := a.Page.Text, review.Preview.Scopes
	if len(scopes) == 0 {
		a.Page.line("     " + t.T("this call can only be allowed once: its tool proposes nothing wider"))
		return false, nil
	}
	d.Answer = regie.AnswerAlways
	if word == "s" {
		d.Answer = regie.AnswerSession
		a.Page.line("     " + t.T("for the rest of this session, without asking:"))
	} else {
		a.Page.line("     " + t.T("in every session of this workspace, from now on, without asking:"))
	}
	a.Page.Scopes(scopes)
	for {
		line, err := a.Next(ctx,
			t.T("the number of what is allowed, with a time where it is to end (1 24h or 1 7d), or b to go back: "))
		if err != nil {
			return false, err
		}
		words := strings.Fields(line)
		if len(words) == 1 && words[0] == "b" {
			return false, nil
		}
		if len(words) == 0 || len(words) > 2 {
			continue
		}
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 1 || n > len(scopes) {
			continue
		}
		d.Scope, d.ExpiresAt = &scopes[n-1], time.Time{}
		if len(words) == 2 {
			span, err := Span(words[1])
			if err != nil {
				a.Page.line("     " + t.Error(err))
				continue
			}
			d.ExpiresAt = a.Page.Now().Add(span)
		}
		return true, nil
	}
}

// putOff leaves something in the inbox.
func (a *Asker) putOff(id regie.ID) {
	a.later[id] = true
	a.Page.line(a.Page.Text.T("it stays in the inbox: regie approvals show %s", Short(id)))
}

// choices is the prompt below a call: as it was proposed, or as the person has edited it.
func (a *Asker) choices(asked *regie.Approval, i int, e *edited) string {
	t, review := a.Page.Text, &asked.Reviews[i]
	prompt, cut := t.T("[y] once  [e] edit  [n] no  [n: reason]  [l] later"), a.seen[review.CallID]
	switch {
	case e.review != nil:
		prompt, cut = t.T("[y] once, as edited  [e] edit  [n] no  [n: reason]  [l] later"), e.cut
	case e.refused:
		prompt, cut = t.T("[e] edit again  [b] as it was proposed  [n] no  [n: reason]  [l] later"), false
	case len(review.Preview.Scopes) > 0: // an answer for longer can cover it
		prompt = t.T("[y] once  [s] session  [a] always  [e] edit  [n] no  [n: reason]  [l] later")
	}
	if e.asProposed() && len(Undecided(asked, i)) > 1 {
		prompt += "  " + t.T("[Y] yes to all  [N] no to all")
	}
	if cut {
		prompt += "  " + t.T("[v] whole diff")
	}
	return prompt + " > "
}

// explain says what the letters do.
func (a *Asker) explain() {
	t := a.Page.Text
	for _, line := range []string{
		t.T("y       allow this call, once"),
		t.T("s, a    allow it for this session, or always: you choose what that covers"),
		t.T("e       edit the arguments, see what it does then, and allow it once"),
		t.T("n       deny it;  n: because …  tells the agent why"),
		t.T("Y, N    the same for all calls of this approval that are left"),
		t.T("v       show the whole diff;  c  name all calls of this approval"),
		t.T("l       later: it stays in the inbox;  Ctrl-C interrupts the run"),
	} {
		a.Page.line("     " + line)
	}
}
