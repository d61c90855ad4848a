package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
)

// Stream writes a session's items as they come: the streaming text of replies, a line for each
// call, and why a run ended without an answer. It writes only the missing rest of a message after
// its text has streamed.
type Stream struct {
	Out, Err io.Writer // the replies; all else
	Text     *i18n.Printer
	// Mark is what a surface adds to the line of a call's result: how it is unfolded. nil adds
	// nothing.
	Mark func(call regie.ID) string
	// Apart says that a note has its place above a reply that is being written, and ends none of
	// its lines.
	Apart bool

	open io.Writer // where a line was begun and not ended
	// prompted says that the person's prompt is on the current line.
	prompted bool

	replies Replies
	own     map[regie.ID]bool
	missing string   // what was told last of tools that are away
	waiting []Queued // messages that wait for their turn
	fold    Fold
	output  Output
}

// Own tells whether a message was typed or is being taken back here, or an undo was asked for here:
// what its event tells is shown already.
func (s *Stream) Own(id regie.ID, is bool) {
	if s.own == nil {
		s.own = map[regie.ID]bool{}
	}
	s.own[id] = is
}

// Note writes a line outside the replies.
func (s *Stream) Note(line string) {
	if !s.Apart || !s.replies.Telling() {
		s.startLine()
	}
	fmt.Fprintln(s.Err, sanitize.Strip(line))
}

func (s *Stream) writeNotes(lines []string) {
	for _, line := range lines {
		s.Note(line)
	}
}

// writeQuote writes a person's message.
func (s *Stream) writeQuote(said string) { s.Note("› " + strings.ReplaceAll(said, "\n", "\n  ")) }

// Telling reports whether a reply is being written that is not whole.
func (s *Stream) Telling() bool { return s.replies.Telling() }

// Prompt writes a prompt; Typed tells that the person has ended its line.
func (s *Stream) Prompt(prompt string) {
	s.startLine()
	fmt.Fprint(s.Err, prompt)
	s.open, s.prompted = s.Err, true
}

// Typed tells that the terminal has shown the end of a line.
func (s *Stream) Typed() { s.open, s.prompted = nil, false }

// startLine makes the cursor stand at the beginning of a line.
func (s *Stream) startLine() {
	if s.open != nil {
		fmt.Fprintln(s.open)
	}
	s.Typed()
}

func (s *Stream) writeReply(content string) {
	content = sanitize.Strip(content)
	if content == "" {
		return
	}
	fmt.Fprint(s.Out, content)
	s.prompted = false
	if s.open = s.Out; strings.HasSuffix(content, "\n") {
		s.open = nil
	}
}

// Item writes one item.
func (s *Stream) Item(item dispatch.Item) {
	if item.Delta != nil {
		s.writeNotes(s.output.Lines(s.Text, item.Delta))
		s.writeDelta(item.Delta)
	}
	if item.Event != nil {
		s.handleEvent(item.Event)
	}
	for _, held := range s.replies.Release() {
		s.writeDelta(held)
	}
}

// writeDelta writes a piece of a reply.
func (s *Stream) writeDelta(d *dispatch.Delta) {
	told := s.replies.Telling()
	content, _ := s.replies.Delta(d)
	if !told && s.replies.Telling() {
		s.startLine()
	}
	s.writeReply(content)
}

func (s *Stream) handleEvent(event *regie.Event) {
	body := BodyOf(event)
	s.writeNotes(s.output.Rest(event))
	for _, line := range s.fold.Lines(s.Text, event) {
		if s.Mark != nil {
			line += s.Mark(body.CallID)
		}
		s.Note(line)
	}
	switch event.Type {
	case regie.EventMessage, regie.EventMessagePending:
		var m regie.Message
		switch {
		case json.Unmarshal(event.Body, &m) != nil:
		case event.Type == regie.EventMessage:
			s.writeMessage(&m)
		default:
			s.addQueued(m.ID, m.LinearText())
		}
	case regie.EventMessageWithdrawn:
		if said := s.removeQueued(body.MessageID); !s.own[body.MessageID] {
			s.showWithdrawn(said, body.TakenBack)
		}
	case regie.EventStreamReset:
		told := s.replies.Reset()
		switch line, long := ResetLine(s.Text, event); { // a short wait is not shown (decision 53)
		case told:
			s.Note(s.Text.T("… %s; its text above is discarded", line))
		case long:
			s.Note("… " + line)
		}
	case regie.EventFallback:
		s.Note("  " + FallbackLine(s.Text, event))
	case regie.EventNotice:
		if line := NoticeLine(s.Text, event); line != "" {
			s.Note(line)
		}
	case regie.EventUndo:
		var u regie.Undo
		if json.Unmarshal(event.Body, &u) == nil && u.State == regie.UndoDone && !s.own[u.ID] {
			s.Note(s.Text.T("undo %s of run %s", Short(u.ID), u.RoundID) + ": " + undoCounts(s.Text, &u))
		}
	case regie.EventRound:
		s.replies.Round(&body)
		s.roundEnd(&body)
	}
}

