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
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// shownDiff is how many lines of a diff are written with what is asked; v writes the rest.
const shownDiff = 200

// ask reads what the session waits for, and puts the first of it to the person.
func (m *model) ask() tea.Cmd {
	m.due, m.asking = false, true
	session := m.session
	return m.do(func(ctx context.Context) func() tea.Cmd {
		inbox, err := m.Control.Inbox(ctx, store.InboxFilter{SessionID: session})
		return func() tea.Cmd {
			m.asking = false
			if err != nil {
				m.told(err)
				return nil
			}
			if session != m.session || !waiting(m.state) || m.dialog != nil {
				return nil
			}
			for i := range inbox.Approvals {
				if !m.later[inbox.Approvals[i].ID] {
					return m.put(&approving{asked: inbox.Approvals[i]})
				}
			}
			for i := range inbox.Questions {
				if !m.later[inbox.Questions[i].ID] {
					return m.put(&questioning{asked: inbox.Questions[i], chosen: map[int]bool{}})
				}
			}
			return nil
		}
	})
}

// put shows something that waits for the person, and calls them.
func (m *model) put(d interface {
	dialog
	begin(m *model)
},
) tea.Cmd {
	m.paper.flush()
	m.paper.space()
	m.open(d)
	d.begin(m)
	return m.bell.ring(m.Text.T("waits for your answer"), time.Since(m.began))
}

// putOff leaves something in the inbox.
func (m *model) putOff(id regie.ID) tea.Cmd {
	m.later[id] = true
	m.note(m.Text.T("it stays in the inbox: regie approvals show %s", chat.Short(id)))
	m.closeDialog()
	m.due = waiting(m.state) // for what else waits
	return nil
}

// approving puts an approval to the person, call by call.
type approving struct {
	asked  regie.Approval
	i      int
	cut    bool // the diff was shortened
	mode   approvalMode
	answer regie.Answer // for longer: for the session, or always
	picked int          // among the scopes
	holds  int          // among spans
	reason editor
	draft  []byte // of edited arguments
	busy   bool
	covers bool // what is being decided follows from an answer for longer
}

// approvalMode is what of an approval the keys are for.
type approvalMode int

const (
	choosing approvalMode = iota
	scoping
	reasoning
)

// spans are how long an answer for longer may hold; zero has no end.
var spans = []time.Duration{0, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}

func (a *approving) review() *regie.Review { return &a.asked.Reviews[a.i] }

func (a *approving) begin(m *model) {
	m.page.ApprovalHead(&a.asked)
	a.i = -1
	a.advance(m)
}

// advance shows the next call that nobody has decided, or closes.
func (a *approving) advance(m *model) {
	a.mode, a.draft, a.busy = choosing, nil, false
	for a.i++; a.i < len(a.asked.Reviews); a.i++ {
		if a.review().Decision != nil {
			continue
		}
		if len(a.asked.Reviews) > 1 {
			m.note(m.Text.T("call %d of %d:", a.i+1, len(a.asked.Reviews)))
		}
		m.page.Review(a.i+1, a.review())
		a.cut = m.page.Diff(a.review(), shownDiff)
		return
	}
	m.closeDialog()
	m.due = waiting(m.state) // another approval, or a question, may wait beside it
}

func (a *approving) key(m *model, name, typed string) tea.Cmd {
	if a.busy {
		return nil
	}
	switch a.mode {
	case scoping:
		return a.scopeKey(m, name, typed)
	case reasoning:
		return a.reasonKey(m, name, typed)
	}
	call := []regie.Decision{{CallID: a.review().CallID}}
	switch typed {
	case "y", "o": // yes, oui
		chat.AnswerAll(call, regie.AnswerAllow, "")
		return a.decide(m, call)
	case "Y", "N":
		all := chat.Undecided(&a.asked, a.i)
		answer := regie.AnswerAllow
		if typed == "N" {
			answer = regie.AnswerDeny
		}
		chat.AnswerAll(all, answer, "")
		return a.decide(m, all)
	case "n":
		chat.AnswerAll(call, regie.AnswerDeny, "")
		return a.decide(m, call)
	case "r":
		a.mode, a.reason = reasoning, editor{}
	case "s", "a":
		if len(a.review().Preview.Scopes) == 0 {
			m.hint = m.Text.T("this call can only be allowed once: its tool proposes nothing wider")
			return nil
		}
		a.mode, a.picked, a.holds, a.answer = scoping, 0, 0, regie.AnswerSession
		if typed == "a" {
			a.answer = regie.AnswerAlways
		}
	case "e":
		return a.edit(m)
	case "v":
		m.page.Diff(a.review(), 0)
	case "l":
		return m.putOff(a.asked.ID)
	default:
		if name == "esc" {
			return m.putOff(a.asked.ID)
		}
	}
	return nil
}

