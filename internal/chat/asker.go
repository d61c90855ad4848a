package chat

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// Besides the errors of Control, these errors end asking.
var (
	// ErrMoved says that the session no longer waits: another person answered, a stop came, or the
	// time is up.
	ErrMoved = errors.New("what was asked is settled")
	// ErrLeave says that the person has gone: the input ended.
	ErrLeave = errors.New("the person left")
)

// Asker puts a session's open requests to the person at the terminal, and stores each answer at
// once (spec 4.4, 4.5): an answer survives a crash.
type Asker struct {
	Control Control
	Page    *Page
	// Next shows a prompt and returns the next line of the person. It returns ErrMoved where the
	// session waits no more, ErrLeave at the end of the input.
	Next func(ctx context.Context, prompt string) (string, error)
	// Settle shows new events above the next question; its errors are those of Next.
	Settle func(ctx context.Context) error
	// Edit is the person's editor.
	Edit Editor

	later map[regie.ID]bool
}

// Ask puts every open request of a session to the person once, except those put off before. It
// returns how many are put off; errors are those of Next and of Control.
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
		put(inbox.Approvals[i].ID, func() error { return a.askApproval(ctx, &inbox.Approvals[i]) })
	}
	for i := range inbox.Questions {
		put(inbox.Questions[i].ID, func() error { return a.askQuestion(ctx, &inbox.Questions[i]) })
	}
	return later, err
}

// askApproval puts the undecided calls of an approval to the person, one by one.
func (a *Asker) askApproval(ctx context.Context, asked *regie.Approval) error {
	h := &lineHost{asker: a, ctx: ctx}
	h.Batch = NewBatch(a.Control, a.Page, h, asked)
	h.Begin()
	for shown := -1; !h.Over() && !a.later[asked.ID]; {
		if shown != h.At {
			if err := a.Settle(ctx); err != nil {
				return err
			}
			h.Show()
			shown = h.At
		}
		keys := h.Keys()
		word := h.readLine(keyPrompt(keys))
		if reason, denied := strings.CutPrefix(word, "n:"); denied {
			h.Deny(strings.TrimSpace(reason))
		} else if key := FindKey(keys, word); key != nil {
			key.Do()
		}
		if h.err != nil {
			return h.err
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
func (h *lineHost) Do(_ Order, work Work) { doNow(h.ctx, work) }

// ShowError implements BatchHost. An error that the person cannot fix ends the asking.
func (h *lineHost) ShowError(err error) {
	if told := h.asker.showOrReturn(h.ctx, err); told != nil {
		h.err = told
	}
}

// Asking implements BatchHost.
func (h *lineHost) Asking() bool { return true }

// Changed implements BatchHost: the loop shows it, and a line is read whole.
func (h *lineHost) Changed(bool) {}

// EditCall implements BatchHost.
func (h *lineHost) EditCall() {
	h.Edited(Edit(h.ctx, h.asker.Edit, h.Review().Arguments, h.Edit.Draft))
}

// AskReason implements BatchHost.
func (h *lineHost) AskReason() {
	if reason := h.readLine(h.Page.Text.T("why, for the agent (may be empty):") + " "); h.err == nil {
		h.Deny(reason)
	}
}

// AskScope implements BatchHost.
func (h *lineHost) AskScope(answer regie.Answer) {
	d, chosen := h.chooseScope(answer)
	for chosen {
		numbers := h.AllowScope(d)
		if numbers == "" {
			return
		}
		word := h.readLine(h.Page.Text.T("this also allows the calls %s: [y] yes  [b] back", numbers) + " > ")
		chosen = isYes(word)
	}
}

// PutOff implements BatchHost.
func (h *lineHost) PutOff(id regie.ID) { h.asker.putOff(id) }

// doNow runs work on the loop's goroutine.
func doNow(ctx context.Context, work Work) {
	if then := work(ctx); then != nil {
		then()
	}
}

// isYes reports whether a word says yes.
func isYes(word string) bool { return slices.Contains(strings.Fields(yesNames), word) }

// showOrReturn shows an error that the person can do something about; the others are returned.
func (a *Asker) showOrReturn(ctx context.Context, err error) error {
	switch regie.CodeOf(err) {
	case regie.CodeInternal, regie.CodeEngineGone, regie.CodeLocked, regie.CodeCorrupt, regie.CodeDiskFull,
		regie.CodeDatabaseLocked, regie.CodeDatabaseDown:
		return err
	}
	if ctx.Err() != nil {
		return err
	}
	a.Page.writeNote(a.Page.Text.Error(err))
	return nil
}

// ScopeWords says where an answer for longer holds.
func ScopeWords(t *i18n.Printer, answer regie.Answer) string {
	if answer == regie.AnswerAlways {
		return t.T("in every session of this workspace, from now on, without asking:")
	}
	return t.T("for the rest of this session, without asking:")
}

// chooseScope has the person choose what an answer for longer covers, and how long it holds; no
// answer covers more than they have read.
func (h *lineHost) chooseScope(answer regie.Answer) (d regie.Decision, chosen bool) {
	t, scopes := h.Page.Text, h.Review().Preview.Scopes
	h.Page.writeNote(ScopeWords(t, answer))
	h.Page.Scopes(scopes)
	for {
		line := h.readLine(t.T("the number of a scope, with a duration if it should end (1 24h or 1 7d), or b to go back: "))
		number, time, timed := strings.Cut(line, " ")
		n, err := strconv.Atoi(number)
		switch {
		case h.err != nil || line == "b":
			return d, false
		case err != nil || n < 1 || n > len(scopes):
			continue
		}
		d = regie.Decision{Answer: answer, Scope: &scopes[n-1]}
		if timed {
			span, err := Span(strings.TrimSpace(time))
			if err != nil {
				h.Page.writeNote(t.Error(err))
				continue
			}
			d.ExpiresAt = h.Page.Now().Add(span)
		}
		return d, true
	}
}

// readLine returns the person's next line. On an error it returns "" and ends the asking.
func (h *lineHost) readLine(prompt string) string {
	line, err := h.asker.Next(h.ctx, prompt)
	if err != nil {
		h.err = err
	}
	return strings.TrimSpace(line)
}

// putOff leaves something in the inbox.
func (a *Asker) putOff(id regie.ID) {
	a.later[id] = true
	a.Page.writeLine(PutOffLine(a.Page.Text, id))
}

// PutOffLine says that something stays in the inbox.
func PutOffLine(t *i18n.Printer, id regie.ID) string {
	return t.T("it stays in the inbox: regie approvals show %s", Short(id))
}
