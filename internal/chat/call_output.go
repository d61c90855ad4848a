package chat

import (
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
)

// maxOutputLine is how many bytes of a line without an end are held back for it.
const maxOutputLine = 1000

// Output writes the output of running calls in whole lines, each with a mark. The zero value is
// ready.
type Output struct {
	open map[regie.ID]string // by call: a line that has no end yet
}

// Lines are the lines that a piece completes.
func (o *Output) Lines(t *i18n.Printer, d *dispatch.Delta) []string {
	if d.Silent > 0 {
		return []string{t.T("… the model has not answered for %d s; Ctrl-C stops", d.Silent)}
	}
	if d.Said != nil {
		return markOutput(t.Sentence(*d.Said))
	}
	if d.Output == "" {
		return nil
	}
	if o.open == nil {
		o.open = map[regie.ID]string{}
	}
	put := o.open[d.CallID] + d.Output
	end := strings.LastIndexByte(put, '\n')
	rest := put[end+1:]
	if len(rest) > maxOutputLine {
		end = sanitize.Whole(put)
		rest = put[end:]
	}
	o.open[d.CallID] = rest
	if end <= 0 && rest == put {
		return nil
	}
	return markOutput(put[:end])
}

// Rest returns the unfinished line of a call's output when the event brings its result.
func (o *Output) Rest(event *regie.Event) []string {
	call := BodyOf(event).CallID
	rest := o.open[call]
	if event.Type != regie.EventToolResult || rest == "" {
		return nil
	}
	delete(o.open, call)
	return markOutput(rest)
}

func markOutput(put string) []string {
	lines := strings.Split(put, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		if back := strings.LastIndexByte(line, '\r'); back >= 0 { // it was written over, as progress bars are
			line = line[back+1:]
		}
		lines[i] = "  │ " + sanitize.Strip(line)
	}
	return lines
}
