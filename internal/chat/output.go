package chat

import (
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

// maxOutputLine is how many bytes of a line without an end are held back for it.
const maxOutputLine = 1000

// Output writes what running calls put out as lines, whole ones, each marked as what it is. The zero value is ready.
type Output struct {
	open map[regie.ID]string // by call: a line that has no end yet
}

// Lines are the lines that a piece completes.
func (o *Output) Lines(d *dispatch.Delta) []string {
	if d.Output == "" {
		return nil
	}
	if o.open == nil {
		o.open = map[regie.ID]string{}
	}
	text := o.open[d.CallID] + d.Output
	end := strings.LastIndexByte(text, '\n')
	rest := text[end+1:]
	if len(rest) > maxOutputLine {
		end, rest = len(text), ""
	}
	o.open[d.CallID] = rest
	if end < 0 {
		return nil
	}
	return marked(text[:end])
}

// Rest is what is left of a call's output, where an event tells that it has its result.
func (o *Output) Rest(event *regie.Event) []string {
	var body struct {
		CallID regie.ID `json:"call_id"`
	}
	if event.Type != regie.EventToolResult || json.Unmarshal(event.Body, &body) != nil {
		return nil
	}
	text := o.open[body.CallID]
	delete(o.open, body.CallID)
	if text == "" {
		return nil
	}
	return marked(text)
}

func marked(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		if back := strings.LastIndexByte(line, '\r'); back >= 0 { // it was written over, as progress bars are
			line = line[back+1:]
		}
		lines[i] = "  │ " + plain.Strip(line)
	}
	return lines
}
