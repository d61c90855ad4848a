package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// follower tells an editor what happens in a session until a round of it has ended.
type follower struct {
	*agent
	s       *session
	round   regie.ID
	own     regie.ID // the message whose round is followed, where that waits for its turn
	pending bool
	// background says that no prompt waits for it.
	background bool
	cancelled  bool
	state      regie.SessionState

	end  regie.RoundEnd
	note regie.Sentence

	at      place // the reply whose text is told
	told    string
	pieces  plain.Stream // of it
	thought plain.Stream
	whole   place // the last reply that was told whole
	batch   place // a reply whose calls have not all their results
	held    []*dispatch.Delta
	drawn   map[regie.ID]bool
	asking  func()     // ends the asking, where it is under way
	asked   chan error // how it ended: nil where all was answered
}

// place is a reply's place: its round and exchange.
type place struct {
	round    regie.ID
	exchange int
}

func (a *agent) follow(s *session, round regie.ID) *follower {
	return &follower{agent: a, s: s, round: round, drawn: map[regie.ID]bool{}}
}

// run follows to the end of the round. The end of ctx interrupts it where a prompt waits, unless
// the editor has gone: that stops nothing.
func (f *follower) run(ctx context.Context) (sdk.StopReason, error) {
	inner, leave := context.WithCancel(f.ctx)
	defer leave()
	items, failed := make(chan dispatch.Item), make(chan error, 1)
	f.s.mu.Lock()
	after := f.s.seen
	f.s.mu.Unlock()
	go func() {
		failed <- f.Control.Events(inner, f.s.id, after, func(item dispatch.Item) error {
			select {
			case items <- item:
				return nil
			case <-inner.Done():
				return context.Cause(inner)
			}
		})
	}()
	defer f.stopAsking()
	stopped := ctx.Done()
	for f.end == "" {
		f.ask(inner)
		select {
		case item := <-items:
			if err := f.item(inner, item); err != nil {
				return "", err
			}
		case err := <-failed:
			return "", f.refused(err)
		case err := <-f.asked:
			f.stopAsking()
			if err != nil {
				return f.left(inner, err)
			}
			f.state = "" // until an event says that more is asked
		case <-f.conn.Done():
			return "", context.Canceled
		case <-stopped:
			stopped = nil
			if f.background || f.gone() {
				return "", context.Canceled
			}
			f.cancelled = true
			f.stopAsking()
			if err := f.interrupt(inner, f.round); err != nil {
				return "", f.refused(err)
			}
		}
	}
	return f.ended(inner)
}

// gone reports whether the editor has gone.
func (f *follower) gone() bool {
	select {
	case <-f.conn.Done():
		return true
	default:
		return f.ctx.Err() != nil
	}
}

// say tells a piece of what the agent says.
func (f *follower) say(ctx context.Context, text string) error {
	if text = plain.Strip(text); text == "" {
		return nil
	}
	return f.tell(ctx, f.s, sdk.UpdateAgentMessageText(text))
}

