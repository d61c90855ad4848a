package chat

import (
	"fmt"
	"io"
	"strings"

	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// Markdown writes a session to be read.
func Markdown(w io.Writer, t *text.Printer, e *store.SessionExport) {
	page := &Page{Text: t}
	line := func(format string, args ...any) { fmt.Fprintln(w, plain.Strip(fmt.Sprintf(format, args...))) }
	line("# %s\n", shortened(e.Session.Name, 200))
	line("- %s", t.T("session %s", e.Session.ID.String()))
	line("- %s %s", t.T("workspace"), plain.Line(e.Workspace.Root))
	line("- %s %s, %s %s / %s", t.T("agent"), plain.Line(e.Session.Agent), t.T("model"),
		plain.Line(e.Session.Provider), plain.Line(e.Session.Model))
	if f := e.Session.ForkedFrom; f != nil {
		line("- %s", t.T("forked from %s at %s", f.SessionID.String(), fmt.Sprint(f.Seq)))
	}
	for i := range e.Messages {
		m := &e.Messages[i]
		line("\n## %s — %s\n", page.speaker(&m.Message), saidAt(m))
		if said := toldBy(t, &m.Message); said != "" {
			line("%s", fenced(said))
		}
		for j := range m.Calls {
			call := &m.Calls[j]
			state := string(call.State)
			if call.NotRun != "" {
				state += " " + string(call.NotRun)
			}
			line("\n- `%s` %s\n", strings.ReplaceAll(plain.Line(call.Tool), "`", ""), state)
			line("%s", fenced(call.Arguments))
			if len(call.Executed) > 0 {
				line("%s\n\n%s", t.T("with edited arguments"), fenced(string(call.Executed)))
			}
			if call.Error != nil {
				line("%s: %s", call.Error.Code, shortened(call.Error.Message, 1000))
			} else if call.Result != "" {
				line("%s", fenced(call.Result))
			}
		}
	}
}

// fenced shows text as it is, whatever marks are in it: no line of it can pass for a heading,
// another speaker or the end of it, nor can HTML. What Strip takes out is taken out first, or it
// would put a fence together.
func fenced(s string) string {
	s = lineEnds.Replace(plain.Strip(s))
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(s, "\n") + "\n" + fence
}

// lineEnds are what a reader may take for the end of a line, besides a line feed.
var lineEnds = strings.NewReplacer("\u2028", "\n", "\u2029", "\n")
