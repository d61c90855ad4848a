package compat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	status, finish string // in the words of Responses, and of Chat Completions
	usage          regie.Usage
	calls          []regie.Call // of the client's tools, that it is to run
	text           string       // all that was said
}

// errOver ends the look at a session's events.
var errOver = errors.New("over")

// following is a round as its session's log tells it.
type following struct {
	*answer
	target   regie.ID           // the round that answers, once the message has its place
	exchange int                // whose reply streams in
	streamed string             // of that reply
	broken   bool               // the reply began anew after some of it was sent: nothing more is, until it is whole
	waits    regie.SessionState // what for, where the round has not ended
}

// followRound waits for what becomes of a message. A client that goes away ends this and not the
// round: a disconnect is not a stop (spec 10.3). Whatever fails here, the work was begun.
func (a *answer) followRound(ctx context.Context) (out outcome, err error) {
	f := &following{answer: a}
	err = a.server.Service.Events.Follow(ctx, a.sent.SessionID, max(0, a.sent.Seq-1), f.handleItem)
	over := errors.Is(err, errOver)
	if over {
		out, err = f.findOutcome(ctx)
	}
	if ctx.Err() != nil && (err != nil || !over) {
		err = context.Cause(ctx) // a server that stops has a cause of its own
	}
	if err != nil {
		err = markBegun(&a.sent, err)
	}
	return out, err
}

// handleItem takes one thing of the stream.
func (f *following) handleItem(item dispatch.Item) error {
	if item.Delta != nil {
		f.passDelta(item.Delta)
		return nil
	}
	err := f.handleEvent(item.Event)
	// What waited before the message came and still does, as after the answer to one of two
	// questions, tells nothing more of itself.
	if now := &f.sent.summary; err == nil && item.Event.Seq == now.Head && !f.target.IsZero() &&
		waitsForPerson(now.State) {
		f.waits, err = now.State, errOver
	}
	return err
}

// waitsForPerson reports whether a session goes on only by a person's word.
func waitsForPerson(state regie.SessionState) bool {
	return state == regie.SessionWaitingValidation || state == regie.SessionWaitingResponse ||
		state == regie.SessionPaused
}

// handleEvent takes an event of the log. An erased one says nothing.
func (f *following) handleEvent(e *regie.Event) error {
	switch e.Type {
	case regie.EventMessage:
		return f.handleMessage(e)
	case regie.EventStreamReset:
		f.broken = f.streamed != ""
		return nil
	}
	var body struct {
		MessageID regie.ID `json:"message_id"`
		RoundID   regie.ID `json:"round_id"`
		State     string   `json:"state"`
	}
	if json.Unmarshal(e.Body, &body) != nil {
		return nil //nolint:nilerr // erased
	}
	run := &f.sent.Run
	switch e.Type {
	case regie.EventMessageWithdrawn:
		if body.MessageID == run.MessageID {
			return regie.Errorf(regie.CodeConflict, "the message was withdrawn before it was processed")
		}
	case regie.EventRound:
		if !f.target.IsZero() && body.RoundID == f.target && body.State == string(regie.RoundEnded) {
			return errOver
		}
	case regie.EventSessionState:
		// A message that came to a round at work has no place yet, and has none either before the
		// approval that it now waits for.
		state := regie.SessionState(body.State)
		placed := !f.target.IsZero() || run.Pending && e.Seq >= run.Seq && state == regie.SessionWaitingValidation
		if waitsForPerson(state) && placed {
			f.waits = state
			return errOver
		}
	}
	return nil
}

// passDelta passes a piece of a reply on.
func (f *following) passDelta(d *dispatch.Delta) {
	if d.RoundID != f.target || d.Content == "" || f.broken {
		return
	}
	if d.Exchange != f.exchange {
		f.beginReply(d.Exchange)
	}
	f.streamed += d.Content
	f.addReplyText(d.Content)
}

// beginReply begins the text of another reply.
func (f *following) beginReply(exchange int) {
	f.exchange, f.streamed, f.broken = exchange, "", false
}

// addReplyText adds text to the answer; replies are apart from each other.
func (f *following) addReplyText(piece string) {
	if piece == "" {
		return
	}
	if f.said.Len() > 0 && f.streamed == piece && !strings.HasSuffix(f.said.String(), "\n\n") {
		piece = "\n\n" + piece
	}
	f.addText(piece)
}

// addReply begins another reply and adds all of its text.
func (f *following) addReply(exchange int, text string) {
	f.beginReply(exchange)
	f.streamed = text
	f.addReplyText(text)
}

// handleMessage takes a message of the session: the one that was sent has its place now, and a
// reply is whole.
func (f *following) handleMessage(e *regie.Event) error {
	var m regie.Message
	if json.Unmarshal(e.Body, &m) != nil {
		return nil //nolint:nilerr // erased
	}
	if m.ID == f.sent.MessageID {
		f.target, f.round = m.RoundID, m.RoundID
		return nil
	}
	if m.RoundID != f.target || f.target.IsZero() {
		return nil
	}
	switch {
	case m.AI != nil:
		f.addWholeReply(&m)
	case m.Text != "" && m.Sender == regie.SenderAI: // what a model had to say once its actions had succeeded
		f.addReply(m.Exchange, m.Text)
	}
	return nil
}

