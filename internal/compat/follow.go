package compat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// The finish reasons.
const (
	finishStop   = "stop"
	finishLength = "length"
	finishTools  = "tool_calls"
)

// outcome is what a round came to.
type outcome struct {
	session, round regie.ID
	finish         string
	usage          regie.Usage
	calls          []regie.Call // of the client's tools, that it is to run
	text           string       // all that was said
}

// listener is told of a round on its way: which it is, once that is known, and each piece of text.
type listener struct {
	begun func(round regie.ID) error
	text  func(piece string)
}

// errOver ends the look at a session's events.
var errOver = errors.New("over")

// following is a round as it is told by its session's log.
type following struct {
	run      dispatch.Run
	asked    *submitted
	language string             // of what is said beside the model's words
	head     int64              // of the log when the message had just been stored; zero where that is not known
	state    regie.SessionState // there
	to       listener
	target   regie.ID // the round that answers, once the message has its place
	exchange int      // whose reply streams in
	sent     string   // of that reply
	broken   bool     // the reply began anew after some of it was sent: nothing more is, until it is whole
	text     strings.Builder
	usage    regie.Usage
	parked   []regie.ID // approvals that wait
	end      regie.RoundEnd
	note     regie.Sentence
	limit    string // what people are told where the round was stopped
	waits    regie.SessionState
	failure  error
}

// follow waits for what becomes of a message. A client that goes away ends this and not the round:
// a disconnect is not a stop (spec 10.3). Whatever fails here, the work was begun.
func (s *server) follow(ctx context.Context, sent submitted, to listener) (outcome, error) {
	out, err := s.heard(ctx, sent, to)
	if err != nil {
		err = begun{safely(&sent, err)}
	}
	return out, err
}

// ordinal says which round of its session one is, from 1.
func (s *server) ordinal(ctx context.Context, session, round regie.ID) (int, error) {
	list, err := s.Control.List(ctx, store.RoundFilter{SessionID: session})
	if err != nil {
		return 0, err
	}
	for i := range list { // the newest ones
		if list[i].Round.ID == round {
			return list[i].Round.Number, nil
		}
	}
	view, err := s.Control.Get(ctx, round)
	return view.Round.Number, err
}

func (s *server) heard(ctx context.Context, sent submitted, to listener) (outcome, error) {
	f := &following{
		run: sent.Run, asked: &sent, language: sent.language, head: sent.summary.Head,
		state: sent.summary.State, to: to,
	}
	err := s.Control.Events(ctx, sent.SessionID, max(0, sent.Seq-1), f.hear)
	switch {
	case errors.Is(err, errOver):
	case ctx.Err() != nil:
		return outcome{}, context.Cause(ctx) // a server that stops has a word of its own
	default:
		return outcome{}, err
	}
	var out outcome
	if err = f.failure; err == nil {
		out, err = s.outcome(ctx, f)
	}
	if err != nil && !passes(regie.CodeOf(err)) && (sent.again || sent.results && sent.Duplicate) {
		err = ofBefore(&sent, err)
	}
	return out, err
}

// hear takes one thing of the stream.
func (f *following) hear(item dispatch.Item) error {
	if item.Delta != nil {
		f.delta(item.Delta)
		return nil
	}
	err := f.event(item.Event)
	// What waited before the message came and still does, as after the answer to one of two
	// questions, tells nothing more of itself.
	if err == nil && item.Event.Seq == f.head && !f.target.IsZero() && waits(f.state) {
		f.waits, err = f.state, errOver
	}
	return err
}

// waits reports whether a session goes on only by a person's word.
func waits(state regie.SessionState) bool {
	return state == regie.SessionWaitingValidation || state == regie.SessionWaitingResponse ||
		state == regie.SessionPaused
}

// event takes an event of the log.
func (f *following) event(e *regie.Event) error {
	switch e.Type {
	case regie.EventMessage:
		return f.message(e)
	case regie.EventMessageWithdrawn:
		var body struct {
			MessageID regie.ID `json:"message_id"`
			TakenBack bool     `json:"taken_back"`
		}
		if json.Unmarshal(e.Body, &body) == nil && body.MessageID == f.run.MessageID {
			f.failure = regie.Errorf(regie.CodeConflict, "the session was stopped before the message had its turn")
			if body.TakenBack {
				f.failure = regie.Errorf(regie.CodeConflict, "the message was taken back before it had its turn")
			}
			return errOver
		}
	case regie.EventStreamReset:
		f.broken = f.sent != ""
	case regie.EventApproval:
		var body struct {
			ApprovalID regie.ID            `json:"approval_id"`
			RoundID    regie.ID            `json:"round_id"`
			State      regie.ApprovalState `json:"state"`
		}
		if json.Unmarshal(e.Body, &body) == nil && body.RoundID == f.target && body.State == regie.ApprovalOpen {
			f.parked = append(f.parked, body.ApprovalID)
		}
	case regie.EventSessionState:
		var body struct {
			State regie.SessionState `json:"state"`
		}
		if json.Unmarshal(e.Body, &body) != nil {
			return nil //nolint:nilerr // erased
		}
		// A message that came to a round at work has no place yet, and has none either before the
		// approval that it now waits for.
		if f.target.IsZero() && (!f.run.Pending || body.State != regie.SessionWaitingValidation || e.Seq < f.run.Seq) {
			return nil
		}
		if waits(body.State) {
			f.waits = body.State
			return errOver
		}
	case regie.EventRound:
		return f.round(e)
	default:
	}
	return nil
}

