package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// Stream writes a session's items as they come: the reply's text as it streams, each call as a
// line, what ended a run otherwise than with an answer. What streamed is not written again when its
// message comes; what is missing of it is.
type Stream struct {
	Out, Err io.Writer // the replies; all else
	Text     *text.Printer
	// Mark is what a surface adds to the line of a call's result: how it is unfolded. nil adds
	// nothing.
	Mark func(call regie.ID) string
	// Apart says that a note has its place above a reply that is being written, and ends none of
	// its lines.
	Apart bool

	open    io.Writer // where a line was begun and not ended
	reply   place     // whose text is being written
	shown   string    // what has come of it
	pieces  plain.Stream
	told    place // the last reply that was written whole
	batch   place // a reply whose calls have not all their results
	limited bool  // the limit that stops the round was told
	running regie.ID
	held    []*dispatch.Delta // of what the events have not reached yet
	own     map[regie.ID]bool
	missing string            // what was told last of tools that are away
	waiting []Queued          // messages that wait for their turn
	given   map[regie.ID]bool // those that came back, once they were shown

	command regie.ID     // the call of the person's own command
	came    *regie.Event // how it ended, until that is shown

	fold   Fold
	output Output
}

// place is a reply's place: its round and exchange.
type place struct {
	round    regie.ID
	exchange int
}

// Own tells that a message was typed here, or that an undo was asked for here: it is not shown
// again.
func (s *Stream) Own(message regie.ID) {
	if s.own == nil {
		s.own = map[regie.ID]bool{}
	}
	s.own[message] = true
}

// GivenBack shows a message that came back unread, once: a stop tells it, and the log too (decision
// 10).
func (s *Stream) GivenBack(message regie.ID, text string) {
	if s.given == nil {
		s.given = map[regie.ID]bool{}
	}
	if text == "" || s.given[message] {
		return
	}
	s.given[message] = true
	s.Note(s.Text.T("not sent, the agent never read it:"))
	s.Note("› " + strings.ReplaceAll(text, "\n", "\n  "))
}

// Note writes a line beside the replies.
func (s *Stream) Note(line string) {
	if !s.Apart || !s.Telling() {
		s.fresh()
	}
	fmt.Fprintln(s.Err, plain.Strip(line))
}

// Telling reports whether a reply is being written that is not whole.
func (s *Stream) Telling() bool { return s.shown != "" }

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
		for _, line := range s.output.Lines(s.Text, item.Delta) {
			s.Note(line)
		}
		s.delta(item.Delta)
	}
	if item.Event == nil {
		return
	}
	for _, line := range s.output.Rest(item.Event) {
		s.Note(line)
	}
	if id, is := OwnCall(item.Event); is {
		s.command = id
	}
	lines := s.fold.Lines(s.Text, item.Event)
	for i, line := range lines {
		if s.ends(item.Event) {
			s.came = item.Event
			continue
		}
		if i == len(lines)-1 { // what stands before it is of other calls
			line += s.mark(item.Event)
		}
		s.Note(line)
	}
	switch item.Event.Type {
	case regie.EventMessage:
		var m regie.Message
		if json.Unmarshal(item.Event.Body, &m) == nil {
			s.message(&m)
		}
	case regie.EventMessagePending:
		var m regie.Message
		if json.Unmarshal(item.Event.Body, &m) == nil {
			s.queue(m.ID, m.LinearText())
		}
	case regie.EventMessageWithdrawn:
		var body struct {
			MessageID regie.ID `json:"message_id"`
			TakenBack bool     `json:"taken_back"`
		}
		if json.Unmarshal(item.Event.Body, &body) == nil {
			if said := s.unqueue(body.MessageID); body.TakenBack {
				s.TakenBack(body.MessageID, said, s.given[body.MessageID])
			} else {
				s.GivenBack(body.MessageID, said)
			}
		}
	case regie.EventStreamReset:
		told := s.Telling()
		s.shown = ""
		switch line, long := ResetLine(s.Text, item.Event); { // of a short one nobody has seen anything (decision 53)
		case told:
			s.Note(s.Text.T("… %s; what it said above does not count", line))
		case long:
			s.Note("… " + line)
		}
	case regie.EventFallback:
		s.Note("  " + FallbackLine(s.Text, item.Event))
	case regie.EventNotice:
		if line := NoticeLine(s.Text, item.Event); line != "" {
			s.Note(line)
		}
	case regie.EventUndo:
		if line, id := UndoEvent(s.Text, item.Event); line != "" && !s.own[id] {
			s.Note(line)
		}
	case regie.EventRound:
		s.round(item.Event)
	}
}

// delta writes a piece of a reply. Deltas overtake events, because they are not stored: what
// belongs behind an event that has not come yet is held back. One that comes behind its message is
// dropped: the message has it.
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
		s.pieces = plain.Stream{}
	}
	s.write(s.pieces.Add(d.Content))
}