// addWholeReply takes a whole reply: what of it was not sent yet is.
func (f *following) addWholeReply(m *regie.Message) {
	if m.Exchange != f.exchange {
		f.beginReply(m.Exchange)
	}
	whole := strings.TrimPrefix(m.AI.Text(), regie.InvalidFormat)
	if rest, ok := strings.CutPrefix(whole, f.streamed); ok {
		if f.streamed == "" {
			f.streamed = rest
		}
		f.addReplyText(rest)
		f.beginReply(m.Exchange)
		return
	}
	f.addReply(m.Exchange, whole) // it began anew, or pieces of it were lost on the way to a slow client
	f.beginReply(m.Exchange)
}

func addUsage(sum, u *regie.Usage) {
	sum.Input += u.Input
	sum.Output += u.Output
	sum.CacheRead += u.CacheRead
	sum.CacheCreation += u.CacheCreation
	sum.Reasoning += u.Reasoning
}

// findOutcome says what the round came to, in the words of an API. Where the message has no place
// yet, that is the state of the open round.
func (f *following) findOutcome(ctx context.Context) (outcome, error) {
	view, err := f.server.Service.Rounds.Get(ctx, f.round)
	if err != nil {
		return outcome{}, err
	}
	out := storedOutcome(&view)
	switch {
	case f.waits == regie.SessionWaitingValidation:
		note, err := f.approvalNote(ctx)
		if err != nil {
			return out, err
		}
		f.sayAside(note)
	case f.waits == regie.SessionWaitingResponse:
		f.sayAside(f.translate(regie.Say("This waits for an answer to a question. Write it as the next message of this session.")))
	case f.waits != "":
		return out, regie.Errorf(regie.CodeConflict, "the run is paused: resume it with: regie run --resume %s", f.round)
	case out.status == statusFailed:
		return out, regie.ErrorOf(failureCode(&view), view.Round.EndNote)
	case out.status == statusCancelled:
		return out, &problem{
			code: "stopped", err: regie.Errorf(regie.CodeStopRequested, "the run was stopped before its answer was ready"),
		}
	case out.status == statusIncomplete && view.Round.End != regie.EndAnswered:
		f.sayAside(f.translate(view.Round.EndNote))
	}
	if f.waits != "" {
		out.status = statusCompleted
	}
	out.text = f.said.String()
	return out, nil
}

// failureCode returns the code of the last attempt of a round.
func failureCode(view *store.RoundView) regie.Code {
	code := regie.CodeProviderRejected
	for i := range view.Exchanges {
		for _, attempt := range view.Exchanges[i].Attempts {
			code = attempt.Code
		}
	}
	return code
}

// storedOutcome returns what a stored round came to.
func storedOutcome(view *store.RoundView) outcome {
	out := outcome{
		session: view.Session.ID, round: view.Round.ID, finish: finishStop, status: statusCompleted,
	}
	var text []string
	for i := range view.Exchanges {
		e := &view.Exchanges[i]
		if e.Reply == nil || e.Reply.AI == nil {
			continue
		}
		if t := strings.TrimPrefix(e.Reply.AI.Text(), regie.InvalidFormat); t != "" {
			text = append(text, t)
		}
		addUsage(&out.usage, &e.Usage)
	}
	out.text = strings.Join(text, "\n\n")
	round := &view.Round
	switch {
	case round.State != regie.RoundEnded:
		out.status = statusInProgress
	case round.End == regie.EndClientTools:
		out.finish, out.calls = finishTools, handedOut(view)
	case round.End == regie.EndProviderError:
		out.status = statusFailed
	case round.End == regie.EndInterrupted, round.End == regie.EndStopped:
		out.status = statusCancelled
	case round.End == regie.EndCompleted, round.End == regie.EndDenied,
		round.End == regie.EndAnswered && round.EndNote.IsZero():
	default: // a limit, of the answer's length too
		out.finish, out.status = finishLength, statusIncomplete
		out.text = cmp.Or(out.text, round.EndNote.String())
	}
	return out
}

// sayAside says something that is no model's, in brackets.
func (f *following) sayAside(text string) {
	if text == "" {
		return
	}
	f.addReply(0, "["+text+"]")
}

// translate is a sentence in the language of the client.
func (f *following) translate(said regie.Sentence) string {
	if f.server.Translate == nil || said.IsZero() {
		return said.String()
	}
	return f.server.Translate(f.r.Header.Get("Accept-Language"), regie.ErrorOf(regie.CodeInternal, said))
}

// approvalNote tells which approvals a session waits for, and how they are decided.
func (f *following) approvalNote(ctx context.Context) (string, error) {
	inbox, err := f.server.Service.Approvals.Inbox(ctx, store.InboxFilter{SessionID: f.sent.SessionID})
	var out []string
	for i := range inbox.Approvals {
		id := inbox.Approvals[i].ID.String()
		note := regie.Say("This waits for the approval %s: regie approve %s (or: regie deny %s), or POST /api/v1/approvals/%s, decides it. "+
			"The run then goes on by itself; this session takes no message before that.", id, id, id, id)
		out = append(out, f.translate(note))
	}
	return strings.Join(out, "\n"), err
}

// handedOut returns the calls of a client's tools with which a round ended.
func handedOut(view *store.RoundView) []regie.Call {
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

// toolName returns a client's tool by its own name.
func toolName(call *regie.Call) string { return regie.ToolNameOf(call.Tool) }

// argumentsOf returns a call's arguments as a client reads them: some models write none where there
// are no parameters.
func argumentsOf(call *regie.Call) string {
	if strings.TrimSpace(call.Arguments) == "" {
		return "{}"
	}
	return call.Arguments
}
