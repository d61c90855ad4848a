package chat

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
)

// CommandOf is the command that a line gives, where it begins with the mark of one (spec 10.1).
func CommandOf(line string) (command string, is bool) {
	command, is = strings.CutPrefix(line, regie.CommandMark)
	return strings.TrimSpace(command), is
}

// ownCall returns the call of a command that the person gave, where an event brings one.
func ownCall(event *regie.Event) (id regie.ID, is bool) {
	var m regie.Message
	if event.Type != regie.EventMessage || json.Unmarshal(event.Body, &m) != nil || m.AI == nil ||
		m.Author.Kind != regie.AuthorUser || m.Copied != nil {
		return id, false
	}
	for _, owned := range m.CallIDs() {
		return owned, true
	}
	return id, false
}

// showOutcome shows what came of the person's own command, once its round has ended: they gave it
// to read that. What comes behind the end waits for it.
func (c *Conversation) showOutcome(round regie.ID) {
	own, session := c.own, c.Session
	if c.own = (regie.ID{}); own.IsZero() {
		return
	}
	if c.past != nil {
		if call := c.past.findCall(own); call != nil {
			c.showOwn(call, true)
		}
		return
	}
	c.Renderer.Do(InOrder, func(ctx context.Context) func() {
		call, err := (&doneCall{own, round}).readCall(ctx, c.Control)
		return func() {
			if session != c.Session { // another chat has been taken up since
				return
			}
			if c.Renderer.ShowError(err); err == nil {
				c.showOwn(call, !c.ShowsOutput)
			}
		}
	})
}

// ownShown is how many lines are shown of what came of a person's own command.
const ownShown = 400

// showOwn writes the output of a person's own command, unless it was written as it came, and then,
// in Regie's words, why it ended.
func (c *Conversation) showOwn(call *regie.Call, output bool) {
	put, why := call.Result, ""
	if call.Error != nil {
		if why = ownWhy(c.Text, call); why == "" {
			return
		}
		_, put, _ = strings.Cut(call.Error.Message, regie.CommandPutOut)
	}
	if output { // how a command ends says most
		c.Stream.writeNotes(firstAndLast(c.Text, put, ownShown/2, ownShown/2))
	}
	if why != "" {
		c.Note("  " + strings.ReplaceAll(why, "\n", "\n  "))
	}
	c.Renderer.Separate()
}

// ownWhy says why a person's own command failed, without its output; "" if they know.
func ownWhy(t *i18n.Printer, call *regie.Call) string {
	said, _, _ := strings.Cut(call.Error.Message, regie.CommandPutOut)
	resolve := "\n  " + t.T("regie runs resolve %s happened", call.ID.String()) // on a line of its own, to be copied
	switch {
	case call.Error.Code == regie.CodeUserRejected, call.Resolution != nil, call.NotRun == regie.NotRunInterrupted,
		call.NotRun == regie.NotRunSuperseded, call.NotRun == regie.NotRunExpired:
		return ""
	case call.State == regie.CallUnknown && strings.Contains(said, regie.CommandStopped):
		return "■ " + t.T("stopped, with everything that it had started; what it did until then stays") + "\n" +
			t.T("check, then say whether it happened (or did-not-happen):") + resolve
	case call.State == regie.CallUnknown:
		said = t.T("its outcome is unknown: check, and say whether it happened (or did-not-happen):")
	default:
		said, resolve = sanitize.Line(strings.TrimSpace(said)), ""
	}
	return "✗ " + string(call.Error.Code) + ": " + said + resolve
}

// firstAndLast returns the first and last lines of a text, each marked as tool output, with the
// number of omitted lines between them. Overwritten text, as of progress bars, becomes a line of
// its own, so that a tool cannot hide output.
func firstAndLast(t *i18n.Printer, whole string, first, last int) []string {
	whole = strings.TrimRight(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(whole), "\n")
	if whole == "" {
		return nil
	}
	lines := markOutput(whole)
	if left := len(lines) - first - last; left > 0 {
		more := "  " + t.T("… %d more lines", left)
		lines = append(append(lines[:first:first], more), lines[first+left:]...)
	}
	return lines
}
