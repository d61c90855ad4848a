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

	open   io.Writer // where a line was begun and not ended
	reply  place  // whose text is being written
	told   place  // the last reply that was written whole
	shown  string // what was written of it
	own    map[regie.ID]bool
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
		if s.shown != "" {
			s.Note(s.Text.T("… the model is asked again; what it said above does not count"))
		} else {
			s.Note("  " + s.Text.T("the model is asked again"))
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

// delta writes a piece of a reply. One that comes behind its message, or in the middle of another's, is dropped: the message has it.
func (s *Stream) delta(d *dispatch.Delta) {
	at := place{d.RoundID, d.Exchange}
	if d.Content == "" || at == s.told {
		return
	}
	if at != s.reply {
		s.reply, s.shown = at, ""
	}
	if s.shown == "" {
		s.fresh()
	}
	s.shown += d.Content
	s.write(d.Content)
}

// message writes what of a message was not seen yet.
func (s *Stream) message(m *regie.Message) {
	switch {
	case m.AI != nil:
		at, whole := place{m.RoundID, m.Exchange}, m.AI.Text()
		shown := s.shown
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
	case m.Sender == regie.SenderUser && m.Text != "" && !m.ExcludeFromPrompt && !s.own[m.ID]:
		s.Note("› " + strings.ReplaceAll(m.Text, "\n", "\n  "))
	}
}

// round says how a round ended that has no answer.
func (s *Stream) round(event *regie.Event) {
	var body struct {
		State regie.RoundState `json:"state"`
		End   regie.RoundEnd   `json:"end_reason"`
		Note  string           `json:"end_note"`
	}
	if json.Unmarshal(event.Body, &body) != nil || body.State != regie.RoundEnded {
		return
	}
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
