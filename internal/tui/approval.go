package tui

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// askPending reads the session's open requests, and puts the first one to the person.
func (m *model) askPending() {
	m.Due, m.asking = false, true
	session := m.Session
	m.Do(chat.Beside, func(ctx context.Context) func() {
		inbox, err := m.Control.Inbox(ctx, store.InboxFilter{SessionID: session})
		return func() {
			m.asking = false
			m.ShowError(err)
			if session != m.Session || !m.Waiting() || m.dialog != nil {
				m.Due = m.Due || session == m.Session && m.Waiting() // behind what the person has opened
				return
			}
			for i := range inbox.Approvals {
				if m.dialog == nil && !m.Later[inbox.Approvals[i].ID] {
					a := newApproving(m, &inbox.Approvals[i])
					m.presentDialog(a, a.Begin)
				}
			}
			for i := range inbox.Questions {
				if m.dialog == nil && !m.Later[inbox.Questions[i].ID] {
					q := &questioning{asked: inbox.Questions[i], chosen: map[int]bool{}}
					m.presentDialog(q, func() { q.beginAnswer(m) })
				}
			}
		}
	})
}

// presentDialog shows something that waits for the person, and calls them.
func (m *model) presentDialog(d dialog, begin func()) {
	m.paper.flushReply()
	m.paper.addSpace()
	m.openDialog(d)
	begin()
	m.queueCommand(m.config.Bell.ringBell(m.Text.T("waits for your answer"), time.Since(m.Began)))
}

// putOff leaves something in the inbox.
func (m *model) putOff(id regie.ID) {
	m.Later[id] = true
	m.Note(chat.PutOffLine(m.Text, id))
	m.closeDialog()
	m.Due = m.Waiting() // for what else waits
}

// approving puts an approval to the person, call by call.
type approving struct {
	*chat.Batch
	m       *model
	shownAt int          // the call that was shown last
	answer  regie.Answer // the standing answer that needs a scope; "" for none
	picked  int          // among the scopes
	holds   int          // among spans
	reasons bool         // they write why they say no
	reason  editor
}

func newApproving(m *model, asked *regie.Approval) *approving {
	a := &approving{m: m, shownAt: -1}
	a.Batch = chat.NewBatch(m.Control, m.Page, a, asked)
	return a
}

// spans are how long an answer for longer may hold; zero has no end.
var spans = []time.Duration{0, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}

// Do implements chat.BatchHost.
func (a *approving) Do(order chat.Order, work chat.Work) { a.m.Do(order, work) }

// ShowError implements chat.BatchHost.
func (a *approving) ShowError(err error) { a.m.ShowError(err) }

// Asking implements chat.BatchHost.
func (a *approving) Asking() bool { return a.m.dialog == dialog(a) }

// Changed implements chat.BatchHost. It keeps typed text for a call that others decided in the
// history, for the Up key; no pending key answers the next call.
func (a *approving) Changed(own bool) {
	switch {
	case a.Over():
		a.m.closeOvertaken()
		a.m.Due = a.m.Waiting() // another approval or question may wait
		return
	case a.At != a.shownAt:
		a.m.history.addEntry(a.reason.fullText())
		a.shownAt, a.answer, a.reasons, a.reason = a.At, "", false, editor{}
		a.Show()
	}
	if !own {
		a.m.askAgain()
	}
}

// PutOff implements chat.BatchHost.
func (a *approving) PutOff(id regie.ID) { a.m.putOff(id) }

// AskReason implements chat.BatchHost.
func (a *approving) AskReason() { a.reasons = true }

// AskScope implements chat.BatchHost.
func (a *approving) AskScope(answer regie.Answer) { a.answer, a.picked, a.holds = answer, 0, 0 }

