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
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// ask reads what the session waits for, and puts the first of it to the person.
func (m *model) ask() {
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
					a := newApproving(m, inbox.Approvals[i])
					m.put(a, a.begin)
				}
			}
			for i := range inbox.Questions {
				if m.dialog == nil && !m.Later[inbox.Questions[i].ID] {
					q := &questioning{asked: inbox.Questions[i], chosen: map[int]bool{}}
					m.put(q, func() { q.begin(m) })
				}
			}
		}
	})
}

// put shows something that waits for the person, and calls them.
func (m *model) put(d dialog, begin func()) {
	m.paper.flush()
	m.paper.space()
	m.open(d)
	begin()
	m.run(m.bell.ring(m.Text.T("waits for your answer"), time.Since(m.Began)))
}

// putOff leaves something in the inbox.
func (m *model) putOff(id regie.ID) {
	m.Later[id] = true
	m.Note(m.Text.T("it stays in the inbox: regie approvals show %s", chat.Short(id)))
	m.closeDialog()
	m.Due = m.Waiting() // for what else waits
}

// approving puts an approval to the person, call by call.
type approving struct {
	*chat.Batch
	m      *model
	listed bool // the head has not room for all of them
	mode   approvalMode
	answer regie.Answer // for longer: for the session, or always
	picked int          // among the scopes
	holds  int          // among spans
	reason editor
	own    bool // what moves the batch on is this person's answer
}

func newApproving(m *model, asked regie.Approval) *approving {
	a := &approving{m: m}
	a.Batch = &chat.Batch{Control: m.Control, Page: m.Page, Host: a, Asked: asked, Seen: chat.Seen{}}
	return a
}

// approvalMode is what of an approval the keys are for.
type approvalMode int

const (
	choosing approvalMode = iota
	all                   // all that are left stand there, and Y once more allows them
	scoping
	reasoning
)

// spans are how long an answer for longer may hold; zero has no end.
var spans = []time.Duration{0, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}

func (a *approving) begin() {
	a.own = true
	a.listed = a.Begin()
}

// Do implements chat.BatchHost.
func (a *approving) Do(order chat.Order, work chat.Work) { a.m.Do(order, work) }

// ShowError implements chat.BatchHost.
func (a *approving) ShowError(err error) { a.m.ShowError(err) }

// Hint implements chat.BatchHost.
func (a *approving) Hint(line string) { a.m.hint = line }

// Asking implements chat.BatchHost.
func (a *approving) Asking() bool { return a.m.dialog == dialog(a) }

// Reread implements chat.BatchHost.
func (a *approving) Reread() { a.m.askAgain() }

// Moved implements chat.BatchHost. Up has what the person has typed for a call that others have
// decided; no key that was meant for it answers the next one.
func (a *approving) Moved() {
	if !a.own {
		a.m.history.add(a.reason.value())
		a.m.askAgain()
	}
	a.mode, a.own, a.reason = choosing, false, editor{}
	a.Show()
}

// Closed implements chat.BatchHost.
func (a *approving) Closed() {
	a.m.overtaken()
	a.m.Due = a.m.Waiting() // another approval, or a question, may wait beside it
}

// Decided implements chat.BatchHost.
func (a *approving) Decided(decisions []regie.Decision) {
	a.own = true
	a.m.Note("     → " + decisionWords(a.m.Text, &decisions[0], len(decisions)))
}

// Elsewhere implements chat.BatchHost.
func (a *approving) Elsewhere(decisions [][]regie.Decision) bool {
	for _, some := range decisions {
		said := decisionWords(a.m.Text, &some[0], len(some))
		a.m.Note("     → " + a.m.Text.T("elsewhere, by %s: %s", plain.Line(some[0].By), said))
	}
	return len(decisions) > 0
}

func (a *approving) field() *editor {
	if a.mode == reasoning {
		return &a.reason
	}
	return nil
}

// become returns what has the keys be for something else.
func (a *approving) become(mode approvalMode) func() { return func() { a.mode = mode } }

