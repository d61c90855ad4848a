package chat

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
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
}

// Ask puts everything that is open in a session to the person, once, except what they put off
// before. It returns how much of it they put off now or before; errors are those of Next and of
// Control.
func (a *Asker) Ask(ctx context.Context, session regie.ID) (later int, err error) {
	inbox, err := a.Control.Inbox(ctx, store.InboxFilter{SessionID: session})
	if a.later == nil {
		a.later = map[regie.ID]bool{}
	}
	put := func(id regie.ID, ask func() error) {
		if err == nil && !a.later[id] {
			if err = a.Settle(ctx); err == nil {
				err = cmp.Or(ask(), a.Page.Err())
			}
		}
		if a.later[id] {
			later++
		}
	}
	for i := range inbox.Approvals {
		put(inbox.Approvals[i].ID, func() error { return a.approval(ctx, &inbox.Approvals[i]) })
	}
	for i := range inbox.Questions {
		put(inbox.Questions[i].ID, func() error { return a.question(ctx, &inbox.Questions[i]) })
	}
	return later, err
}

// approval puts the undecided calls of an approval to the person, one by one.
func (a *Asker) approval(ctx context.Context, asked *regie.Approval) error {
	h := &lineHost{asker: a, ctx: ctx}
	h.Batch = &Batch{Control: a.Control, Page: a.Page, Host: h, Asked: *asked}
	h.Begin()
	for shown := -1; !h.Over(); {
		if shown != h.At {
			if err := a.Settle(ctx); err != nil {
				return err
			}
			h.Show()
			shown = h.At
		}
		word, err := a.Next(ctx, h.choices())
		if err != nil {
			return err
		}
		if later, err := h.obey(strings.TrimSpace(word)); later || err != nil {
			return err
		}
	}
	return nil
}

// lineHost puts a Batch to a person line by line.
type lineHost struct {
	*Batch
	asker *Asker
	ctx   context.Context
	err   error // what ends the asking
}

// Do implements BatchHost.
func (h *lineHost) Do(_ Order, work Work) {
	if then := work(h.ctx); then != nil {
		then()
	}
}

// ShowError implements BatchHost. What the person can do nothing about ends the asking.
func (h *lineHost) ShowError(err error) {
	if told := h.asker.told(h.ctx, err); told != nil {
		h.err = told
	}
}

// Hint implements BatchHost.
func (h *lineHost) Hint(line string) { h.Page.line("     " + line) }

// Asking implements BatchHost.
func (h *lineHost) Asking() bool { return true }

// Reread implements BatchHost: a line is read whole.
func (h *lineHost) Reread() {}

// Moved implements BatchHost: the loop shows the call.
func (h *lineHost) Moved() {}

// Closed implements BatchHost: the loop ends.
func (h *lineHost) Closed() {}

// Decided implements BatchHost: the terminal shows what was typed.
func (h *lineHost) Decided([]regie.Decision) {}

// Elsewhere implements BatchHost: the error says who has answered.
func (h *lineHost) Elsewhere([][]regie.Decision) bool { return false }

// agrees reports whether a word says yes, in either language; Y is for all that are left.
func agrees(word string) bool { return slices.Contains([]string{"y", "yes", "o", "oui"}, word) }

// obey takes a word of the person. later says that they leave the approval for later.
func (h *lineHost) obey(word string) (later bool, err error) {
	reason, denied := denial(word)
	proposed := h.Edit.AsProposed()
	switch {
	case word == "N":
		h.DenyLeft()
	case denied:
		h.Deny(reason)
	case agrees(word):
		h.Allow()
	case word == "b" && h.Edit.Refused:
		h.Propose()
	case word == "e":
		h.Edited(Edit(h.ctx, h.asker.Edit, h.Review().Arguments, h.Edit.Draft))
	case word == "v":
		h.ShowDiff()
	case word == "c":
		h.Page.Calls(&h.Asked, 0)
	case word == "l":
		h.asker.putOff(h.Asked.ID)
		return true, nil
	case word == "Y" && proposed:
		left, t := h.Left(), h.Page.Text
		if h.onceMore(left, t.T("[Y] again allows these %d calls  [b] back", len(left)), "Y") {
			AnswerAll(left, regie.AnswerAllow, "")
			h.Decide(left)
		}
	case (word == "s" || word == "a") && proposed:
		if d, ok := h.chooseScope(word); ok {
			more, numbers := Covered(&h.Asked, h.At+1, d.Scope)
			prompt := h.Page.Text.T("it allows the calls %s with it: [y] yes  [b] back", strings.Join(numbers, ", "))
			if h.onceMore(more, prompt, "y") {
				h.Decide([]regie.Decision{d})
			}
		}
	}
	return false, h.err
}

