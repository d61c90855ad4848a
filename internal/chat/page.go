package chat

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Page writes what waits for a person, and what became of it (spec 4.4, 4.5). All that comes from a
// model or a tool is made visible: nothing in it acts on the terminal or hides. The first failure
// to write is kept and ends the writing.
type Page struct {
	W    io.Writer
	Text *i18n.Printer
	Now  func() time.Time
	// Everywhere says that several workspaces are shown, each by its name.
	Everywhere bool
	// Inside says that the reader knows the session: it is theirs.
	Inside bool

	err error
}

// Err is the first failure to write.
func (p *Page) Err() error { return p.err }

// writeLine writes a line, which holds nothing that was not made harmless before.
func (p *Page) writeLine(line string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.W, line)
	}
}

// writeNote writes a line below a call or a question.
func (p *Page) writeNote(line string) { p.writeLine("     " + line) }

// Inbox lists what waits: sentences, reasons and warnings without the diffs.
func (p *Page) Inbox(inbox store.Inbox) {
	switch {
	case countWaiting(inbox) == 0 && p.Everywhere:
		p.writeLine(p.Text.T("nothing waits for an answer"))
	case countWaiting(inbox) == 0:
		p.writeLine(p.Text.T("nothing waits for an answer in this workspace (--all: everywhere)"))
	}
	p.writeInbox(inbox, false)
	if n := len(inbox.Approvals); n > 0 {
		id := "ID"
		if n == 1 {
			id = Short(inbox.Approvals[0].ID)
		}
		p.writeLine(p.Text.T("the diffs: regie approvals show %s", id))
		p.writeLine(p.Text.T(
			"to decide: regie approve %s, regie deny %s --reason \"…\"; with the numbers of calls, only those", id, id))
	}
	for i := range inbox.Questions {
		if q := &inbox.Questions[i]; q.Reply == nil {
			p.writeLine(p.Text.T("to answer: regie answer %s", Short(q.ID)+" "+AnswerWith(p.Text, &q.Module)))
		}
	}
}

// Show writes one approval or question with everything: diffs, and what an answer for longer would
// cover.
func (p *Page) Show(inbox store.Inbox) { p.writeInbox(inbox, true) }

func (p *Page) writeInbox(inbox store.Inbox, whole bool) {
	for i := range inbox.Approvals {
		a := &inbox.Approvals[i]
		p.ApprovalHead(a)
		for n := range a.Reviews {
			review := &a.Reviews[n]
			p.Review(n+1, review)
			if !whole {
				continue
			}
			p.Diff(review, 0)
			switch {
			case review.Decision != nil:
			case len(review.Preview.Scopes) == 0:
				p.writeNote(p.Text.T("this call can only be allowed once: its tool proposes no scope"))
			default:
				p.writeNote(p.Text.T("--session and --always can cover (--scope N):"))
				p.Scopes(review.Preview.Scopes)
			}
		}
		p.writeLine("")
	}
	for i := range inbox.Questions {
		p.QuestionHead(&inbox.Questions[i])
		p.Question(&inbox.Questions[i])
		p.writeLine("")
	}
}

// ApprovalHead writes the line above an approval's calls.
func (p *Page) ApprovalHead(a *regie.Approval) {
	p.writeLine(p.Text.T("approval %s", Short(a.ID)) + "  " + p.describeHead(a.CreatedAt,
		p.describeState(string(a.State), a.ExpiresAt),
		a.Workspace, a.SessionName, a.SessionID, a.RoundID))
}

// QuestionHead writes the line above a question.
func (p *Page) QuestionHead(q *regie.Question) {
	p.writeLine(p.Text.T("question %s", Short(q.ID)) + "  " + p.describeHead(q.CreatedAt,
		p.describeState(string(q.State), q.ExpiresAt),
		q.Workspace, q.SessionName, q.SessionID, q.RoundID))
}

// describeState returns the state of an approval or a question in words.
func (p *Page) describeState(state string, expires time.Time) string {
	switch state {
	case string(regie.ApprovalDecided):
		return p.Text.T("decided")
	case string(regie.WaitResolved):
		return p.Text.T("answered")
	case string(regie.ApprovalExpired):
		return p.Text.T("expired")
	case string(regie.ApprovalWithdrawn):
		return p.Text.T("withdrawn")
	}
	return p.describeExpiry(expires)
}

