package chat

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// FindSession returns the one session that a person names: by its id or that of one of its runs, by
// the last four or more characters of one, by its first eight or more, or as "last", the one of the
// workspace at root where something happened last. Errors are those of Find.
func FindSession(ctx context.Context, control Control, root, name string) (store.SessionSummary, error) {
	return findSession(ctx, control, root, name, "")
}

// findSession is FindSession, of which the last one is one of a kind; "" is any.
func findSession(ctx context.Context, control Control, root, name string,
	last regie.SessionType,
) (store.SessionSummary, error) {
	filter := store.SessionFilter{Root: root, Limit: 1, Type: last}
	none := regie.Errorf(regie.CodeNotFound, "there is no chat in this workspace yet: start one with regie chat")
	if name != "last" {
		filter = store.SessionFilter{Root: root}
		none = regie.Errorf(regie.CodeNotFound, "there is no chat %s in this workspace: see regie sessions list", name)
		var err error
		if filter.ID, filter.Short, err = idOrPart(name); err != nil {
			return store.SessionSummary{}, err
		}
	}
	found, err := control.Sessions(ctx, filter)
	if err != nil {
		return store.SessionSummary{}, err
	}
	session, err := pickOne(found, func(s *store.SessionSummary) regie.ID { return s.ID }, nil, name, none)
	if err != nil {
		return store.SessionSummary{}, err
	}
	return *session, nil
}

// Sessions lists sessions, each with its state and what is new in it (decision 45).
func (p *Page) Sessions(list []store.SessionSummary) {
	if len(list) == 0 {
		if p.Everywhere {
			p.line(p.Text.T("no sessions yet"))
		} else {
			p.line(p.Text.T("no sessions in this workspace (--all: everywhere)"))
		}
	}
	for i := range list {
		s := &list[i]
		line := Short(s.ID) + "  " + fmt.Sprintf("%-18s", stateOf(s)) + "  " +
			p.Text.T("%s ago", p.span(p.Now().Sub(s.LastActivity))) + "  " + plain.Line(s.Name)
		if news := p.news(s); news != "" {
			line += "  (" + news + ")"
		}
		p.line(line)
		if s.ForkedFrom != nil {
			p.line("          " + p.forkedFrom(s.ForkedFrom))
		}
		if p.Everywhere {
			p.line("          " + p.Text.T("in the workspace %s", plain.Line(s.Workspace)))
		}
	}
}

// stateOf is a session's state, with what closed it (decision 44).
func stateOf(s *store.SessionSummary) string {
	if s.QueuePosition > 0 { // its place among those that wait for a slot
		return string(s.State) + " " + strconv.Itoa(s.QueuePosition)
	}
	if s.EndReason == "" {
		return string(s.State)
	}
	return string(s.State) + " " + string(s.EndReason)
}

// news is what somebody who comes back wants to know first.
func (p *Page) news(s *store.SessionSummary) string {
	switch {
	case s.Finished && s.Unread > 0:
		return p.Text.T("finished while you were away") + ", " + p.unread(s.Unread)
	case s.Finished:
		return p.Text.T("finished while you were away")
	case s.Unread > 0:
		return p.unread(s.Unread)
	default:
		return ""
	}
}

func (p *Page) unread(n int) string {
	if n == 1 {
		return p.Text.T("1 unread")
	}
	return p.Text.T("%d unread", n)
}

// Messages is a number of messages in words.
func Messages(t *text.Printer, n int) string {
	if n == 1 {
		return t.T("1 message")
	}
	return t.T("%d messages", n)
}

func (p *Page) forkedFrom(f *regie.ForkPoint) string {
	return p.Text.T("forked from %s at %s", Short(f.SessionID), strconv.FormatInt(f.Seq, 10))
}

// Session writes a session with its thread in order: who said what when, and what was called (spec
// 10.1).
func (p *Page) Session(view *store.SessionView) {
	s := &view.SessionSummary
	p.line(p.Text.T("session %s", s.ID.String()) + "  " + plain.Line(s.Name))
	p.line("  " + string(s.Type) + " " + stateOf(s) + "  " + p.Text.T("made %s",
		s.CreatedAt.Local().Format("2006-01-02 15:04:05")) + "  " + plain.Line(s.Root))
	p.line("  " + p.Text.T("agent") + "  " + plain.Line(s.Agent) + "  " + p.Text.T("model") + " " +
		plain.Line(s.Provider) + " / " + plain.Line(s.Model))
	if s.ForkedFrom != nil {
		p.line("  " + p.forkedFrom(s.ForkedFrom) + "; " + p.Text.T("the files of the workspace were not forked"))
	}
	for _, fork := range view.Forks {
		p.line("  " + p.Text.T("forked as %s", Short(fork)))
	}
	for i := range view.Thread {
		p.message(&view.Thread[i])
	}
	p.undos(view.Undos)
	for i := range view.Pending {
		p.line("")
		p.line("     " + p.Text.T("waits for its turn") + ": " +
			plain.Line(oneLine(view.Pending[i].Message.LinearText())))
	}
	p.line("")
	p.line(p.Text.T("messages: %d, runs: %d", s.Messages, s.Rounds) + ", " + Cost(p.Text, view.Spent))
	if n := len(view.History); n > 0 && !view.History[n-1].EndNote.IsZero() {
		last := &view.History[n-1]
		p.line(p.Text.T("the last run ended: %s", string(last.End)+", "+plain.Line(p.Text.Sentence(last.EndNote))))
	}
	switch {
	case view.AuditError != "":
		p.line(p.Text.T("log") + "  " + plain.Line(view.AuditError))
	case view.Audit != nil:
		p.line(p.Text.T("log") + "  " + p.Text.T("%d events, chain verified", view.Audit.Events))
	}
}

