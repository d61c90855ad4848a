package tui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// work is the agent's current work: running calls, and the plan.
type work struct {
	running []running
	plan    []chat.Step
}

// running is a call that has no result yet.
type running struct {
	id    regie.ID
	tool  string
	since time.Time // zero until it has started
	// tail is the end of its output.
	tail string
}

// maxTail limits the kept output of a running call, in bytes.
const maxTail = 4 << 10

// addOutput takes a piece of a running call's output, and reports whether it was one.
func (w *work) addOutput(d *dispatch.Delta) bool {
	if d.Output == "" {
		return false
	}
	call := w.runningCall(d.CallID)
	tail := call.tail + d.Output
	call.tail = strings.ToValidUTF8(tail[max(0, len(tail)-maxTail):], "")
	return true
}

// runningCall returns the running call with an id, or adds one.
func (w *work) runningCall(id regie.ID) *running {
	i := slices.IndexFunc(w.running, func(r running) bool { return r.id == id })
	if i < 0 {
		w.running, i = append(w.running, running{id: id}), len(w.running)
	}
	return &w.running[i]
}

// handleEvent records events of calls and of the plan. The end of a round ends its calls.
func (w *work) handleEvent(event *regie.Event, body *chat.Body) {
	var message regie.Message
	switch event.Type {
	case regie.EventMessage:
		if json.Unmarshal(event.Body, &message) == nil && message.AI != nil {
			for _, part := range message.AI.Parts {
				if part.Type == regie.PartCall {
					w.runningCall(part.CallID).tool = part.Tool
				}
			}
		}
	case regie.EventToolCall:
		call := w.runningCall(body.CallID)
		call.tool = cmp.Or(body.Tool, call.tool)
		if body.State == string(regie.CallStarted) {
			call.since = event.Time
		}
	case regie.EventToolResult:
		w.running = slices.DeleteFunc(w.running, func(r running) bool { return r.id == body.CallID })
	case regie.EventPlan:
		w.plan = body.Plan.Steps
	case regie.EventRound:
		if chat.RoundEnds(event, body) {
			*w = work{}
		}
	}
}

// renderLines returns the live part of the work: what runs, and as much of the plan as there is
// room for.
func (w *work) renderLines(m *model, most int) [][]span {
	plan := 0
	if len(w.plan) > 0 {
		plan = min(len(w.plan)+1, max(2, most/2))
	}
	out := w.onTheirWay(m, most-plan)
	out = append(out, w.renderSteps(m, most-len(out))...)
	return out[:min(len(out), max(most, 0))]
}

// onTheirWay returns the running calls, with the end of their output.
func (w *work) onTheirWay(m *model, most int) [][]span {
	var out [][]span
	for i := range w.running {
		call := &w.running[i]
		if !m.Busy() || len(out) >= most {
			break
		}
		line := []span{{"  ⋯ ", style{fg: yellow}}, {text: sanitize.Line(call.tool)}}
		if !call.since.IsZero() {
			line = append(line, span{"  " + formatElapsed(time.Since(call.since)), style{faint: true}})
		}
		out = append(out, line)
		if call.tail == "" {
			continue
		}
		rows := strings.Split(strings.TrimRight(call.tail, "\r\n"), "\n")
		for _, row := range rows[max(0, len(rows)-3):] {
			row = strings.TrimRight(row, "\r")
			row = row[strings.LastIndexByte(row, '\r')+1:] // what a progress bar has written last
			out = append(out, []span{
				{"    │ ", style{faint: true}},
				{truncateText(expandTabs(sanitize.Strip(row)), m.screen.width-8), style{faint: true}},
			})
		}
	}
	return out[:min(len(out), max(most, 0))]
}

// renderSteps returns the plan: where there is no room for all of it, the part around the step that
// is worked on.
func (w *work) renderSteps(m *model, room int) [][]span {
	if len(w.plan) == 0 || room < 1 {
		return nil
	}
	done, at := 0, 0
	for i, s := range w.plan {
		if s.Status == "done" {
			done++
		}
		if s.Status != "pending" {
			at = i
		}
	}
	n := min(room-1, len(w.plan))
	from := max(0, min(at-n/3, len(w.plan)-n))
	out := [][]span{{{"  " + m.Text.T("plan, %d of %d done", done, len(w.plan)), style{faint: true}}}}
	for _, s := range w.plan[from : from+n] {
		mark, look := "☐ ", style{}
		switch s.Status {
		case "done":
			mark, look = "☑ ", style{faint: true}
		case "active":
			mark, look = "▸ ", style{bold: true}
		}
		out = append(out, []span{{"  " + mark + truncateText(sanitize.Line(s.Text), m.screen.width-6), look}})
	}
	return out
}

// formatElapsed says how long something has taken.
func formatElapsed(d time.Duration) string {
	if d = max(0, d); d < time.Minute {
		return fmt.Sprintf("%d s", int(d/time.Second))
	}
	return fmt.Sprintf("%d min %02d s", int(d/time.Minute), int(d%time.Minute/time.Second))
}
