package chat

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// FindSession returns the one session that a person names: by its id or that of one of its runs, by
// the last four or more characters of one, by its first eight or more, or as "last", the one of the
// workspace at root where something happened last. Errors are those of Find.
func FindSession(ctx context.Context, control Control, root, name string) (store.SessionSummary, error) {
	return findSession(ctx, control, root, name, "")
}

// findSession is FindSession with "last" limited to one type of session; "" is any type.
func findSession(ctx context.Context, control Control, root, name string,
	last regie.SessionType,
) (store.SessionSummary, error) {
	filter := store.SessionFilter{Root: root}
	none := regie.Errorf(regie.CodeNotFound, "there is no chat %s in this workspace: see regie sessions list", name)
	if name == "last" {
		filter.Limit, filter.Type = 1, last
		none = regie.Errorf(regie.CodeNotFound, "there is no chat in this workspace yet: start one with regie chat")
	}
	return findOne(name, none, func(s *store.SessionSummary) regie.ID { return s.ID },
		func(id regie.ID, part string) ([]store.SessionSummary, error) {
			filter.ID, filter.Short = id, part
			return control.Sessions(ctx, filter)
		})
}

// Sessions lists sessions, each with its state and its news (decision 45).
func (p *Page) Sessions(list []store.SessionSummary) {
	switch {
	case len(list) == 0 && p.Everywhere:
		p.writeLine(p.Text.T("no sessions yet"))
	case len(list) == 0:
		p.writeLine(p.Text.T("no sessions in this workspace (--all: everywhere)"))
	}
	for i := range list {
		s := &list[i]
		line := Short(s.ID) + "  " + fmt.Sprintf("%-18s", stateOf(s)) + "  " +
			p.Text.T("%s ago", p.timeSince(s.LastActivity)) + "  " + sanitize.Line(s.Name)
		var news []string // the first things that a returning person wants to know
		if s.Finished {
			news = append(news, p.Text.T("finished while you were away"))
		}
		if s.Unread > 0 {
			news = append(news, p.Text.T("%d unread", s.Unread))
		}
		if len(news) > 0 {
			line += "  (" + strings.Join(news, ", ") + ")"
		}
		p.writeLine(line)
		if s.ForkedFrom != nil {
			p.writeLine("          " + p.forkedFrom(s.ForkedFrom))
		}
		if p.Everywhere {
			p.writeLine("          " + p.Text.T("in the workspace %s", sanitize.Line(s.Workspace)))
		}
	}
}

// stateOf returns a session's state, with what closed it (decision 44), or its place among those
// that wait for a slot.
func stateOf(s *store.SessionSummary) string {
	state := string(s.State) + " " + string(s.EndReason)
	if s.QueuePosition > 0 {
		state = string(s.State) + " " + strconv.Itoa(s.QueuePosition)
	}
	return strings.TrimSpace(state)
}

// Messages is a number of messages in words.
func Messages(t *i18n.Printer, n int) string {
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
	p.sessionHead(&s.Session, s.Root)
	p.writeThread(view.Thread)
	p.writeLine("")
	for i, line := range UndoLines(p.Text, view.Undos) {
		p.writeLine(p.Text.T("run %s", view.Undos[i].RoundID.String()) + "  " + line)
	}
	for i := range view.Pending {
		said := view.Pending[i].Message.LinearText()
		p.writeNote(p.Text.T("waits for its turn") + ": " + sanitize.Line(truncateLine(said, shownText)))
	}
	p.writeLine(p.Text.T("messages: %d, runs: %d", s.Messages, s.Rounds) + ", " + Cost(p.Text, view.Spent))
	if n := len(view.History); n > 0 && !view.History[n-1].EndNote.IsZero() {
		last := &view.History[n-1]
		why := string(last.End) + ", " + p.Text.Sentence(last.EndNote)
		p.writeLine(sanitize.Line(p.Text.T("the last run ended: %s", why)))
	}
	switch {
	case view.AuditError != "":
		p.writeLine(p.Text.T("log") + "  " + sanitize.Line(view.AuditError))
	case view.Audit != nil:
		p.writeLine(p.Text.T("log") + "  " + p.Text.T("%d events, chain verified", view.Audit.Events))
	}
}