func (a *approving) scopeKey(m *model, name, typed string) tea.Cmd {
	scopes := a.review().Preview.Scopes
	if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(scopes) {
		a.picked = n - 1
		return nil
	}
	switch {
	case name == "esc" || typed == "b":
		a.mode = choosing
	case name == "up":
		a.picked = max(0, a.picked-1)
	case name == "down":
		a.picked = min(len(scopes)-1, a.picked+1)
	case typed == "t":
		a.holds = (a.holds + 1) % len(spans)
	case name == "enter":
		d := regie.Decision{CallID: a.review().CallID, Answer: a.answer, Scope: &scopes[a.picked]}
		if spans[a.holds] > 0 {
			d.ExpiresAt = time.Now().Add(spans[a.holds])
		}
		return a.decide(m, []regie.Decision{d})
	}
	return nil
}

func (a *approving) reasonKey(m *model, name, typed string) tea.Cmd {
	switch name {
	case "esc":
		a.mode = choosing
	case "enter":
		d := regie.Decision{CallID: a.review().CallID, Answer: regie.AnswerDeny, Reason: strings.TrimSpace(a.reason.value())}
		return a.decide(m, []regie.Decision{d})
	default:
		if !a.reason.key(name) {
			m.fits(a.reason.insert(typed))
		}
	}
	return nil
}

// paste takes what is pasted where a reason is written.
func (a *approving) paste(s string) (writes, fits bool) {
	if a.mode != reasoning {
		return false, true
	}
	return true, a.reason.paste(strings.Join(strings.Fields(s), " "))
}

// decide stores decisions.
func (a *approving) decide(m *model, decisions []regie.Decision) tea.Cmd {
	a.busy = true
	m.hold()
	in := dispatch.DecideRequest{ApprovalID: a.asked.ID, Request: regie.NewID().String(), Decisions: decisions}
	return m.do(func(ctx context.Context) func() tea.Cmd {
		_, err := m.Control.Decide(ctx, in)
		return func() tea.Cmd { return tea.Batch(a.decided(m, decisions, err), m.release()) }
	})
}

func (a *approving) decided(m *model, decisions []regie.Decision, err error) tea.Cmd {
	a.busy = false
	if err != nil {
		m.told(err)
		switch regie.CodeOf(err) {
		case regie.CodeConflict: // somebody else has answered, this call or another one: nothing of this answer is stored
			return a.again(m)
		case regie.CodeExpired, regie.CodeNotFound:
			m.overtaken(a)
			m.due = waiting(m.state)
			return nil
		}
		a.mode = choosing
		return nil
	}
	for i := range decisions {
		for n := range a.asked.Reviews {
			if a.asked.Reviews[n].CallID == decisions[i].CallID {
				a.asked.Reviews[n].Decision = &decisions[i]
			}
		}
	}
	if !a.covers {
		m.note("     → " + m.decision(&decisions[0], len(decisions)))
	}
	a.covers = false
	if scope := decisions[0].Scope; scope != nil {
		if more, numbers := chat.Covered(&a.asked, a.i+1, scope); len(more) > 0 {
			m.note("     " + m.Text.T("that covers, and allows, the calls %s", strings.Join(numbers, ", ")))
			a.covers = true
			return a.decide(m, more)
		}
	}
	if m.dialog == dialog(a) {
		a.advance(m)
	}
	return nil
}

// decision says in words what the person decided.
func (m *model) decision(d *regie.Decision, calls int) string {
	var said string
	switch {
	case d.Answer == regie.AnswerDeny && calls > 1:
		said = m.Text.T("denied: %d calls", calls)
	case d.Answer == regie.AnswerDeny:
		said = m.Text.T("denied")
	case d.Answer == regie.AnswerSession:
		said = m.Text.T("allowed for the rest of this session")
	case d.Answer == regie.AnswerAlways:
		said = m.Text.T("allowed always, in this workspace")
	case calls > 1:
		said = m.Text.T("allowed once: %d calls", calls)
	default:
		said = m.Text.T("allowed once")
	}
	if d.Scope != nil {
		said += ": " + plain.Line(m.Text.Sentence(d.Scope.Sentence))
	}
	if !d.ExpiresAt.IsZero() {
		said += " (" + m.Text.T("until %s", d.ExpiresAt.Local().Format("2006-01-02 15:04")) + ")"
	}
	if len(d.Arguments) > 0 {
		said += ", " + m.Text.T("with edited arguments")
	}
	if d.Reason != "" {
		said += ": " + plain.Line(d.Reason)
	}
	return said
}

// edit has the person change the arguments in their editor.
func (a *approving) edit(m *model) tea.Cmd {
	a.busy = true
	review := *a.review()
	run := &editing{ctx: m.ctx, editor: m.Editor, review: &review, draft: a.draft}
	return tea.Exec(run, func(error) tea.Msg {
		return done(func() tea.Cmd {
			a.busy, a.draft = false, run.edited
			if run.err != nil {
				m.told(run.err)
				return nil
			}
			return a.decide(m, []regie.Decision{{CallID: review.CallID, Answer: regie.AnswerAllow, Arguments: run.edited}})
		})
	})
}

