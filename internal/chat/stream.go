package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// Stream writes a session's items as they come: the reply's text as it streams, each call as a line, what ended a run otherwise than
// with an answer. What streamed is not written again when its message comes; what is missing of it is.
type Stream struct {
	Out, Err io.Writer // the replies; all else
	Text     *text.Printer

	open    io.Writer // where a line was begun and not ended
	reply   place     // whose text is being written
	shown   string    // what was written of it
	told    place     // the last reply that was written whole
	batch   place     // a reply whose calls have not all their results
	running regie.ID
	held    []*dispatch.Delta // of what the events have not reached yet
	own     map[regie.ID]bool
}

// place is a reply's place: its round and exchange.
type place struct {
	round    regie.ID
	exchange int
}

// Own tells that a message was typed here: it is not shown again.
func (s *Stream) Own(message regie.ID) {
	if s.own == nil {
		s.own = map[regie.ID]bool{}
	}
	s.own[message] = true
}

// Note writes a line beside the replies.
func (s *Stream) Note(line string) {
	s.fresh()
	fmt.Fprintln(s.Err, plain.Strip(line))
}

// Prompt writes a prompt; Typed tells that the person has ended its line.
func (s *Stream) Prompt(prompt string) {
	s.fresh()
	fmt.Fprint(s.Err, prompt)
	s.open = s.Err
}

// Typed tells that the terminal has shown the end of a line.
func (s *Stream) Typed() { s.open = nil }

// fresh makes the cursor stand at the beginning of a line.
func (s *Stream) fresh() {
	if s.open != nil {
		fmt.Fprintln(s.open)
	}
	s.open = nil
}

func (s *Stream) write(content string) {
	content = plain.Strip(content)
	if content == "" {
		return
	}
	fmt.Fprint(s.Out, content)
	if s.open = s.Out; strings.HasSuffix(content, "\n") {
		s.open = nil
	}
}

// Item writes one item.
func (s *Stream) Item(item dispatch.Item) {
	defer s.release()
	if item.Delta != nil {
		s.delta(item.Delta)
	}
	if item.Event == nil {
		return
	}
	switch item.Event.Type {
	case regie.EventMessage:
		var m regie.Message
		if json.Unmarshal(item.Event.Body, &m) == nil {
			s.message(&m)
		}
	case regie.EventStreamReset:
		if s.shown != "" { // else nobody has seen anything of it (decision 53)
			s.Note(s.Text.T("… the model is asked again; what it said above does not count"))
		}
		s.shown = ""
	case regie.EventToolResult:
		if line := ToolLine(s.Text, item.Event); line != "" {
			s.Note(line)
		}
	case regie.EventRound:
		s.round(item.Event)
	}
}

// delta writes a piece of a reply. Deltas overtake events, because they are not stored: what belongs behind an event that has not come
// yet is held back. One that comes behind its message is dropped: the message has it.
func (s *Stream) delta(d *dispatch.Delta) {
	at := place{d.RoundID, d.Exchange}
	switch {
	case d.Content == "" || at == s.told:
		return
	case s.early(at):
		s.held = append(s.held, d)
		return
	}
	if s.reply, s.shown = at, s.shown+d.Content; s.shown == d.Content {
		s.fresh()
	}
	s.write(d.Content)
}

// early reports whether the events have not reached a reply yet: its round has not begun, an earlier reply is not whole, or its calls
// have not all their results.
func (s *Stream) early(at place) bool {
	return !s.running.IsZero() && s.running != at.round || s.reply != place{} && s.reply != at || s.batch != place{} && s.batch.round == at.round
}

// release writes what was held back, as far as the events have come.
func (s *Stream) release() {
	held := s.held
	s.held = nil
	for _, d := range held {
		s.delta(d)
	}
}

// message writes what of a message was not seen yet.
func (s *Stream) message(m *regie.Message) {
	at := place{m.RoundID, m.Exchange}
	switch {
	case m.AI != nil:
		whole, shown := m.AI.Text(), s.shown
		if at != s.reply {
			shown = ""
		}
		rest, is := strings.CutPrefix(whole, shown)
		if !is || shown == "" { // pieces of it got lost: the whole of it, on lines of its own
			s.fresh()
			rest = whole
		}
		s.write(rest)
		s.fresh()
		s.told, s.reply, s.shown = at, place{}, ""
		if len(m.CallIDs()) > 0 {
			s.batch = at
		}
	case m.System != nil && at == s.batch:
		s.batch = place{}
	case m.Sender == regie.SenderUser && m.Text != "" && !m.ExcludeFromPrompt && !s.own[m.ID]:
		s.Note("› " + strings.ReplaceAll(m.Text, "\n", "\n  "))
	}
}

// round notes which round runs, and says how one ended that has no answer.
func (s *Stream) round(event *regie.Event) {
	var body struct {
		RoundID regie.ID          `json:"round_id"`
		State   regie.RoundState  `json:"state"`
		Stop    regie.StopRequest `json:"stop_request"`
		End     regie.RoundEnd    `json:"end_reason"`
		Note    string            `json:"end_note"`
	}
	if json.Unmarshal(event.Body, &body) != nil {
		return
	}
	if body.State != regie.RoundEnded {
		if body.Stop == "" {
			s.running = body.RoundID
		}
		return
	}
	s.reply, s.shown, s.batch = place{}, "", place{}
	switch body.End {
	case regie.EndAnswered, regie.EndCompleted:
	case regie.EndInterrupted:
		s.Note(s.Text.T("interrupted"))
	case regie.EndStopped:
		s.Note(s.Text.T("stopped"))
	default:
		s.Note(s.Text.T("the run ended: %s", body.Note))
	}
}

// ToolLine is a call's result as one line, and "" for what is none.
func ToolLine(t *text.Printer, event *regie.Event) string {
	var body struct {
		Tool       string           `json:"tool"`
		State      regie.CallState  `json:"state"`
		Code       regie.NotRunCode `json:"code"`
		Error      regie.Code       `json:"error"`
		Recovered  bool             `json:"recovered"`
		DurationUS int64            `json:"duration_us"`
	}
	if json.Unmarshal(event.Body, &body) != nil {
		return ""
	}
	mark, why := "✓", ""
	switch {
	case body.State != regie.CallSucceeded && body.Code != "":
		mark, why = "–", " "+string(body.Code)
	case body.State != regie.CallSucceeded:
		mark, why = "✗", " "+string(body.Error)
	case body.Recovered:
		why = " " + t.T("(recovered after the crash)")
	}
	return plain.Strip(fmt.Sprintf("  %s %s %.1f ms%s", mark, body.Tool, float64(body.DurationUS)/1000, why))
}