// saidAt returns when a message was written, one of a fork in what that was made from.
func saidAt(m *store.MessageView) string {
	at := m.Time
	if m.Message.Copied != nil {
		at = m.Message.Copied.At
	}
	return at.Local().Format("2006-01-02 15:04:05")
}

// Told returns the text of a system notice for a person.
func Told(t *i18n.Printer, m *regie.SystemContent) string {
	return cmp.Or(joinSentences(t, m.Said), m.Summary)
}

// toldBy returns the text of a message for a person.
func toldBy(t *i18n.Printer, m *regie.Message) string {
	switch {
	case m.AI != nil:
		return m.AI.Text()
	case m.Enriching(): // its calls say it all
		return ""
	case m.System != nil:
		return Told(t, m.System)
	case len(m.Rich) > 0:
		return m.LinearText()
	}
	return m.Text
}

// nameSpeaker says who a message is from, with the model, and where that is not the run's own its
// provider too.
func (p *Page) nameSpeaker(m *regie.Message) string {
	switch {
	case m.System != nil:
		return string(m.System.Type)
	case m.Sender == regie.SenderUser, m.AI != nil && m.Author.Kind == regie.AuthorUser: // a command of their own
		return p.Text.T("you")
	case m.Author.Model == "":
		return sanitize.Line(m.Author.ID)
	}
	model := modelName(m.Author.Provider, m.Author.Model)
	if m.Author.Provider != "" {
		model += ", " + p.Text.T("in place of the run's own provider")
	}
	out := sanitize.Line(m.Author.ID) + " (" + model + ")"
	if cached := CachedLine(p.Text, m); cached != "" {
		out += "  " + cached
	}
	return out
}

// CachedLine says of an answer that it came from the response cache (spec 6.4), "" of any other.
func CachedLine(t *i18n.Printer, m *regie.Message) string {
	if m.AI == nil || m.AI.Cached.IsZero() {
		return ""
	}
	at := m.AI.Cached.Local().Format("2006-01-02 15:04:05")
	return t.T("(from the response cache, answered %s; --no-cache asks the model)", at)
}

// shownText is how much of a text is shown on its line, in characters.
const shownText = 100

// truncateLine returns a text on one line, of so many characters at most.
func truncateLine(s string, most int) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}

// Logs reports what verifying logs found, and how many of them are not what was written (spec
// 11.4).
func (p *Page) Logs(reports []store.LogReport) (broken int) {
	logs := 0
	for i := range reports {
		r := &reports[i]
		name := sanitize.Line(r.Name)
		what := p.Text.T("session %s", Short(r.ID)) + "  " + name
		switch {
		case r.Kind == "user":
			what = p.Text.T("tokens of %s", name)
		case r.Kind == "workspace":
			what = p.Text.T("rules of %s", name)
		case r.Kind == "stats":
			what = p.Text.T("roll-ups of the dashboard")
		case r.Removed:
			what += p.Text.T("(removed)")
		}
		if r.Kind == "workspace" && r.Events == 0 && r.Error == "" { // it has no rules and never had any
			continue
		}
		if r.Error != "" {
			broken++
			p.writeLine("✗ " + what + "\n    " + sanitize.Line(r.Error))
		} else {
			what += "  " + p.Text.T("%d events, chain verified", r.Events)
			if r.Erased > 0 {
				what += ", " + p.Text.T("%d erased", r.Erased)
			}
			p.writeLine("✓ " + what)
		}
		logs++
	}
	p.writeLine("")
	p.writeLine(p.Text.T("logs: %d, altered: %d", logs, broken))
	return broken
}