// message writes one message with its place in the log, by which a fork names it.
func (p *Page) message(m *store.MessageView) {
	at := m.Time
	if m.Message.Copied != nil {
		at = m.Message.Copied.At
	}
	p.line("")
	p.line(fmt.Sprintf("%4d  %s  ", m.Seq, at.Local().Format("2006-01-02 15:04:05")) +
		p.Speaker(&m.Message) + p.superseded(m.Superseded))
	for line := range strings.SplitSeq(strings.TrimRight(plain.Visible(Said(p.Text, &m.Message)), "\n"), "\n") {
		if line != "" {
			p.line("      " + line)
		}
	}
	if s := m.Message.System; s != nil && len(s.CallIDs) > 0 && !m.Message.Enriching() {
		p.line("      " + p.Text.T("(results: %d)", len(s.CallIDs)))
	}
	for i := range m.Calls {
		p.call(&m.Calls[i])
	}
}

// Told is what a notice of the system tells a person.
func Told(t *text.Printer, m *regie.SystemContent) string {
	if len(m.Said) == 0 {
		return m.Summary
	}
	return said(t, m.Said)
}

// Said is what a message says to a person.
func Said(t *text.Printer, m *regie.Message) string {
	switch {
	case m.AI != nil:
		return m.AI.Text()
	case m.Enriching(): // its calls say it all
		return ""
	case m.System != nil:
		return Told(t, m.System)
	case len(m.Rich) > 0:
		return m.LinearText()
	default:
		return m.Text
	}
}

// Speaker says who a message is from.
func (p *Page) Speaker(m *regie.Message) string {
	switch {
	case m.System != nil:
		return string(m.System.Type)
	case m.Sender == regie.SenderUser, m.AI != nil && m.Author.Kind == regie.AuthorUser: // a command of their own
		return p.Text.T("you")
	case m.Author.Model != "":
		model := plain.Line(m.Author.Model)
		if m.Author.Provider != "" { // not the run's own
			model = plain.Line(m.Author.Provider) + " / " + model + ", " +
				p.Text.T("in place of the run's own provider")
		}
		return plain.Line(m.Author.ID) + " (" + model + ")" + p.cached(m)
	default:
		return plain.Line(m.Author.ID)
	}
}

// cached marks an answer from the response cache (spec 6.4), with when the model gave it.
func (p *Page) cached(m *regie.Message) string {
	if m.AI == nil || m.AI.Cached.IsZero() {
		return ""
	}
	return "  " + p.Text.T("(from the response cache, answered %s)", m.AI.Cached.Local().Format("2006-01-02 15:04:05"))
}

// CachedLine says of an answer that it came from the response cache, "" of any other.
func CachedLine(t *text.Printer, m *regie.Message, now time.Time) string {
	if m.AI == nil || m.AI.Cached.IsZero() {
		return ""
	}
	age := now.Sub(m.AI.Cached).Round(time.Second)
	if age >= time.Hour {
		age = age.Round(time.Minute)
	}
	return t.T("(from the response cache, answered %s ago; --no-cache asks the model)", max(age, 0).String())
}

func (p *Page) call(c *regie.Call) {
	state := string(c.State)
	if c.NotRun != "" {
		state += " " + string(c.NotRun)
	}
	outcome := c.Result
	if c.Error != nil {
		outcome = string(c.Error.Code) + ": " + c.Error.Message
	}
	p.line(fmt.Sprintf("   %2d %s %s", c.Ordinal+1, plain.Line(c.Tool), plain.Line(oneLine(c.Arguments))))
	if len(c.Executed) > 0 {
		p.line("      " + p.Text.T("with edited arguments") + ": " + plain.Line(oneLine(string(c.Executed))))
	}
	p.line("      " + state + "  " + plain.Line(oneLine(outcome)))
	if c.Resolution != nil {
		p.line("      " + p.Text.T("%s found out: %s", plain.Line(c.Resolution.By), string(c.Resolution.As)) + " " +
			plain.Line(c.Resolution.Note))
	}
}

// shownText is how much of a text is shown on its line, in characters.
const shownText = 100

func oneLine(s string) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > shownText {
		return string(runes[:shownText-1]) + "…"
	}
	return string(runes)
}

// Logs reports what verifying logs found, and how many of them are not what was written (spec
// 11.4).
func (p *Page) Logs(reports []store.LogReport) (broken int) {
	logs := 0
	for i := range reports {
		r := &reports[i]
		what := p.Text.T("session %s", Short(r.ID))
		switch {
		case r.Kind == "workspace" && r.Events == 0 && r.Error == "":
			continue // it has no rules and never had any
		case r.Kind == "user":
			what = p.Text.T("tokens of %s", plain.Line(r.Name))
		case r.Kind == "workspace":
			what = p.Text.T("rules of %s", plain.Line(r.Name))
		case r.Removed:
			what += "  " + p.Text.T("(removed)")
		default:
			what += "  " + plain.Line(r.Name)
		}
		logs++
		if r.Error != "" {
			broken++
			p.line("✗ " + what)
			p.line("    " + plain.Line(r.Error))
			continue
		}
		state := p.Text.T("%d events, chain verified", r.Events)
		if r.Erased > 0 {
			state += ", " + p.Text.T("%d erased", r.Erased)
		}
		p.line("✓ " + what + "  " + state)
	}
	p.line("")
	p.line(p.Text.T("logs: %d, not what was written: %d", logs, broken))
	return broken
}