func (a *approving) keys(m *model) ([]key, bool) {
	t := m.Text
	switch a.mode {
	case scoping:
		holds := t.T("without end")
		if d := spans[a.holds]; d > 0 {
			holds = t.T("for %s h", strconv.Itoa(int(d.Hours())))
		}
		return append(
			pickKeys(&a.picked, len(a.Review().Preview.Scopes), func() {}),
			key{"enter", t.T("[Enter] allow"), a.allowScope},
			key{"t", t.T("[t] it holds: %s", holds), func() { a.holds = (a.holds + 1) % len(spans) }},
			key{"esc", t.T("[Esc] back"), a.become(choosing)},
		), a.Busy
	case reasoning:
		return []key{
			{"enter", t.T("[Enter] deny"), func() {
				a.mode = choosing
				a.Deny(strings.TrimSpace(a.reason.value()))
			}},
			{"esc", t.T("[Esc] back"), a.become(choosing)},
		}, a.Busy
	case all:
		list := []key{{"Y", t.T("[Y] yes to all"), a.allowAll}, {"N", t.T("[N] no to all"), a.DenyLeft}}
		if len(a.Seen.Cut(&a.Asked, a.Left())) > 0 {
			list = append(list, key{"v", t.T("[v] whole diff"), func() { a.Seen.Whole(m.Page, &a.Asked, a.Left()) }})
		}
		return append(list, key{"esc b n", t.T("[Esc] back"), a.become(choosing)}), a.Busy
	}
	return a.callKeys(m), a.Busy
}

// callKeys are those of the call that is asked about: as it was proposed, or as it was edited.
func (a *approving) callKeys(m *model) (list []key) {
	t, proposed := m.Text, a.Edit.AsProposed()
	cut := a.Edit.Cut
	edit := key{"e", t.T("[e] edit"), a.edit}
	no := []key{
		{"n", t.T("[n] no"), func() { a.Deny("") }},
		{"r", t.T("[r] no, because…"), a.become(reasoning)},
	}
	switch {
	case a.Edit.Refused:
		edit.label, cut = t.T("[e] edit again"), false
		list = append([]key{edit, {"b", t.T("[b] as it was proposed"), a.Propose}, {"y o", "", a.Allow}}, no...)
	case !proposed:
		list = append([]key{{"y o", t.T("[y] once, as edited"), a.Allow}, edit}, no...)
	default:
		cut = a.Seen[a.Review().CallID]
		list = []key{{"y o", t.T("[y] once"), a.Allow}} // yes, oui
		if len(a.Review().Preview.Scopes) > 0 {         // else no answer for longer can cover it
			list = append(list, key{"s", t.T("[s] session"), a.longer(regie.AnswerSession)},
				key{"a", t.T("[a] always"), a.longer(regie.AnswerAlways)})
		}
		list = append(append(list, edit), no...)
	}
	switch {
	case proposed && len(a.Left()) > 1:
		list = append(list, key{"Y", t.T("[Y] yes to all"), a.allowAll}, key{"N", t.T("[N] no to all"), a.DenyLeft})
	case proposed: // pressed once too often
		list = append(list, key{"Y", "", a.allowAll}, key{"N", "", a.DenyLeft})
	}
	if cut {
		list = append(list, key{"v", t.T("[v] whole diff"), a.ShowDiff})
	}
	if proposed && a.listed {
		list = append(list, key{"c", t.T("[c] all calls"), func() { m.Page.Calls(&a.Asked, 0) }})
	}
	return append(list, key{"l esc", t.T("[l] later"), func() { m.putOff(a.Asked.ID) }})
}

// longer returns what has the person choose what an answer for longer covers.
func (a *approving) longer(answer regie.Answer) func() {
	return func() { a.mode, a.picked, a.holds, a.answer = scoping, 0, 0, answer }
}

// allowScope allows what is picked. Calls that it would allow with this one and that have not been
// shown are; Enter once more allows them.
func (a *approving) allowScope() {
	scope := &a.Review().Preview.Scopes[a.picked]
	if more, numbers := chat.Covered(&a.Asked, a.At+1, scope); a.Seen.Show(a.Page, &a.Asked, more) {
		a.m.Note("     ! " + a.m.Text.T("it allows the calls %s with it, as they stand above: Enter once more",
			strings.Join(numbers, ", ")))
		a.Reread()
		return
	}
	d := regie.Decision{CallID: a.Review().CallID, Answer: a.answer, Scope: scope}
	if spans[a.holds] > 0 {
		d.ExpiresAt = time.Now().Add(spans[a.holds])
	}
	a.mode = choosing
	a.Decide([]regie.Decision{d})
}