// denial reads "n", "no" and "n: reason".
func denial(word string) (reason string, denied bool) {
	if reason, denied = strings.CutPrefix(word, "n:"); denied {
		return strings.TrimSpace(reason), true
	}
	return "", slices.Contains([]string{"n", "no", "non"}, word)
}

// onceMore shows what of some calls the person has not been shown whole, and asks whether they are
// allowed: nothing else than yes allows them. Else they are asked about the call again.
func (h *lineHost) onceMore(calls []regie.Decision, prompt, yes string) bool {
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
		case word == yes, yes == "y" && agrees(word):
			return true
		case h.err != nil, denied, word == "b", word == "l":
			return false
		case word == "v":
			h.Seen.Whole(h.Page, &h.Asked, calls)
		}
	}
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

// chooseScope has the person choose what an answer for longer covers, and how long it holds; no
// answer covers more than they have read.
func (h *lineHost) chooseScope(word string) (d regie.Decision, ok bool) {
	t, scopes := h.Page.Text, h.Review().Preview.Scopes
	if !h.HasScopes() {
		return d, false
	}
	d = regie.Decision{CallID: h.Review().CallID, Answer: regie.AnswerAlways}
	where := t.T("in every session of this workspace, from now on, without asking:")
	if word == "s" {
		d.Answer, where = regie.AnswerSession, t.T("for the rest of this session, without asking:")
	}
	h.Hint(where)
	h.Page.Scopes(scopes)
	for {
		line := h.next(t.T("the number of what is allowed, with a time where it is to end (1 24h or 1 7d), or b to go back: "))
		number, time, timed := strings.Cut(line, " ")
		n, err := strconv.Atoi(number)
		switch {
		case h.err != nil || line == "b":
			return d, false
		case err != nil || n < 1 || n > len(scopes):
			continue
		}
		d.Scope = &scopes[n-1]
		if timed {
			span, err := Span(strings.TrimSpace(time))
			if err != nil {
				h.Hint(t.Error(err))
				continue
			}
			d.ExpiresAt = h.Page.Now().Add(span)
		}
		return d, true
	}
}

// next is the person's next line; "" where there is none, which ends the asking.
func (h *lineHost) next(prompt string) string {
	line, err := h.asker.Next(h.ctx, prompt)
	if err != nil {
		h.err = err
	}
	return strings.TrimSpace(line)
}

// putOff leaves something in the inbox.
func (a *Asker) putOff(id regie.ID) {
	a.later[id] = true
	a.Page.line(a.Page.Text.T("it stays in the inbox: regie approvals show %s", Short(id)))
}

// choices is the prompt below a call: as it was proposed, or as the person has edited it.
func (h *lineHost) choices() string {
	t, cut := h.Page.Text, h.Seen[h.Review().CallID]
	prompt := t.T("[y] once  [e] edit  [n] no  [n: reason]  [l] later")
	switch {
	case h.Edit.Review != nil:
		prompt, cut = t.T("[y] once, as edited  [e] edit  [n] no  [n: reason]  [l] later"), h.Edit.Cut
	case h.Edit.Refused:
		prompt, cut = t.T("[e] edit again  [b] as it was proposed  [n] no  [n: reason]  [l] later"), false
	case len(h.Review().Preview.Scopes) > 0: // an answer for longer can cover it
		prompt = t.T("[y] once  [s] session  [a] always  [e] edit  [n] no  [n: reason]  [l] later")
	}
	if h.Edit.AsProposed() && len(h.Left()) > 1 {
		prompt += "  " + t.T("[Y] yes to all  [N] no to all")
	}
	if cut {
		prompt += "  " + t.T("[v] whole diff")
	}
	return prompt + " > "
}