// EditCall implements chat.BatchHost.
func (a *approving) EditCall() {
	a.Busy, a.m.screen.lent = true, true
	m, arguments, draft := a.m, a.Review().Arguments, a.Edit.Draft
	var edited []byte
	m.queueCommand(tea.Exec(command(func() (err error) {
		edited, err = chat.Edit(m.ctx, m.Editor, arguments, draft)
		return err
	}), func(err error) tea.Msg {
		return done(func() {
			m.screen.lent = false
			a.Edited(edited, err)
		})
	}))
}

func (a *approving) inputField() *editor {
	if a.reasons {
		return &a.reason
	}
	return nil
}

func (a *approving) dialogKeys(m *model) ([]chat.Key, bool) {
	t := m.Text
	back := chat.Key{Names: "esc", Label: t.T("[Esc] back"), Do: func() { a.answer, a.reasons = "", false }}
	switch {
	case a.answer != "":
		holds := t.T("no expiry")
		if d := spans[a.holds]; d > 0 {
			holds = t.T("for %s h", strconv.Itoa(int(d.Hours())))
		}
		return append(
			pickKeys(&a.picked, len(a.Review().Preview.Scopes), func() {}),
			chat.Key{Names: "enter", Label: t.T("[Enter] allow"), Do: a.allowScope},
			chat.Key{
				Names: "t", Label: t.T("[t] duration: %s", holds),
				Do: func() { a.holds = (a.holds + 1) % len(spans) },
			},
			back,
		), a.Busy
	case a.reasons:
		return []chat.Key{{Names: "enter", Label: t.T("[Enter] deny"), Do: func() {
			a.reasons = false
			a.Deny(strings.TrimSpace(a.reason.fullText()))
		}}, back}, a.Busy
	}
	return a.Keys(), a.Busy
}

// allowScope allows the picked scope. If the scope covers calls not shown yet, it first shows them;
// a second Enter allows.
func (a *approving) allowScope() {
	d := regie.Decision{Answer: a.answer, Scope: &a.Review().Preview.Scopes[a.picked]}
	if spans[a.holds] > 0 {
		d.ExpiresAt = time.Now().Add(spans[a.holds])
	}
	numbers := a.AllowScope(d)
	if numbers == "" {
		a.answer = ""
		return
	}
	a.m.Note("     ! " + a.m.Text.T("this also allows the calls %s as shown above: press Enter again", numbers))
	a.m.askAgain()
}

// command is a program that has the terminal to itself.
type command func() error

// Run implements tea.ExecCommand. It waits for the end of the library's drawing goroutine, which
// could stop the clock of the next one: nothing would be drawn any more
// (charmbracelet/bubbletea#1778).
func (c command) Run() error {
	time.Sleep(20 * time.Millisecond)
	return c()
}

// SetStdin, SetStdout and SetStderr implement tea.ExecCommand: it has the process's own.
func (command) SetStdin(io.Reader)  {}
func (command) SetStdout(io.Writer) {}
func (command) SetStderr(io.Writer) {}

func (a *approving) render(m *model) [][]span {
	t, review := m.Text, a.Review()
	if a.Edit.Review != nil {
		review = a.Edit.Review
	}
	said := t.Sentence(review.Preview.Sentence)
	if a.Edit.Refused {
		said = t.T("it cannot run as you have edited it")
	}
	lines := m.screen.renderQuestion(sanitize.Line(said))
	switch {
	case a.answer != "":
		indent := span{text: "  "}
		where := chat.ScopeWords(t, a.answer)
		lines = append(lines, prefixLines(wrapSpans([]span{{text: where}}, m.screen.width-4), indent, indent)...)
		var scopes []string
		for i, scope := range review.Preview.Scopes {
			scopes = append(scopes, fmt.Sprintf("%d  %s", i+1, sanitize.Line(t.Sentence(scope.Sentence))))
		}
		lines = append(lines, m.screen.renderChoices(scopes, a.picked)...)
	case a.reasons:
		lines = append(lines, []span{{text: "  " + t.T("why, for the agent (may be empty):")}})
		lines = append(lines, m.renderWritten(&a.reason, span{text: "  "})...)
	}
	return lines
}