// delta passes a piece of a reply on.
func (f *following) delta(d *dispatch.Delta) {
	if d.RoundID != f.target || d.Content == "" || f.broken {
		return
	}
	if d.Exchange != f.exchange {
		f.next(d.Exchange)
	}
	f.sent += d.Content
	f.say(d.Content)
}

// next begins the text of another reply.
func (f *following) next(exchange int) {
	f.exchange, f.sent, f.broken = exchange, "", false
}

// say passes text on; replies are apart from each other.
func (f *following) say(piece string) {
	if piece == "" {
		return
	}
	if f.text.Len() > 0 && f.sent == piece && !strings.HasSuffix(f.text.String(), "\n\n") {
		piece = "\n\n" + piece
	}
	f.text.WriteString(piece)
	f.to.text(piece)
}

// message takes a message of the session: the one that was sent has its place now, and a reply is
// whole.
func (f *following) message(e *regie.Event) error {
	var m regie.Message
	if json.Unmarshal(e.Body, &m) != nil {
		return nil //nolint:nilerr // erased
	}
	if m.ID == f.run.MessageID {
		f.target = m.RoundID
		return f.to.begun(f.target)
	}
	if m.RoundID != f.target || f.target.IsZero() {
		return nil
	}
	switch {
	case m.AI != nil:
		f.reply(&m)
	case m.Text != "" && m.Sender == regie.SenderAI: // what a model had to say once its actions had succeeded
		f.next(m.Exchange)
		f.sent = m.Text
		f.say(m.Text)
	case m.System != nil && m.System.Type == regie.SystemLimitReached:
		f.limit = m.System.Summary
	default:
	}
	return nil
}

// reply takes a whole reply: what of it was not sent yet is.
func (f *following) reply(m *regie.Message) {
	if m.Exchange != f.exchange {
		f.next(m.Exchange)
	}
	whole := strings.TrimPrefix(m.AI.Text(), regie.InvalidFormat)
	if rest, ok := strings.CutPrefix(whole, f.sent); ok {
		if f.sent == "" {
			f.sent = rest
		}
		f.say(rest)
	} else { // it began anew, or pieces of it were lost on the way to a slow client
		f.sent = whole
		f.say(whole)
	}
	f.next(m.Exchange)
	if u := m.Usage; u != nil && m.AI.Cached.IsZero() {
		f.usage.Input += u.Input
		f.usage.Output += u.Output
		f.usage.CacheRead += u.CacheRead
		f.usage.CacheCreation += u.CacheCreation
		f.usage.Reasoning += u.Reasoning
	}
}

// round takes what is told of a round.
func (f *following) round(e *regie.Event) error {
	var body struct {
		RoundID regie.ID         `json:"round_id"`
		State   regie.RoundState `json:"state"`
		End     regie.RoundEnd   `json:"end_reason"`
		Note    regie.Sentence   `json:"end_note"`
	}
	if json.Unmarshal(e.Body, &body) != nil || body.RoundID != f.target || f.target.IsZero() ||
		body.State != regie.RoundEnded {
		return nil //nolint:nilerr // erased, or of another one
	}
	f.end, f.note = body.End, body.Note
	return errOver
}

// outcome says what the round came to, in the words of an API.
func (s *server) outcome(ctx context.Context, f *following) (outcome, error) {
	out := outcome{session: f.run.SessionID, round: f.target, finish: finishStop, usage: f.usage}
	if out.round.IsZero() { // it has no place yet: what is told is how the open round stands
		out.round = f.run.RoundID
		if err := f.to.begun(out.round); err != nil {
			return out, err
		}
	}
	switch {
	case f.waits == regie.SessionWaitingValidation:
		if err := s.asked(ctx, f); err != nil {
			return out, err
		}
		f.own(s.approvalNote(f.language, f.parked, mayDecide(ctx)))
	case f.waits == regie.SessionWaitingResponse:
		f.own("[" +
			s.words(f.language,
				regie.Say("This waits for an answer to a question. Write it as the next message of this session.")) +
			"]")
	case f.waits != "":
		return out, regie.Errorf(regie.CodeConflict, "the run is paused: resume it with: regie run --resume %s",
			f.target)
	case f.end == regie.EndClientTools:
		view, err := s.Control.Get(ctx, f.target)
		if err != nil {
			return out, err
		}
		out.finish, out.calls = finishTools, handedOut(view)
	case f.end == regie.EndAnswered, f.end == regie.EndCompleted, f.end == regie.EndDenied:
		if !f.note.IsZero() && f.end == regie.EndAnswered { // the reply reached the limit of its length
			out.finish = finishLength
		}
	case f.end == regie.EndLimit, f.end == regie.EndEarlyStop, f.end == regie.EndWatchdog, f.end == regie.EndNoProgress:
		out.finish = finishLength
		if err := s.overBudget(ctx, f); err != nil {
			return out, err
		}
		if f.limit == "" {
			f.limit = s.words(f.language, f.note)
		}
		f.own("[" + strings.TrimSpace(f.limit) + "]")
	case f.end == regie.EndProviderError:
		return out, s.whyFailed(ctx, f)
	default: // a person's word
		return out, &problem{
			status: http.StatusConflict, kind: kindServer, code: "stopped",
			err: regie.Errorf(regie.CodeStopRequested, "the run was stopped before its answer was there"),
		}
	}
	out.text = f.text.String()
	return out, nil
}

