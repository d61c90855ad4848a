package chat

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// outcome is what the line of a call's result says. The event has it while somebody watches, and
// the call itself later: so there is one line for both.
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

// eventOutcome is the outcome that an event tells; false where it tells none.
func eventOutcome(event *regie.Event) (out outcome, is bool) {
	if event.Type != regie.EventToolResult || json.Unmarshal(event.Body, &out) != nil {
		return outcome{}, false
	}
	return out, true
}

// callOutcome is the outcome of a call that has its result.
func callOutcome(c *regie.Call) outcome {
	out := outcome{
		CallID: c.ID, Tool: c.Tool, About: store.About(c), State: c.State, Code: c.NotRun,
		Recovered: c.Recovered, Bytes: len(c.Result),
		DurationUS: c.DurationUS, Exit: store.ExitCode(c),
	}
	if c.Error != nil {
		out.Error = c.Error.Code
	}
	if c.Resolution != nil {
		out.ResolvedAs, out.ResolvedBy = c.Resolution.As, c.Resolution.By
	}
	return out
}

// exited takes in what a person's own command brought; known is false where that does not begin
// with its exit code.
func (o *outcome) exited(result string) (known bool) {
	first, _, _ := strings.Cut(result, "\n")
	code, known := strings.CutPrefix(first, regie.CommandExit)
	if known && code != "0" {
		o.Exit = plain.Line(code)
	}
	return known
}

// line is an outcome as one line: ✓ for what succeeded, – for what was not run, ✗ for all
// else.
func (o *outcome) line(t *text.Printer) string {
	mark, why := "✓", ""
	switch {
	case o.ResolvedAs != "":
		if o.State != regie.CallSucceeded {
			mark = "✗"
		}
		why = " (" + t.T("%s found out: %s", o.ResolvedBy, string(o.ResolvedAs)) + ")"
	case o.State != regie.CallSucceeded && o.Code != "":
		mark, why = "–", " "+string(o.Code)
	case o.State != regie.CallSucceeded:
		mark, why = "✗", " "+string(o.Error)
	case o.Exit != "":
		mark, why = "✗", "  "+t.T("exit code %s", plain.Line(o.Exit))
	case o.Recovered:
		why = " " + t.T("(recovered after the crash)")
	}
	about := ""
	if o.About != "" {
		about = " " + plain.Line(o.About)
	}
	return plain.Line(fmt.Sprintf("  %s %s%s %s%s", mark, plain.Line(o.Tool), about,
		t.T("%.1f ms", float64(o.DurationUS)/1000), why))
}

// named says what became of something that a person named, which is called so.
func (o *outcome) named(t *text.Printer, label string) string {
	label = plain.Line(label)
	if o.State == regie.CallSucceeded {
		return "  ✓ " + t.T("read for the model: %s (%d bytes)", label, o.Bytes)
	}
	return "  ✗ " + t.T("not read: %s", label) + ": " + whyNotRead(t, o.Error)
}
