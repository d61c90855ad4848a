package chat

import (
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/text"
)

// maxOverLimit is how many calls of a reply that are over its limit are shown one by one.
const maxOverLimit = 3

// Fold writes the results of calls as lines, and keeps a reply with thousands of calls from filling
// a terminal: of those that are over the limit of one reply it writes the first few and how many
// more there are. What a person named is shown as they named it. The zero value is ready.
type Fold struct {
	over  int
	named map[regie.ID]string // the calls of the last enrichments
}

// Lines are what an event is shown as: what was held back before it, and, where it is a call's
// result, its own line.
func (f *Fold) Lines(t *text.Printer, event *regie.Event) []string {
	if o, is := eventOutcome(event); is {
		return f.result(t, &o)
	}
	var m regie.Message
	if event.Type == regie.EventMessage && json.Unmarshal(event.Body, &m) == nil {
		f.names(&m)
	}
	return f.rest(t)
}

// names takes in what the calls of a person's enrichments are called.
func (f *Fold) names(m *regie.Message) {
	if !m.Enriching() {
		return
	}
	f.named = map[regie.ID]string{}
	for _, part := range m.System.Queries {
		f.named[part.CallID] = part.Text
	}
}

// result is what an outcome is shown as.
func (f *Fold) result(t *text.Printer, o *outcome) []string {
	if o.Code == regie.NotRunOverLimit {
		if f.over++; f.over > maxOverLimit {
			return nil
		}
		return []string{o.line(t)}
	}
	if label := f.named[o.CallID]; label != "" {
		return append(f.rest(t), o.named(t, label))
	}
	return append(f.rest(t), o.line(t))
}

// rest is what was held back.
func (f *Fold) rest(t *text.Printer) []string {
	over := f.over
	if f.over = 0; over <= maxOverLimit {
		return nil
	}
	return []string{"  – " + t.T("and more calls over the limit: %d", over-maxOverLimit)}
}