// asked finds the approvals that a session waits with, where they were asked for before the message
// came.
func (s *server) asked(ctx context.Context, f *following) error {
	if len(f.parked) > 0 {
		return nil
	}
	inbox, err := s.Control.Inbox(ctx, store.InboxFilter{SessionID: f.run.SessionID})
	for i := range inbox.Approvals {
		f.parked = append(f.parked, inbox.Approvals[i].ID)
	}
	return err
}

// own says something that is no model's.
func (f *following) own(text string) {
	if text == "[]" {
		return
	}
	f.next(0)
	f.sent = text
	f.say(text)
}

// words is a sentence in the language of a client.
func (s *server) words(language string, said regie.Sentence) string {
	if s.Translate == nil || said.IsZero() {
		return said.String()
	}
	return s.Translate(language, regie.ErrorOf(regie.CodeInternal, said))
}

// approvalNote tells which approvals wait, and how to decide them: by the caller's own token, or by
// others alone.
func (s *server) approvalNote(language string, approvals []regie.ID, may bool) string {
	var out []string
	for _, approval := range approvals {
		id := approval.String()
		note := regie.Say("This waits for the approval %s. Decide it with: regie approve %s (or: regie deny %s), or POST /api/v1/approvals/%s. The run then goes on by itself; "+
			"this session takes no message before that, and the next one hears of it.", id, id, id, id)
		if !may { // which would be answered 403
			note = regie.Say("This waits for the approval %s, which the token of this client may not decide. Who may does it where Regie runs, with: regie approve %s (or: regie deny %s). "+
				"The run then goes on by itself; this session takes no message before that, and the next one hears of it.", id, id, id)
		}
		out = append(out, "["+s.words(language, note)+"]")
	}
	return strings.Join(out, "\n")
}

// handedOut are the calls of a client's tools with which a round ended.
func handedOut(view store.RoundView) []regie.Call {
	var out []regie.Call
	if len(view.Exchanges) == 0 {
		return nil
	}
	for _, call := range view.Exchanges[len(view.Exchanges)-1].Calls {
		if call.Origin == regie.OriginClient && (call.State != regie.CallNotRun ||
			call.NotRun == regie.NotRunSuperseded) {
			out = append(out, call)
		}
	}
	return out
}

// overBudget is the error of a round that a cap did not let begin: nothing was said in it.
func (s *server) overBudget(ctx context.Context, f *following) error {
	if f.end != regie.EndLimit || f.text.Len() > 0 {
		return nil
	}
	view, err := s.Control.Get(ctx, f.target)
	if err != nil || len(view.Exchanges) != 1 {
		return err
	}
	for _, attempt := range view.Exchanges[0].Attempts {
		if attempt.Code == regie.CodeOverBudget {
			return &problem{err: regie.Errorf(regie.CodeOverBudget, "%s", f.limit)}
		}
	}
	return nil
}

// whyFailed is the error of a round whose model did not answer.
func (s *server) whyFailed(ctx context.Context, f *following) error {
	code, again := regie.CodeProviderRejected, false
	if view, err := s.Control.Get(ctx, f.target); err == nil && len(view.Exchanges) > 0 {
		if again, err = s.mayTry(ctx, f.asked, &view); err != nil {
			return err
		}
		if attempts := view.Exchanges[len(view.Exchanges)-1].Attempts; len(attempts) > 0 {
			code = attempts[len(attempts)-1].Code
		}
	}
	return &problem{err: regie.ErrorOf(code, f.note), again: again}
}

// toolName is a client's tool by its own name.
func toolName(call *regie.Call) string { return regie.ToolNameOf(call.Tool) }

// argumentsOf are a call's arguments as a client reads them: some models write none where there are
// no parameters.
func argumentsOf(call *regie.Call) string {
	if strings.TrimSpace(call.Arguments) == "" {
		return "{}"
	}
	return call.Arguments
}
