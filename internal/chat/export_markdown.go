package chat

import (
	"fmt"
	"io"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Markdown writes a session to be read.
func Markdown(w io.Writer, t *i18n.Printer, e *store.SessionExport) {
	page := &Page{W: w, Text: t}
	page.sessionHead(&e.Session, e.Workspace.Root)
	page.writeThread(e.Messages)
}

// sessionHead writes the head of a session, in Markdown.
func (p *Page) sessionHead(s *regie.Session, root string) {
	p.writeLine("# " + sanitize.Line(truncateLine(s.Name, 200)) + "\n")
	state := strings.TrimSpace(string(s.Type) + " " + string(s.State) + " " + string(s.EndReason))
	p.writeLine("- " + p.Text.T("session %s", s.ID.String()) + "  " + state)
	p.writeLine("- " + p.Text.T("workspace") + " " + sanitize.Line(root))
	p.writeLine("- " + p.Text.T("agent") + " " + sanitize.Line(s.Agent) + ", " + p.Text.T("model") + " " +
		sanitize.Line(s.Provider+" / "+s.Model))
	if s.ForkedFrom != nil {
		p.writeLine("- " + p.forkedFrom(s.ForkedFrom) + "; " + p.Text.T("the files of the workspace were not forked"))
	}
}

// writeThread writes messages in Markdown, each with its place in the log, by which a fork names
// it, and the calls of each.
func (p *Page) writeThread(messages []store.MessageView) {
	for i := range messages {
		m := &messages[i]
		head := fmt.Sprintf("\n## %d  %s — %s", m.Seq, p.nameSpeaker(&m.Message), saidAt(m))
		if m.Superseded {
			head += "  " + p.Text.T("(no longer part of the conversation)")
		}
		p.writeLine(head + "\n")
		if said := toldBy(p.Text, &m.Message); said != "" {
			p.writeLine(fenceText(said))
		}
		for j := range m.Calls {
			p.writeCall(&m.Calls[j])
		}
	}
}

func (p *Page) writeCall(c *regie.Call) {
	state := strings.TrimSpace(string(c.State) + " " + string(c.NotRun))
	p.writeLine("\n- `" + strings.ReplaceAll(sanitize.Line(c.Tool), "`", "") + "` " + state + "\n")
	p.writeLine(fenceText(c.Arguments))
	if len(c.Executed) > 0 {
		p.writeLine(p.Text.T("with edited arguments") + "\n\n" + fenceText(string(c.Executed)))
	}
	if c.Error != nil {
		p.writeLine(sanitize.Line(string(c.Error.Code) + ": " + truncateLine(c.Error.Message, 1000)))
	} else if c.Result != "" {
		p.writeLine(fenceText(c.Result))
	}
	if r := c.Resolution; r != nil {
		p.writeLine(sanitize.Line(p.Text.T("%s reported: %s", r.By, string(r.As)) + " " + r.Note))
	}
}

// fenceText shows text literally, with any Markdown or HTML in it: no line can pass for a heading,
// another speaker or the end of the fence. It applies Strip first, because Strip could otherwise
// join characters into a fence.
func fenceText(s string) string {
	s = lineEnds.Replace(sanitize.Strip(s))
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(s, "\n") + "\n" + fence
}

// lineEnds replaces the line separators that a reader may honour besides a line feed.
var lineEnds = strings.NewReplacer("\u2028", "\n", "\u2029", "\n")