// early reports whether the events have not reached a reply yet: its round has not begun, an
// earlier reply is not whole, or its calls have not all their results.
func (s *Stream) early(at place) bool {
	return !s.running.IsZero() && s.running != at.round || s.reply != place{} && s.reply != at ||
		s.batch != place{} && s.batch.round == at.round
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
	s.unqueue(m.ID)
	switch {
	case m.AI != nil && strings.HasPrefix(m.AI.Text(), regie.InvalidFormat):
		s.unreadable(m.AI.Text(), at)
	case m.AI != nil:
		whole, shown := m.AI.Text(), s.shown
		if at != s.reply {
			shown = ""
		}
		rest, is := strings.CutPrefix(whole, shown)
		if !is || shown == "" { // pieces of it got lost: the whole of it, on lines of its own
			s.fresh()
			rest, s.pieces = whole, plain.Stream{}
		}
		s.write(s.pieces.Add(rest) + s.pieces.Rest())
		s.fresh()
		s.told, s.reply, s.shown = at, place{}, ""
		if line := CachedLine(s.Text, m, time.Now()); line != "" {
			s.Note("  " + line)
		}
		if len(m.CallIDs()) > 0 {
			s.batch = at
		}
	case m.Author.ID == regie.ComponentTools:
		s.tools(m)
	case m.System != nil:
		if at == s.batch {
			s.batch = place{}
		}
		if m.System.Type == regie.SystemLimitReached {
			s.limited = true
			s.Note(Told(s.Text, m.System))
		}
	case m.Sender == regie.SenderAI && m.Text != "": // what was to be said once the actions had succeeded
		s.fresh()
		s.write(m.Text)
		s.fresh()
	case m.Sender == regie.SenderUser && !m.ExcludeFromPrompt && !s.own[m.ID]:
		s.Note("› " + strings.ReplaceAll(m.LinearText(), "\n", "\n  "))
	}
}

// maxUnreadable bounds what is shown of a reply that cannot be read, in bytes.
const maxUnreadable = 2000

// unreadable shows a reply that is no reply in its dialect: what the model wrote, so that nothing
// is kept from the person (spec 2.2).
func (s *Stream) unreadable(text string, at place) {
	raw := strings.TrimSpace(strings.TrimPrefix(text, regie.InvalidFormat))
	if len(raw) > maxUnreadable {
		raw = strings.ToValidUTF8(raw[:maxUnreadable], "") + "…"
	}
	s.told, s.reply, s.shown = at, place{}, ""
	s.Note(s.Text.T("the model's reply cannot be read; it is asked to write it again. It wrote:"))
	s.Note(raw)
}

// tools tells which tools are away. A chat whose runs all miss the same ones says so once.
func (s *Stream) tools(m *regie.Message) {
	lines := ToolNotice(s.Text, m)
	told := strings.Join(lines, "\n")
	if told == s.missing {
		return
	}
	s.missing = told
	for _, line := range lines {
		s.Note(line)
	}
}

// ToolNotice is what a message tells of tools that are away, a line for each toolkit; none for what
// is no such message.
func ToolNotice(t *text.Printer, m *regie.Message) []string {
	notice, ok := m.ToolNotice()
	if !ok {
		return nil
	}
	var lines []string
	if !notice.Document.IsZero() {
		lines = append(lines, "  ! "+plain.Line(t.Sentence(notice.Document)))
	}
	ends := regie.Strictest(notice.Hooks)
	for i := range notice.Hooks {
		if ends == &notice.Hooks[i] && ends.On == regie.HookBeforeRound { // the end of the round says it
			continue
		}
		if line := hookLine(t, &notice.Hooks[i]); line != "" {
			lines = append(lines, line)
		}
	}
	for _, missing := range notice.Missing {
		why := plain.Line(missing.Why)
		if notice.CallID.IsZero() {
			lines = append(lines, t.T("  ! without the tools of %s: %s", plain.Line(missing.Toolkit), why))
		} else {
			lines = append(lines, t.T("  … the run waits for %s, to go on with what it had begun there: %s",
				plain.Line(missing.Toolkit), why))
		}
	}
	return lines
}