// allowAll allows all calls that are left. Where some have not been shown they are, and Y is asked
// for once more; so it is where a diff was shortened, unless that was asked before.
func (a *approving) allowAll() {
	left := a.Left()
	if a.Seen.Show(a.Page, &a.Asked, left) || a.mode != all && len(a.Seen.Cut(&a.Asked, left)) > 0 {
		a.mode = all
		a.Reread()
		return
	}
	a.mode = choosing
	chat.AnswerAll(left, regie.AnswerAllow, "")
	a.Decide(left)
}

// edit has the person change the arguments in their editor.
func (a *approving) edit() {
	a.Busy = true
	m, arguments, draft := a.m, a.Review().Arguments, a.Edit.Draft
	var edited []byte
	m.run(tea.Exec(command(func() (err error) {
		edited, err = chat.Edit(m.ctx, m.Editor, arguments, draft)
		return err
	}), func(err error) tea.Msg {
		return done(func() { a.Edited(edited, err) })
	}))
}

// command is a program that has the terminal to itself.
type command func() error

// Run implements tea.ExecCommand.
func (c command) Run() error { return c() }

// SetStdin, SetStdout and SetStderr implement tea.ExecCommand: it has the process's own.
func (command) SetStdin(io.Reader)  {}
func (command) SetStdout(io.Writer) {}
func (command) SetStderr(io.Writer) {}

// decisionWords says in words what the person decided.
func decisionWords(t *text.Printer, d *regie.Decision, calls int) string {
	said := map[regie.Answer]string{
		regie.AnswerAllow: t.T("allowed once"), regie.AnswerDeny: t.T("denied"),
		regie.AnswerSession: t.T("allowed for the rest of this session"),
		regie.AnswerAlways:  t.T("allowed always, in this workspace"),
	}[d.Answer]
	if calls > 1 {
		said += ", " + t.T("%d calls", calls)
	}
	if d.Scope != nil {
		said += ": " + plain.Line(t.Sentence(d.Scope.Sentence))
	}
	if !d.ExpiresAt.IsZero() {
		said += " (" + t.T("until %s", d.ExpiresAt.Local().Format("2006-01-02 15:04")) + ")"
	}
	if len(d.Arguments) > 0 {
		said += ", " + t.T("with edited arguments")
	}
	if d.Reason != "" {
		said += ": " + plain.Line(d.Reason)
	}
	return said
}

func (a *approving) view(m *model) [][]span {
	t, review := m.Text, a.Review()
	if a.Edit.Review != nil {
		review = a.Edit.Review
	}
	said := t.Sentence(review.Preview.Sentence)
	switch {
	case a.mode == all:
		said = t.T("Y again allows these %d calls", len(a.Left()))
	case a.Edit.Refused:
		said = t.T("it cannot run as you have edited it")
	}
	lines := m.screen.question(plain.Line(said))
	switch a.mode {
	case scoping:
		where := t.T("for the rest of this session, without asking:")
		if a.answer == regie.AnswerAlways {
			where = t.T("in every session of this workspace, from now on, without asking:")
		}
		indent := span{text: "  "}
		lines = append(lines, prefixed(wrap([]span{{text: where}}, m.screen.width-4), indent, indent)...)
		var scopes []string
		for i, scope := range review.Preview.Scopes {
			scopes = append(scopes, fmt.Sprintf("%d  %s", i+1, plain.Line(t.Sentence(scope.Sentence))))
		}
		lines = append(lines, m.screen.choices(scopes, a.picked)...)
	case reasoning:
		lines = append(lines, []span{{text: "  " + t.T("tell the agent why (it may be empty):")}})
		lines = append(lines, m.written(&a.reason, span{text: "  "})...)
	}
	return lines
}