// item tells one item.
func (f *follower) item(ctx context.Context, item dispatch.Item) error {
	if item.Delta != nil {
		if err := f.delta(ctx, item.Delta); err != nil {
			return err
		}
	}
	if item.Event != nil {
		if err := f.event(ctx, item.Event); err != nil {
			return err
		}
		f.s.mu.Lock()
		f.s.seen = item.Event.Seq
		f.s.mu.Unlock()
	}
	held := f.held
	f.held = nil
	for _, d := range held {
		if err := f.delta(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// delta tells a piece of a reply. Deltas overtake events: what belongs behind an event that has not
// come yet is held back, and what comes behind its message is dropped, because the message has it.
func (f *follower) delta(ctx context.Context, d *dispatch.Delta) error {
	at := place{d.RoundID, d.Exchange}
	switch {
	case d.Content == "" && d.Thinking == "" || at == f.whole:
		return nil
	case f.at != place{} && f.at != at, f.batch != place{} && f.batch.round == at.round:
		f.held = append(f.held, d)
		return nil
	}
	if f.at != at {
		f.at, f.pieces, f.thought = at, plain.Stream{}, plain.Stream{}
	}
	if err := f.think(ctx, f.thought.Add(d.Thinking)); err != nil {
		return err
	}
	piece := f.pieces.Add(d.Content)
	f.told += piece
	return f.say(ctx, piece)
}

// think tells a piece of what the agent thinks.
func (f *follower) think(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	return f.tell(ctx, f.s, sdk.UpdateAgentThoughtText(text))
}

// body is what is read of an event's body.
type body struct {
	RoundID regie.ID           `json:"round_id"`
	State   string             `json:"state"`
	Session regie.SessionState `json:"session_state"`
	End     regie.RoundEnd     `json:"end_reason"`
	Note    regie.Sentence     `json:"end_note"`
	CallID  regie.ID           `json:"call_id"`
	Message regie.ID           `json:"message_id"`
	Tool    string             `json:"tool"`
	Exit    string             `json:"exit"`
	Plan    struct {
		Steps []struct {
			Text   string `json:"text"`
			Status string `json:"status"`
		} `json:"steps"`
	} `json:"plan"`
}

func (f *follower) event(ctx context.Context, event *regie.Event) error {
	if event.Type == regie.EventMessage {
		var m regie.Message
		if len(event.Body) == 0 || json.Unmarshal(event.Body, &m) != nil { // erased
			return nil //nolint:nilerr // what is not there is not told
		}
		return f.message(ctx, &m)
	}
	var b body
	if json.Unmarshal(event.Body, &b) != nil {
		return nil //nolint:nilerr // erased: what is not there is not told
	}
	if b.Session != "" {
		f.state = b.Session
	}
	switch event.Type {
	case regie.EventSessionState:
		f.state = regie.SessionState(b.State)
	case regie.EventRound:
		if b.State == string(regie.RoundEnded) {
			f.at, f.told, f.batch = place{}, "", place{}
			if b.RoundID == f.round && !f.pending {
				f.end, f.note = b.End, b.Note
			}
		}
	case regie.EventMessageWithdrawn:
		if f.pending && b.Message == f.own { // it was taken back elsewhere, or its session was stopped
			f.end = regie.EndStopped
		}
	case regie.EventStreamReset:
		told := f.told
		f.at, f.told = place{}, ""
		if told != "" {
			return f.say(ctx, "\n\n"+f.Text.T("the model is asked again")+"\n\n")
		}
	case regie.EventToolCall, regie.EventToolResult:
		if f.drawn[b.CallID] {
			return f.tell(ctx, f.s, sdk.UpdateToolCall(sdk.ToolCallId(b.CallID.String()),
				sdk.WithUpdateStatus(settledAs(regie.CallState(b.State), b.Exit))))
		}
	case regie.EventPlan:
		return f.plan(ctx, &b)
	}
	return nil
}

func (f *follower) plan(ctx context.Context, b *body) error {
	entries := []sdk.PlanEntry{}
	for _, step := range b.Plan.Steps {
		status := map[string]sdk.PlanEntryStatus{
			"active": sdk.PlanEntryStatusInProgress,
			"done":   sdk.PlanEntryStatusCompleted,
		}[step.Status]
		if status == "" {
			status = sdk.PlanEntryStatusPending
		}
		entries = append(entries, sdk.PlanEntry{
			Content:  plain.Line(step.Text),
			Priority: sdk.PlanEntryPriorityMedium, Status: status,
		})
	}
	return f.tell(ctx, f.s, sdk.UpdatePlan(entries...))
}

// message tells what of a message was not told yet.
func (f *follower) message(ctx context.Context, m *regie.Message) error {
	at := place{m.RoundID, m.Exchange}
	switch {
	case m.Sender == regie.SenderUser:
		if m.ID == f.own { // its turn has come
			f.round, f.pending = m.RoundID, false
			f.s.mu.Lock()
			f.s.running = m.RoundID
			f.s.mu.Unlock()
			if f.cancelled { // it was to end before it had begun
				return f.interrupt(ctx, f.round)
			}
		} else if !m.ExcludeFromPrompt && !f.own.IsZero() && m.RoundID != f.round {
			return f.tell(ctx, f.s, sdk.UpdateUserMessageText(plain.Strip(m.LinearText())))
		}
		return nil
	case m.AI != nil:
		return f.reply(ctx, m, at)
	case m.System != nil:
		if at == f.batch {
			f.batch = place{}
		}
		if len(m.System.CallIDs) > 0 {
			return f.results(ctx, m)
		}
		return nil
	case m.Sender == regie.SenderAI && m.Text != "":
		return f.say(ctx, "\n"+m.Text+"\n")
	}
	return nil
}

// reply tells what of a reply did not stream, its calls, and its usage.
func (f *follower) reply(ctx context.Context, m *regie.Message, at place) error {
	whole := plain.Strip(strings.TrimPrefix(m.AI.Text(), regie.InvalidFormat))
	rest, thought := whole, thoughts(m.AI)
	if at == f.at {
		thought = f.thought.Rest()
		var is bool
		if rest, is = strings.CutPrefix(whole, f.told); !is { // pieces of it got lost: the whole of it
			rest = "\n\n" + whole
		}
	}
	if err := f.think(ctx, thought); err != nil {
		return err
	}
	if err := f.say(ctx, rest); err != nil {
		return err
	}
	f.whole, f.at, f.told = at, place{}, ""
	if len(m.CallIDs()) == 0 && m.Usage == nil {
		return nil
	}
	// a reply's event binds arguments by their hash: the calls' rows have them
	view, err := f.Control.Get(ctx, m.RoundID)
	if err != nil {
		return f.refused(err)
	}
	if len(m.CallIDs()) > 0 {
		f.batch = at
	}
	for c := range callsOf(&view, m.Exchange) {
		if silent(c.Tool) {
			continue
		}
		f.drawn[c.ID] = true
		shown := *c
		shown.State = regie.CallProposed
		if err := f.tell(ctx, f.s, f.s.start(&shown)); err != nil {
			return err
		}
	}
	size := view.Round.Limits.ContextTokens
	if m.Usage == nil || size <= 0 {
		return nil
	}
	return f.tell(ctx, f.s, sdk.SessionUpdate{UsageUpdate: &sdk.SessionUsageUpdate{
		Size: size, Used: int(m.Usage.Input + m.Usage.Output),
	}})
}

// callsOf are the calls of an exchange of a round.
func callsOf(view *store.RoundView, exchange int) iter.Seq[*regie.Call] {
	return func(yield func(*regie.Call) bool) {
		for i := range view.Exchanges {
			for j := range view.Exchanges[i].Calls {
				if view.Exchanges[i].Number == exchange && !yield(&view.Exchanges[i].Calls[j]) {
					return
				}
			}
		}
	}
}

// results tells what the calls of a batch brought.
func (f *follower) results(ctx context.Context, m *regie.Message) error {
	view, err := f.Control.Get(ctx, m.RoundID)
	if err != nil {
		return f.refused(err)
	}
	for c := range callsOf(&view, m.Exchange) {
		if !f.drawn[c.ID] || !slices.Contains(m.System.CallIDs, c.ID) {
			continue
		}
		written := cmp.Or(string(c.Executed), c.Arguments)
		content := append(f.s.draw(c.Tool, written).content, sdk.ToolContent(sdk.TextBlock(resultOf(c))))
		if err := f.tell(ctx, f.s, sdk.UpdateToolCall(sdk.ToolCallId(c.ID.String()),
			sdk.WithUpdateStatus(settledAs(c.State, store.ExitCode(c))), sdk.WithUpdateContent(content))); err != nil {
			return err
		}
	}
	return nil
}

// ended says how the round ended.
func (f *follower) ended(ctx context.Context) (sdk.StopReason, error) {
	f.s.mu.Lock()
	f.s.running = regie.ID{}
	f.s.mu.Unlock()
	why := f.Text.T("the run ended: %s", f.Text.Sentence(f.note))
	switch f.end {
	case regie.EndAnswered, regie.EndCompleted, regie.EndDenied, regie.EndClientTools:
		if f.cancelled {
			return sdk.StopReasonCancelled, nil
		}
		return sdk.StopReasonEndTurn, nil
	case regie.EndInterrupted, regie.EndStopped:
		return sdk.StopReasonCancelled, nil
	case regie.EndProviderError:
		if f.cancelled {
			return sdk.StopReasonCancelled, nil
		}
		return "", &sdk.RequestError{
			Code: -32603, Message: plain.Strip(why),
			Data: map[string]any{"end_reason": string(f.end)},
		}
	default:
		if err := f.say(ctx, "\n\n"+why); err != nil {
			return "", err
		}
		return sdk.StopReasonMaxTurnRequests, nil
	}
}