// writeMessage writes what of a message was not seen yet.
func (s *Stream) writeMessage(m *regie.Message) {
	s.removeQueued(m.ID)
	told := s.replies.Telling()
	content, _, again := s.replies.Message(m)
	switch {
	case m.AI != nil && strings.HasPrefix(m.AI.Text(), regie.InvalidFormat): // spec 2.2: shown to the person
		s.Note(s.Text.T("the model's reply cannot be read; it is asked to write it again. It wrote:"))
		s.Note(strings.TrimSpace(strings.ToValidUTF8(content[:min(len(content), maxUnreadable)], "")))
	case m.AI != nil:
		if !told || again { // the whole of it, on lines of its own
			s.startLine()
		}
		s.writeReply(content)
		s.startLine()
		if line := CachedLine(s.Text, m); line != "" {
			s.Note("  " + line)
		}
	case m.System != nil && m.System.Type == regie.SystemFormatError && len(m.System.Said) > 0: // a draft
		s.Note(s.Text.T("… %s; its text above is discarded", Told(s.Text, m.System)))
	case m.Author.ID == regie.ComponentTools: // a chat whose runs all miss the same tools says so once
		lines := ToolNotice(s.Text, m)
		if told := strings.Join(lines, "\n"); told != s.missing {
			s.missing = told
			s.writeNotes(lines)
		}
	case m.Sender == regie.SenderAI && m.Text != "": // what was to be said once the actions had succeeded
		s.startLine()
		s.writeReply(m.Text)
		s.startLine()
	case m.Sender == regie.SenderUser && !m.ExcludeFromPrompt && !s.own[m.ID]:
		s.writeQuote(m.LinearText())
	}
}

// maxUnreadable limits the shown part of an unreadable reply, in bytes.
const maxUnreadable = 2000

// ToolNotice returns the text of a message about unavailable tools, a line for each toolkit; nil
// for other messages.
func ToolNotice(t *i18n.Printer, m *regie.Message) []string {
	notice, ok := m.ToolNotice()
	if !ok {
		return nil
	}
	var lines []string
	if !notice.Document.IsZero() {
		lines = append(lines, "  ! "+sanitize.Line(t.Sentence(notice.Document)))
	}
	ends := regie.Strictest(notice.Hooks)
	for i := range notice.Hooks { // those that objected, or could not be heard
		h := &notice.Hooks[i]
		told := h == ends && h.On == regie.HookBeforeRound // by the end of the round
		if !told && (h.Verdict != "" || !h.Failure.IsZero()) {
			about := cmp.Or(h.Tool, string(h.On))
			lines = append(lines, "  ! "+sanitize.Line(t.T("%s: %s", about, t.Sentence(h.Objection()))))
		}
	}
	for _, missing := range notice.Missing {
		line := t.T("  ! the tools of %s are unavailable: %s", missing.Toolkit, missing.Why)
		if !notice.CallID.IsZero() {
			line = t.T("  … the run waits for %s, where one of its calls is unfinished: %s", missing.Toolkit, missing.Why)
		}
		lines = append(lines, sanitize.Line(line))
	}
	return lines
}

// roundEnd says how a round ended that has no answer.
func (s *Stream) roundEnd(body *Body) {
	answered := body.End == regie.EndAnswered || body.End == regie.EndCompleted
	switch {
	case body.State != string(regie.RoundEnded):
	case body.End == regie.EndInterrupted:
		s.Note(s.Text.T("interrupted"))
	case body.End == regie.EndStopped:
		s.Note(s.Text.T("stopped"))
	case !answered || !body.Note.IsZero():
		s.Note(s.Text.T("the run ended: %s", s.Text.Sentence(body.Note)))
	}
}

// NoticeLine is a notice as one line, and "" for one that is not known.
func NoticeLine(t *i18n.Printer, event *regie.Event) string {
	var n regie.Notice
	if json.Unmarshal(event.Body, &n) != nil {
		return ""
	}
	ours, lasts := joinSentences(t, n.Said), event.Time.Sub(n.Since).Round(time.Second).String()
	why := cmp.Or(ours, t.Sentence(n.Why), n.Text)
	switch {
	case n.Kind == regie.NoticeBudget, n.Kind == regie.NoticeProvider, n.Kind == regie.NoticeNetworkDown && ours != "":
		return sanitize.Strip(ours)
	case n.Kind == regie.NoticeNetworkDown:
		return sanitize.Strip(t.T("the model has not been reached for %s (%s); the run still waits for it", lasts, why))
	case n.Kind == regie.NoticeNetworkGiveUp:
		return sanitize.Strip(t.T("the model was not reached for %s (%s); the run is paused", lasts, why))
	case n.Kind == regie.NoticeFailed:
		return sanitize.Strip(t.T("the unattended run has failed: %s", why))
	}
	return ""
}

// joinSentences returns sentences in the language of the surface.
func joinSentences(t *i18n.Printer, sentences []regie.Sentence) string {
	out := make([]string, len(sentences))
	for i, sentence := range sentences {
		out[i] = t.Sentence(sentence)
	}
	return strings.Join(out, " ")
}

// patience is how long a chat waits before it mentions that a model call is retried (decision 53).
const patience = 5 * time.Second

// ResetLine says that a model call is retried, why, and after how long a wait; long reports a wait
// of at least patience.
func ResetLine(t *i18n.Printer, event *regie.Event) (line string, long bool) {
	body := BodyOf(event) // an erased body has no reason
	if wait := time.Duration(body.WaitMS) * time.Millisecond; wait >= patience {
		seconds := strconv.Itoa(int(wait.Round(time.Second) / time.Second))
		return t.T("the model is asked again in %s s: %s", seconds, string(body.Code)), true
	}
	return t.T("the model is asked again: %s", string(body.Code)), false
}

// FallbackLine says which provider goes on, and why (spec 3.6).
func FallbackLine(t *i18n.Printer, event *regie.Event) string {
	var f regie.Fallback
	_ = json.Unmarshal(event.Body, &f) // an erased body has no names
	return sanitize.Line(t.T("%s (%s) answers because %s did not: %s", f.Provider, f.Model, f.Instead,
		cmp.Or(t.Sentence(f.Why), f.Text)))
}