// round notes which round runs, and says how one ended that has no answer.
func (s *Stream) round(event *regie.Event) {
	var body struct {
		RoundID regie.ID          `json:"round_id"`
		State   regie.RoundState  `json:"state"`
		Stop    regie.StopRequest `json:"stop_request"`
		End     regie.RoundEnd    `json:"end_reason"`
		Note    regie.Sentence    `json:"end_note"`
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
	s.ended(body.End, body.Note)
	s.limited = false
}

// ended says how a round ended that has no answer.
func (s *Stream) ended(end regie.RoundEnd, note regie.Sentence) {
	switch end {
	case regie.EndAnswered, regie.EndCompleted:
		if !note.IsZero() {
			s.Note(s.Text.T("the run ended: %s", s.Text.Sentence(note)))
		}
	case regie.EndLimit, regie.EndEarlyStop:
		if !s.limited { // else the message has said it
			s.Note(s.Text.T("the run ended: %s", s.Text.Sentence(note)))
		}
	case regie.EndInterrupted:
		s.Note(s.Text.T("interrupted"))
	case regie.EndStopped:
		s.Note(s.Text.T("stopped"))
	default:
		s.Note(s.Text.T("the run ended: %s", s.Text.Sentence(note)))
	}
}

// NoticeLine is a notice as one line, and "" for one that is not known.
func NoticeLine(t *text.Printer, event *regie.Event) string {
	var n regie.Notice
	if json.Unmarshal(event.Body, &n) != nil {
		return ""
	}
	lasts := event.Time.Sub(n.Since).Round(time.Second).String()
	if rough := event.Time.Sub(n.Since).Round(time.Minute); rough > 0 {
		lasts = strings.TrimSuffix(rough.String(), "0s")
	}
	switch n.Kind {
	case regie.NoticeNetworkDown:
		if len(n.Said) > 0 {
			return plain.Strip(said(t, n.Said))
		}
		return plain.Strip(t.T("the model has not been reached for %s (%s); the run still waits for it",
			lasts, reason(t, n.Why, n.Text)))
	case regie.NoticeNetworkGiveUp:
		return plain.Strip(t.T("the model was not reached for %s (%s); the run is paused",
			lasts, reason(t, n.Why, n.Text)))
	case regie.NoticeBudget, regie.NoticeProvider:
		return plain.Strip(said(t, n.Said))
	case regie.NoticeFailed:
		why := n.Text
		if len(n.Said) > 0 {
			why = said(t, n.Said)
		}
		return plain.Strip(t.T("the unattended run has failed: %s", why))
	default:
		return ""
	}
}

// said are sentences in the language of the surface.
func said(t *text.Printer, sentences []regie.Sentence) string {
	out := make([]string, len(sentences))
	for i, sentence := range sentences {
		out[i] = t.Sentence(sentence)
	}
	return strings.Join(out, " ")
}

// patience is how long a chat says nothing of a model that is asked again (decision 53).
const patience = 5 * time.Second

// ResetLine says that a model is asked again, why, and when, if that is not at once; long says that
// it is long.
func ResetLine(t *text.Printer, event *regie.Event) (line string, long bool) {
	var body struct {
		Code   regie.Code `json:"code"`
		Status int        `json:"status"`
		WaitMS int64      `json:"wait_ms"`
	}
	if json.Unmarshal(event.Body, &body) != nil || body.Code == "" { // erased
		return t.T("the model is asked again"), false
	}
	switch body.Code { // what has cut it, and not its server
	case regie.CodeStopRequested:
		return t.T("the run was paused while the model answered, and asks it again when it goes on"), false
	case regie.CodeEngineGone:
		return t.T("the process that asked the model has ended, and the next one asks again"), false
	}
	wait := time.Duration(body.WaitMS) * time.Millisecond
	why := string(body.Code)
	switch body.Code {
	case regie.CodeProviderBusy:
		why = busy(t, body.Status)
	case regie.CodeTruncatedStream:
		why = t.T("its answer ended in the middle")
	case regie.CodeProviderBroken:
		why = t.T("the connection broke")
	case regie.CodeTimeout:
		why = t.T("it took too long")
	case regie.CodeBadReply:
		why = t.T("its answer could not be used")
	case regie.CodeEmptyReply:
		why = t.T("its answer was empty")
	}
	if wait >= patience {
		return t.T("the model is asked again in %s s: %s", strconv.Itoa(int(wait.Round(time.Second)/time.Second)), why),
			true
	}
	return t.T("the model is asked again: %s", why), false
}

// busy says why a server that may answer later does not now, by its status.
func busy(t *text.Printer, status int) string {
	switch status {
	case http.StatusServiceUnavailable, 529: // which is Anthropic's
		return t.T("its server is overloaded")
	case http.StatusTooManyRequests:
		return t.T("its server takes no more requests for now")
	case 0: // in the stream, or by a vendor's own word
		return t.T("its server reported an error")
	default:
		return t.T("its server answered %d", status)
	}
}

// FallbackLine says which provider goes on, and why (spec 3.6).
func FallbackLine(t *text.Printer, event *regie.Event) string {
	var f regie.Fallback
	if json.Unmarshal(event.Body, &f) != nil || f.Provider == "" { // erased
		return t.T("another provider goes on")
	}
	return plain.Strip(t.T("%s (%s) answers, because %s did not: %s", plain.Line(f.Provider), plain.Line(f.Model),
		plain.Line(f.Instead), plain.Line(reason(t, f.Why, f.Text))))
}

// reason is a failure's sentence in the language of the surface; what was stored before there was
// one is in its own words.
func reason(t *text.Printer, said regie.Sentence, text string) string {
	if said.IsZero() {
		return text
	}
	return t.Sentence(said)
}