// editing is a person's editor with the arguments of a call; it has the terminal to itself.
type editing struct {
	ctx    context.Context
	editor chat.Editor
	review *regie.Review
	draft  []byte
	edited []byte
	err    error
}

// Run implements tea.ExecCommand.
func (e *editing) Run() error {
	e.edited, e.err = chat.Edit(e.ctx, e.editor, e.review.Arguments, e.draft)
	return nil
}

// SetStdin, SetStdout and SetStderr implement tea.ExecCommand: the editor has the process's own.
func (e *editing) SetStdin(io.Reader)  {}
func (e *editing) SetStdout(io.Writer) {}
func (e *editing) SetStderr(io.Writer) {}

func (a *approving) view(m *model) [][]span {
	width, t := m.screen.width-2, m.Text
	said := plain.Line(t.Sentence(a.review().Preview.Sentence))
	lines := [][]span{{{"? ", style{fg: yellow, bold: true}}, {cut(said, width-2), style{bold: true}}}}
	switch a.mode {
	case scoping:
		where := t.T("for the rest of this session, without asking:")
		if a.answer == regie.AnswerAlways {
			where = t.T("in every session of this workspace, from now on, without asking:")
		}
		lines = append(lines, []span{{text: "  " + where}})
		for i, scope := range a.review().Preview.Scopes {
			lines = m.choice(lines, i == a.picked, "", fmt.Sprintf("%d  ", i+1), plain.Line(t.Sentence(scope.Sentence)), width)
		}
		holds := t.T("without end")
		if d := spans[a.holds]; d > 0 {
			holds = t.T("for %s h", strconv.Itoa(int(d.Hours())))
		}
		return append(lines, m.keys(len(lines), t.T("[Enter] allow"), t.T("[t] it holds: %s", holds), t.T("[Esc] back"))...)
	case reasoning:
		rows, _, _ := a.reason.rows(width-4, m.pasted)
		lines = append(lines, []span{{text: "  " + t.T("tell the agent why (it may be empty):")}})
		for i, r := range rows {
			after := span{}
			if i == len(rows)-1 {
				after = span{" ", style{reverse: true}}
			}
			lines = append(lines, []span{{text: "  " + r.text}, after})
		}
		m.screen.from, m.screen.to = len(lines)-1, len(lines)
		return append(lines, m.keys(len(lines), t.T("[Enter] deny"), t.T("[Esc] back"))...)
	}
	list := []string{t.T("[y] once")}
	if len(a.review().Preview.Scopes) > 0 { // else no answer for longer can cover it
		list = append(list, t.T("[s] session"), t.T("[a] always"))
	}
	list = append(list, t.T("[e] edit"), t.T("[n] no"), t.T("[r] no, because…"))
	if len(chat.Undecided(&a.asked, a.i)) > 1 {
		list = append(list, t.T("[Y] yes to all"), t.T("[N] no to all"))
	}
	if a.cut {
		list = append(list, t.T("[v] whole diff"))
	}
	return append(lines, m.keys(len(lines), append(list, t.T("[l] later"))...)...)
}

// choice adds one of several things, marked where it is picked. number is what it is called by; in a tiny terminal it goes before anything of the text does.
func (m *model) choice(above [][]span, picked bool, box, number, text string, width int) [][]span {
	indent := "       " // below the text, behind its number
	if width < 40 {
		indent = "    "
	}
	edge, mark, s := "  ", "  ", style{}
	if picked {
		mark, s = "▸ ", style{bold: true, fg: cyan}
	}
	out := wrap([]span{{box + number + text, s}}, width-len(indent))
	if picked && m.screen.height < tiny && len(out) > 1 {
		out = wrap([]span{{mark + box + text, s}}, m.screen.width-1)
		edge, mark, indent = "", "", ""
	}
	for i, line := range out {
		before := edge + mark
		if i > 0 {
			before = indent
		}
		out[i] = append([]span{{before, s}}, line...)
	}
	if picked {
		m.screen.from, m.screen.to = len(above), len(above)+len(out)
	}
	return append(above, out...)
}

// keys are what can be pressed, on as many lines as they need; below so many lines of what is asked. Where they have no room they stand without their words.
func (m *model) keys(below int, list ...string) [][]span {
	width := m.screen.width - 2
	out := rows(width, "  ", list)
	if below+len(out) > m.screen.room {
		marks := make([]string, len(list))
		for i, one := range list {
			marks[i], _, _ = strings.Cut(one, " ")
		}
		out = rows(width+1, "", marks)
	}
	m.screen.keys = len(out)
	return out
}

// rows puts keys beside each other.
func rows(width int, before string, list []string) [][]span {
	var out [][]span
	var line []span
	used := 0
	for _, one := range list {
		n := len([]rune(before + one))
		if used > 0 && used+n > width {
			out, line, used = append(out, line), nil, 0
		}
		mark, rest, found := strings.Cut(one, " ")
		line = append(line, span{before + mark, style{fg: cyan}})
		if found {
			line = append(line, span{text: " " + rest})
		}
		used += n
	}
	return append(out, line)
}