func (p *Page) describeHead(made time.Time, state, workspace, name string, session, round regie.ID) string {
	if p.Inside {
		return state
	}
	parts := p.Text.T("%s ago", p.timeSince(made)) + ", " + state
	if p.Everywhere {
		parts += ", " + sanitize.Line(workspace)
	}
	return parts + "  " + p.Text.T("session %s \"%s\", run %s", Short(session), sanitize.Line(name), round)
}

func (p *Page) describeExpiry(at time.Time) string {
	if at.IsZero() {
		return p.Text.T("never expires")
	}
	if left := at.Sub(p.Now()); left > 0 {
		return p.Text.T("expires in %s", p.formatSpan(left))
	}
	return p.Text.T("expired")
}

// timeSince returns how long ago something was.
func (p *Page) timeSince(at time.Time) string { return p.formatSpan(p.Now().Sub(at)) }

// formatSpan says how long, to the unit that matters.
func (p *Page) formatSpan(d time.Duration) string {
	switch count := func(unit time.Duration) string { return strconv.Itoa(int(d.Round(unit) / unit)) }; {
	case d < time.Minute:
		return p.Text.T("%s s", strconv.Itoa(max(0, int(d/time.Second))))
	case d < time.Hour:
		return p.Text.T("%s min", count(time.Minute))
	case d < 48*time.Hour:
		return p.Text.T("%s h", count(time.Hour))
	default:
		return p.Text.T("%s d", count(24*time.Hour))
	}
}

// Review writes one call: its number, its effect, the grounds for asking, warnings, and the
// decision, if there is one.
func (p *Page) Review(number int, review *regie.Review) {
	p.writeLine(fmt.Sprintf("%3d  %s", number, sanitize.Line(p.Text.Sentence(review.Preview.Sentence))))
	for _, ground := range review.Grounds {
		p.writeNote(p.Text.T("why: %s", sanitize.Line(p.Text.Sentence(ground.Sentence))))
	}
	for _, warning := range review.Preview.Warnings {
		p.writeLine("     ! " + sanitize.Line(p.Text.Sentence(warning)))
	}
	if review.Decision != nil {
		p.writeNote("→ " + p.Text.T("by %s: %s", sanitize.Line(review.Decision.By),
			decisionWords(p.Text, review.Decision, 1)))
	}
}

// decisionWords describes a person's decision about a number of calls.
func decisionWords(t *i18n.Printer, d *regie.Decision, calls int) string {
	said := map[regie.Answer]string{
		regie.AnswerAllow: t.T("allowed once"), regie.AnswerDeny: t.T("denied"),
		regie.AnswerSession: t.T("allowed for the rest of this session"),
		regie.AnswerAlways:  t.T("allowed always, in this workspace"),
	}[d.Answer]
	if calls > 1 {
		said += ", " + t.T("%d calls", calls)
	}
	if d.Scope != nil {
		said += ": " + sanitize.Line(t.Sentence(d.Scope.Sentence))
	}
	if !d.ExpiresAt.IsZero() {
		said += " (" + t.T("until %s", d.ExpiresAt.Local().Format("2006-01-02 15:04")) + ")"
	}
	if len(d.Arguments) > 0 {
		said += ", " + t.T("with edited arguments")
	}
	if d.Reason != "" {
		said += ": " + sanitize.Line(d.Reason)
	}
	return said
}

// Scopes lists what an answer for the session or for always can cover, in words, each with its
// number.
func (p *Page) Scopes(scopes []regie.Scope) {
	for i, scope := range scopes {
		p.writeLine(fmt.Sprintf("     %3d  %s", i+1, sanitize.Line(p.Text.Sentence(scope.Sentence))))
	}
}

// Question writes a question, its options with their numbers, and the answer, if there is one.
func (p *Page) Question(q *regie.Question) {
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Visible(q.Module.Text), "\n"), "\n") {
		p.writeNote(line)
	}
	for i, option := range q.Module.Options {
		p.writeLine(fmt.Sprintf("     %3d  %s", i+1, sanitize.Line(option)))
	}
	if q.Reply != nil {
		p.writeLine("     → " + p.Text.T("%s answered: %s", sanitize.Line(q.Reply.By), ReplyWords(p.Text, q.Reply)))
	}
}

// ReplyWords is the answer to a question in words.
func ReplyWords(t *i18n.Printer, reply *regie.QuestionReply) string {
	said := slices.Clone(reply.Choices)
	switch {
	case reply.Yes != nil && *reply.Yes:
		said = append(said, t.T("yes"))
	case reply.Yes != nil:
		said = append(said, t.T("no"))
	}
	if reply.Text != "" {
		said = append(said, reply.Text)
	}
	return sanitize.Line(strings.Join(said, ", "))
}
