package chat

import (
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/text"
)

// maxOverLimit is how many calls of a reply that are over its limit are shown one by one.
const maxOverLimit = 3

// Fold writes the results of calls as lines, and keeps a reply with thousands of calls from filling a terminal: of those that are over the
// limit of one reply it writes the first few and how many more there are. What a person named is shown as they named it. The zero value is
// ready.
type Fold struct {
	over  int
	named map[regie.ID]string // the calls of the last enrichments
}

// Lines are what an event is shown as: what was held back before it, and, where it is a call's result, its own line.
func (f *Fold) Lines(t *text.Printer, event *regie.Event) []string {
	var body struct {
		Code regie.NotRunCode `json:"code"`
	}
	if event.Type == regie.EventToolResult && json.Unmarshal(event.Body, &body) == nil && body.Code == regie.NotRunOverLimit {
		if f.over++; f.over > maxOverLimit {
			return nil
		}
	}
	var lines []string
	if body.Code != regie.NotRunOverLimit {
		if f.over > maxOverLimit {
			lines = append(lines, "  – "+t.T("and more calls over the limit: %d", f.over-maxOverLimit))
		}
		f.over = 0
	}
	switch event.Type {
	case regie.EventMessage:
		var m regie.Message
		if json.Unmarshal(event.Body, &m) == nil && m.Enriching() {
			f.named = map[regie.ID]string{}
			for _, part := range m.System.Queries {
				f.named[part.CallID] = part.Text
			}
		}
	case regie.EventToolResult:
		if line := namedLine(t, event, f.named); line != "" {
			return append(lines, line)
		}
		if line := ToolLine(t, event); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
