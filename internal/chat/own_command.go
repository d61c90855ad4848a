package chat

import (
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// CommandOf is the command that a line gives, where it begins with the mark of one (spec 10.1).
func CommandOf(line string) (command string, is bool) {
	command, is = strings.CutPrefix(line, regie.CommandMark)
	return strings.TrimSpace(command), is
}

// OwnCall is the call of a command that the person gave, where an event brings one.
func OwnCall(event *regie.Event) (id regie.ID, is bool) {
	var m regie.Message
	if event.Type != regie.EventMessage || json.Unmarshal(event.Body, &m) != nil || m.AI == nil ||
		m.Author.Kind != regie.AuthorUser {
		return id, false
	}
	for _, owned := range m.CallIDs() {
		return owned, true
	}
	return id, false
}

// OwnRunning is the call of a command that the person gave in the round of a past that has not
// ended; zero where there is none.
func OwnRunning(past *Past) regie.ID {
	for i := range past.Rounds {
		for k := range past.Rounds[i].Exchanges {
			e := &past.Rounds[i].Exchanges[k]
			if past.Rounds[i].Round.ID == past.Running && e.Reason == regie.ExchangeCommand && len(e.Calls) > 0 {
				return e.Calls[0].ID
			}
		}
	}
	return regie.ID{}
}

// ends reports whether an event is the end of the person's own command, whose line waits for what
// came of it: the event does not have its exit code.
func (s *Stream) ends(event *regie.Event) bool {
	o, is := eventOutcome(event)
	return is && o.CallID == s.command && !s.command.IsZero() && o.State == regie.CallSucceeded && o.ResolvedAs == ""
}

// Came writes the line of the person's own command, which has ended: with ✗ and its exit code
// where that is not 0. result is what its call brought.
func (s *Stream) Came(result string) {
	if s.came == nil {
		return
	}
	if o, is := eventOutcome(s.came); is {
		o.exited(result)
		s.Note(o.line(s.Text) + s.mark(s.came))
	}
	s.came = nil
}

// mark is what stands behind the line of an event, where that is a call's result.
func (s *Stream) mark(event *regie.Event) string {
	o, is := eventOutcome(event)
	if !is || s.Mark == nil {
		return ""
	}
	return s.Mark(o.CallID)
}

// OwnOutcome has what came of a person's own command written as they read it: its output, or what
// it put out until it ended, and below that, as Regie's own words, why it ended. It reports whether
// there was something; where their own word kept it from running there is not.
func OwnOutcome(t *text.Printer, call *regie.Call, note func(line string)) bool {
	put, why := call.Result, ""
	if call.Error != nil {
		if why = ownWhy(t, call); why == "" {
			return false
		}
		_, put, _ = strings.Cut(call.Error.Message, regie.CommandPutOut)
	}
	if strings.TrimRight(put, "\n") != "" {
		for _, line := range Ends(t, put, OwnShown/2, OwnShown/2) { // how a command ends says most
			note(line)
		}
	}
	if why != "" {
		note("  " + strings.ReplaceAll(why, "\n", "\n  "))
	}
	return put != "" || why != ""
}

// ownWhy says why a person's own command brought nothing, without what it had put out; "" where
// they know.
func ownWhy(t *text.Printer, call *regie.Call) string {
	if call.Error.Code == regie.CodeUserRejected || call.Resolution != nil {
		return ""
	}
	switch call.NotRun {
	case regie.NotRunInterrupted, regie.NotRunSuperseded, regie.NotRunExpired:
		return ""
	}
	said, _, _ := strings.Cut(call.Error.Message, regie.CommandPutOut)
	why := plain.Line(strings.TrimSpace(said))
	switch {
	case call.State == regie.CallUnknown && strings.Contains(said, regie.CommandStopped):
		return "■ " + t.T("stopped, with everything that it had started; what it did until then stays") + "\n" +
			t.T("once you have looked, say whether it happened (or did-not-happen):") + "\n" + resolves(t, call)
	case call.State == regie.CallUnknown:
		why = t.T("nobody knows what came of it: look, and say whether it happened (or did-not-happen):") + "\n" +
			resolves(t, call)
	case call.Error.Code == regie.CodeUnknownTool:
		why = t.T("this agent has no tool that runs commands here")
	}
	return "✗ " + string(call.Error.Code) + ": " + why
}

// resolves is what settles a call whose outcome nobody knows, on a line of its own, so that it can
// be copied.
func resolves(t *text.Printer, call *regie.Call) string {
	return "  " + t.T("regie runs resolve %s happened", call.ID.String())
}

// OwnShown is how many lines are shown of what came of a person's own command.
const OwnShown = 400

// Ends are the first lines of a text and the last, each marked as what a tool put out, with how
// many are left out between them. What was written over, as progress bars are, is a line of its
// own: nothing of what a tool put out may hide.
func Ends(t *text.Printer, whole string, first, last int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(whole, "\r\n"), "\n") {
		written := strings.FieldsFunc(line, func(r rune) bool { return r == '\r' })
		if len(written) == 0 {
			written = []string{""}
		}
		for _, one := range written {
			lines = append(lines, plain.Strip(one))
		}
	}
	left := len(lines) - first - last
	var out []string
	for i, line := range lines {
		switch {
		case left > 0 && i == first:
			out = append(out, "  "+t.T("… %d more lines", left))
		case left > 0 && i > first && i < first+left:
		default:
			out = append(out, "  │ "+line)
		}
	}
	return out
}

// showOwn shows what came of the person's own command: its output, unless that was written as it
// came, and why it brought nothing.
func (c *Conversation) showOwn(call *regie.Call) {
	switch {
	case !c.ShowsOutput:
		if OwnOutcome(c.Text, call, c.Note) {
			c.Renderer.Separate()
		}
	case call.Error != nil:
		if why := ownWhy(c.Text, call); why != "" {
			c.Note("  " + strings.ReplaceAll(why, "\n", "\n  "))
		}
	}
}
