package tui

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

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
				if !m.Later[inbox.Approvals[i].ID] {
					m.put(newApproving(m, inbox.Approvals[i]))
					return
				}
			}
			for i := range inbox.Questions {
				if !m.Later[inbox.Questions[i].ID] {
					m.put(&questioning{asked: inbox.Questions[i], chosen: map[int]bool{}})
					return
				}
			}
		}
	})
}

// put shows something that waits for the person, and calls them.
func (m *model) put(d interface {
	dialog
	begin(m *model)
},
) {
	m.paper.flush()
	m.paper.space()
	m.open(d)
	d.begin(m)
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
	all    bool // all that are left stand there, and Y once more allows them
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
	scoping
	reasoning
)

// spans are how long an answer for longer may hold; zero has no end.
var spans = []time.Duration{0, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}

func (a *approving) begin(*model) {
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

// Moved implements chat.BatchHost. What the person has typed for a call that others have decided
// stands in the prompt.
func (a *approving) Moved() {
	if !a.own && a.m.armed {
		a.m.sweep(a.written())
	}
	a.mode, a.all, a.own, a.reason = choosing, false, false, editor{}
	a.Show()
}

// Closed implements chat.BatchHost.
func (a *approving) Closed() {
	if a.own {
		a.m.closeDialog()
	} else {
		a.m.overtaken(a)
	}
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

func (a *approving) key(m *model, name, typed string) {
	proposed := a.Edit.AsProposed()
	switch {
	case a.Busy:
	case a.mode == scoping:
		a.scopeKey(m, name, typed)
	case a.mode == reasoning:
		a.reasonKey(m, name, typed)
	case a.all:
		a.allKey(name, typed)
	case typed == "y" || typed == "o": // yes, oui
		a.Allow()
	case typed == "Y" && proposed:
		a.allowAll()
	case typed == "N" && proposed:
		a.DenyLeft()
	case typed == "n":
		a.Deny("")
	case typed == "r":
		a.mode = reasoning
	case (typed == "s" || typed == "a") && proposed:
		if !a.HasScopes() {
			return
		}
		a.mode, a.picked, a.holds, a.answer = scoping, 0, 0, regie.AnswerSession
		if typed == "a" {
			a.answer = regie.AnswerAlways
		}
	case typed == "b" && a.Edit.Refused:
		a.Propose()
	case typed == "e":
		a.edit(m)
	case typed == "v":
		a.ShowDiff()
	case typed == "c":
		m.Page.Calls(&a.Asked, 0)
	case typed == "l" || name == "esc":
		m.putOff(a.Asked.ID)
	}
}

func (a *approving) scopeKey(m *model, name, typed string) {
	scopes := a.Review().Preview.Scopes
	if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(scopes) {
		a.picked = n - 1
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
	case typed == "v":
		a.Seen.Whole(m.Page, &a.Asked, a.along())
	case name == "enter":
		d := regie.Decision{CallID: a.Review().CallID, Answer: a.answer, Scope: &scopes[a.picked]}
		if spans[a.holds] > 0 {
			d.ExpiresAt = time.Now().Add(spans[a.holds])
		}
		if !a.showsAlong(m, d.Scope) {
			a.mode = choosing
			a.Decide([]regie.Decision{d})
		}
	}
}

func (a *approving) reasonKey(m *model, name, typed string) {
	switch name {
	case "esc":
		a.mode = choosing
	case "enter":
		a.mode = choosing
		a.Deny(strings.TrimSpace(a.reason.value()))
	default:
		if !a.reason.key(name) {
			m.fits(a.reason.insert(typed))
		}
	}
}

// paste takes what is pasted where a reason is written.
func (a *approving) paste(s string) (writes, fits bool) {
	if a.mode != reasoning {
		return false, true
	}
	return true, a.reason.paste(strings.Join(strings.Fields(s), " "))
}

// decisionWords says in words what the person decided.
func decisionWords(t *text.Printer, d *regie.Decision, calls int) string {
	var said string
	switch {
	case d.Answer == regie.AnswerDeny && calls > 1:
		said = t.T("denied: %d calls", calls)
	case d.Answer == regie.AnswerDeny:
		said = t.T("denied")
	case d.Answer == regie.AnswerSession:
		said = t.T("allowed for the rest of this session")
	case d.Answer == regie.AnswerAlways:
		said = t.T("allowed always, in this workspace")
	case calls > 1:
		said = t.T("allowed once: %d calls", calls)
	default:
		said = t.T("allowed once")
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
	width, t := m.screen.width-2, m.Text
	review := a.Review()
	if a.Edit.Review != nil {
		review = a.Edit.Review
	}
	said := t.Sentence(review.Preview.Sentence)
	if a.Edit.Refused {
		said = t.T("it cannot run as you have edited it")
	}
	lines := m.screen.question(plain.Line(said))
	switch a.mode {
	case scoping:
		where := t.T("for the rest of this session, without asking:")
		if a.answer == regie.AnswerAlways {
			where = t.T("in every session of this workspace, from now on, without asking:")
		}
		for _, line := range wrap([]span{{text: where}}, width-2) {
			lines = append(lines, append([]span{{text: "  "}}, line...))
		}
		for i, scope := range a.Review().Preview.Scopes {
			lines = m.screen.choice(lines, i == a.picked, "", fmt.Sprintf("%d  ", i+1),
				plain.Line(t.Sentence(scope.Sentence)), width)
		}
		holds := t.T("without end")
		if d := spans[a.holds]; d > 0 {
			holds = t.T("for %s h", strconv.Itoa(int(d.Hours())))
		}
		list := []string{t.T("[Enter] allow"), t.T("[t] it holds: %s", holds)}
		if len(a.Seen.Cut(&a.Asked, a.along())) > 0 {
			list = append(list, t.T("[v] whole diff"))
		}
		return append(lines, m.screen.keyLines(len(lines), append(list, t.T("[Esc] back"))...)...)
	case reasoning:
		lines = append(lines, []span{{text: "  " + t.T("tell the agent why (it may be empty):")}})
		lines = m.field(lines, &a.reason, span{text: "  "})
		return append(lines, m.screen.keyLines(len(lines), t.T("[Enter] deny"), t.T("[Esc] back"))...)
	}
	switch {
	case a.all:
		return a.viewAll(m)
	case !a.Edit.AsProposed():
		return append(lines, m.screen.keyLines(len(lines), editedKeys(t, &a.Edit)...)...)
	}
	list := []string{t.T("[y] once")}
	if len(a.Review().Preview.Scopes) > 0 { // else no answer for longer can cover it
		list = append(list, t.T("[s] session"), t.T("[a] always"))
	}
	list = append(list, t.T("[e] edit"), t.T("[n] no"), t.T("[r] no, because…"))
	if len(a.Left()) > 1 {
		list = append(list, t.T("[Y] yes to all"), t.T("[N] no to all"))
	}
	if a.Seen[a.Review().CallID] {
		list = append(list, t.T("[v] whole diff"))
	}
	if a.listed {
		list = append(list, t.T("[c] all calls"))
	}
	return append(lines, m.screen.keyLines(len(lines), append(list, t.T("[l] later"))...)...)
}

// field adds what is being written into a dialog, with its cursor.
func (m *model) field(above [][]span, e *editor, mark span) [][]span {
	rows, _, _ := e.rows(m.screen.width-6, m.pasted)
	for i, r := range rows {
		after := span{}
		if i == len(rows)-1 {
			after = span{" ", style{reverse: true}}
		}
		above = append(above, []span{mark, {text: r.text}, after})
	}
	m.screen.from, m.screen.to = len(above)-1, len(above)
	return above
}

// choice adds one of several things, marked where it is picked. number is what it is called by; in
// a tiny terminal it goes before anything of the text does.
func (s *screen) choice(above [][]span, picked bool, box, number, text string, width int) [][]span {
	indent := "       " // below the text, behind its number
	if width < 40 {
		indent = "    "
	}
	edge, mark, look := "  ", "  ", style{}
	if picked {
		mark, look = "▸ ", style{bold: true, fg: cyan}
	}
	out := wrap([]span{{box + number + text, look}}, width-len(indent))
	if picked && s.height < tiny && len(out) > 1 {
		out = wrap([]span{{mark + box + text, look}}, s.width-1)
		edge, mark, indent = "", "", ""
	}
	for i, line := range out {
		before := edge + mark
		if i > 0 {
			before = indent
		}
		out[i] = append([]span{{before, look}}, line...)
	}
	if picked {
		s.from, s.to = len(above), len(above)+len(out)
	}
	return append(above, out...)
}

// keyLines are what can be pressed, on as many lines as they need; below so many lines of what is
// asked. Where they have no room they stand without their words.
func (s *screen) keyLines(below int, list ...string) [][]span {
	width := s.width - 2
	out := rows(width, "  ", list)
	if below+len(out) > s.room {
		marks := make([]string, len(list))
		for i, one := range list {
			marks[i], _, _ = strings.Cut(one, " ")
		}
		out = rows(width+1, "", marks)
	}
	s.keys = len(out)
	return out
}

// rows puts keys beside each other.
func rows(width int, before string, list []string) [][]span {
	var out [][]span
	var line []span
	used := 0
	for _, one := range list {
		n := ansi.StringWidth(before + one)
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
	var whole [][]span
	for _, line := range append(out, line) {
		if wide(line) <= width+1 {
			whole = append(whole, line)
			continue
		}
		for i, part := range wrap(line, width-1) { // one key alone, longer than a line
			if i > 0 {
				part = append([]span{{text: before}}, part...)
			}
			whole = append(whole, part)
		}
	}
	return whole
}
