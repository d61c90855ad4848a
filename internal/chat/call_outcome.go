package chat

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
)

// Fold writes the results of calls as lines; what a person named is shown as they named it. The
// zero value is ready.
type Fold struct {
	named map[regie.ID]string // the calls of the last enrichments
}

// Lines are what an event is shown as, where it is a call's result.
func (f *Fold) Lines(t *i18n.Printer, event *regie.Event) []string {
	switch event.Type {
	case regie.EventMessage:
		var m regie.Message
		if json.Unmarshal(event.Body, &m) != nil || !m.Enriching() {
			return nil
		}
		f.named = map[regie.ID]string{}
		for _, part := range m.System.Queries {
			f.named[part.CallID] = part.Text
		}
	case regie.EventToolResult:
		var o outcome
		if json.Unmarshal(event.Body, &o) == nil {
			return []string{o.formatLine(t, f.named[o.CallID])}
		}
	}
	return nil
}

// outcome holds the fields of a call's result line.
type outcome struct {
	CallID     regie.ID         `json:"call_id"`
	Tool       string           `json:"tool"`
	About      string           `json:"about"`
	State      regie.CallState  `json:"state"`
	Code       regie.NotRunCode `json:"code"`
	Error      regie.Code       `json:"error"`
	Recovered  bool             `json:"recovered"`
	Bytes      int              `json:"bytes"`
	DurationUS int64            `json:"duration_us"`
	ResolvedAs regie.ResolvedAs `json:"resolved_as"`
	ResolvedBy string           `json:"resolved_by"`
	Exit       string           `json:"exit"` // the exit code of a command that failed
}

// formatLine formats an outcome as one line: ✓ for success, – for a call that was not run, ✗ for
// the rest. A mention of the person has its label.
func (o *outcome) formatLine(t *i18n.Printer, label string) string {
	mark, why := "✓", ""
	switch {
	case label != "" && o.State == regie.CallSucceeded:
		return "  ✓ " + sanitize.Line(t.T("read for the model: %s (%d bytes)", label, o.Bytes))
	case label != "" && o.Error == regie.CodePathProtected:
		return "  ✗ " + sanitize.Line(t.T("not read: %s", label)+": "+t.T(
			"it may contain a secret, which the model's provider would receive; ask the agent to read it, and you are asked first"))
	case label != "":
		return "  ✗ " + sanitize.Line(t.T("not read: %s", label)+": "+string(o.Error))
	case o.ResolvedAs != "":
		if o.State != regie.CallSucceeded {
			mark = "✗"
		}
		why = " (" + t.T("%s reported: %s", o.ResolvedBy, string(o.ResolvedAs)) + ")"
	case o.State != regie.CallSucceeded && o.Code == regie.NotRunOutOfScope: // the error says what of
		mark, why = "–", " "+cmp.Or(string(o.Error), string(o.Code))
	case o.State != regie.CallSucceeded && o.Code != "":
		mark, why = "–", " "+string(o.Code)
	case o.State != regie.CallSucceeded:
		mark, why = "✗", " "+string(o.Error)
	case o.Exit != "":
		mark, why = "✗", "  "+t.T("exit code %s", o.Exit)
	case o.Recovered:
		why = " " + t.T("(recovered after the crash)")
	}
	about := o.About
	if about != "" {
		about = " " + about
	}
	took := t.T("%.1f ms", float64(o.DurationUS)/1000)
	return sanitize.Line(fmt.Sprintf("  %s %s%s %s%s", mark, o.Tool, about, took, why))
}
