package acp

import (
	"cmp"
	"context"
	"encoding/json"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// follower tells an editor what happens in a session until a round of it has ended.
type follower struct {
	*agent
	s       *session
	round   regie.ID
	own     regie.ID // the queued message with the followed round
	pending bool
	// background says that no prompt waits for it.
	background bool
	cancelled  bool
	state      regie.SessionState

	end  regie.RoundEnd
	note regie.Sentence
	err  error // the first of telling and of asking the engine, which ends it

	replies chat.Replies
	drawn   map[regie.ID]regie.ID // the rounds of the calls that were told
	asking  func()                // ends the asking, where it is under way
	asked   chan error            // how it ended: nil where all was answered
}

func (a *agent) newFollower(s *session, round regie.ID) *follower {
	return &follower{agent: a, s: s, round: round, drawn: map[regie.ID]regie.ID{}}
}

// followRound follows to the end of the round. The end of ctx interrupts it where a prompt waits,
// unless the editor has gone: that stops nothing.
func (f *follower) followRound(ctx context.Context) (sdk.StopReason, error) {
	inner, leave := context.WithCancel(f.ctx)
	defer leave()
	feed := chat.Follow(inner, f.Control, f.s.id, f.s.seen.Load())
	defer feed.Stop()
	defer f.stopAsking()
	stopped := ctx.Done()
	for f.end == "" && f.err == nil {
		f.askPending(inner)
		select {
		case item := <-feed.Items:
			f.handleItem(item)
		case err := <-feed.Ended:
			return "", err
		case err := <-f.asked:
			f.stopAsking()
			if err != nil {
				return f.endLeft(err)
			}
			f.state = "" // until an event brings another request
		case <-f.conn.Done():
			return "", context.Canceled
		case <-stopped:
			stopped = nil
			if f.background || f.hasGone() {
				return "", context.Canceled
			}
			f.cancelled = true
			f.stopAsking()
			f.keepError(f.interruptRound(inner, f.round))
		}
	}
	if f.err != nil {
		return "", f.err
	}
	return f.stopReason()
}

// keepError keeps the first error.
func (f *follower) keepError(err error) { f.err = cmp.Or(f.err, err) }

// hasGone reports whether the editor has gone.
func (f *follower) hasGone() bool {
	select {
	case <-f.conn.Done():
		return true
	default:
		return f.ctx.Err() != nil
	}
}

// sendUpdate sends one update.
func (f *follower) sendUpdate(update sdk.SessionUpdate) {
	if f.err == nil {
		f.err = f.agent.sendUpdate(f.ctx, f.s, update)
	}
}

// sendText sends a piece of the agent's reply.
func (f *follower) sendText(text string) {
	if text = sanitize.Strip(text); text != "" {
		f.sendUpdate(sdk.UpdateAgentMessageText(text))
	}
}

// sendThought sends a piece of the agent's thinking.
func (f *follower) sendThought(text string) {
	if text != "" {
		f.sendUpdate(sdk.UpdateAgentThoughtText(text))
	}
}

// handleItem tells one item.
func (f *follower) handleItem(item dispatch.Item) {
	if item.Delta != nil {
		f.sendDelta(item.Delta)
	}
	if item.Event != nil {
		f.handleEvent(item.Event)
		f.s.seen.Store(item.Event.Seq)
	}
	for _, held := range f.replies.Release() {
		f.sendDelta(held)
	}
}

// sendDelta tells a piece of a reply.
func (f *follower) sendDelta(d *dispatch.Delta) {
	content, thinking := f.replies.Delta(d)
	f.sendThought(thinking)
	f.sendText(content)
}

// handleEvent tells an event; what was erased is not told.
func (f *follower) handleEvent(event *regie.Event) {
	var m regie.Message
	if event.Type == regie.EventMessage && json.Unmarshal(event.Body, &m) == nil {
		f.handleMessage(&m)
	}
	b := chat.BodyOf(event)
	f.state = cmp.Or(b.Session, f.state)
	switch event.Type {
	case regie.EventSessionState:
		f.state = regie.SessionState(b.State)
	case regie.EventRound:
		f.replies.Round(&b)
		if chat.RoundEnds(event, &b) && b.RoundID == f.round && !f.pending {
			f.end, f.note = b.End, b.Note
		}
	case regie.EventMessageWithdrawn:
		if f.pending && b.MessageID == f.own { // it was taken back elsewhere, or its session was stopped
			f.end = regie.EndStopped
		}
	case regie.EventStreamReset:
		if f.replies.Reset() {
			f.sendText("\n\n" + f.Text.T("the model is asked again") + "\n\n")
		}
	case regie.EventToolCall, regie.EventToolResult:
		if round := f.drawn[b.CallID]; !round.IsZero() {
			f.sendCallUpdate(&b, round, event.Type == regie.EventToolResult)
		}
	case regie.EventPlan:
		f.sendPlan(&b)
	}
}

func (f *follower) sendPlan(b *chat.Body) {
	entries := []sdk.PlanEntry{}
	for _, step := range b.Plan.Steps {
		status := map[string]sdk.PlanEntryStatus{
			"active": sdk.PlanEntryStatusInProgress,
			"done":   sdk.PlanEntryStatusCompleted,
		}[step.Status]
		entries = append(entries, sdk.PlanEntry{
			Content: sanitize.Line(step.Text), Priority: sdk.PlanEntryPriorityMedium,
			Status: cmp.Or(status, sdk.PlanEntryStatusPending),
		})
	}
	f.sendUpdate(sdk.UpdatePlan(entries...))
}

// handleMessage tells what of a message was not told yet.
func (f *follower) handleMessage(m *regie.Message) {
	content, thinking, again := f.replies.Message(m)
	switch {
	case m.Sender == regie.SenderUser && m.ID == f.own: // its turn has come
		f.round, f.pending = m.RoundID, false
		if f.cancelled { // it was to end before it had begun
			f.keepError(f.interruptRound(f.ctx, f.round))
		}
	case m.Sender == regie.SenderUser:
		if !m.ExcludeFromPrompt && !f.own.IsZero() && m.RoundID != f.round {
			f.sendUpdate(sdk.UpdateUserMessageText(sanitize.Strip(m.LinearText())))
		}
	case m.AI != nil:
		f.sendThought(thinking)
		if again {
			f.sendText("\n\n")
		}
		f.sendText(content)
		if len(m.CallIDs()) > 0 {
			f.sendCalls(m)
		}
	case m.Sender == regie.SenderAI && m.Text != "":
		f.sendText("\n" + m.Text + "\n")
	case m.System != nil && m.System.Type == regie.SystemFormatError && len(m.System.Said) > 0: // above is a draft
		f.sendText("\n\n(" + chat.Told(f.Text, m.System) + ")\n\n")
	}
}

// sendCalls tells a reply's calls.
func (f *follower) sendCalls(m *regie.Message) {
	// a reply's event binds arguments by their hash: the calls' rows have them
	view, err := f.Control.Get(f.ctx, m.RoundID)
	f.keepError(err)
	for _, c := range chat.CallsOf(&view) {
		if c.Exchange == m.Exchange && !isSilent(c.Tool) {
			f.drawn[c.ID], c.State = m.RoundID, regie.CallProposed
			f.sendUpdate(f.s.startUpdate(&c))
		}
	}
}

// sendCallUpdate sends a call's progress and result.
func (f *follower) sendCallUpdate(b *chat.Body, round regie.ID, settled bool) {
	options := []sdk.ToolCallUpdateOpt{sdk.WithUpdateStatus(settledAs(regie.CallState(b.State), b.Exit))}
	if settled {
		view, err := f.Control.Get(f.ctx, round)
		f.keepError(err)
		for _, c := range chat.CallsOf(&view) {
			if c.ID == b.CallID {
				drawn := f.s.drawCall(c.Tool, cmp.Or(string(c.Executed), c.Arguments))
				options = append(options,
					sdk.WithUpdateContent(append(drawn.content, sdk.ToolContent(sdk.TextBlock(resultOf(&c))))))
			}
		}
	}
	f.sendUpdate(sdk.UpdateToolCall(sdk.ToolCallId(b.CallID.String()), options...))
}

// stopReason says how the round ended.
func (f *follower) stopReason() (sdk.StopReason, error) {
	why := f.Text.T("the run ended: %s", f.Text.Sentence(f.note))
	switch f.end {
	case regie.EndInterrupted, regie.EndStopped:
		return sdk.StopReasonCancelled, nil
	case regie.EndAnswered, regie.EndCompleted, regie.EndDenied, regie.EndClientTools, regie.EndProviderError:
		switch {
		case f.cancelled:
			return sdk.StopReasonCancelled, nil
		case f.end != regie.EndProviderError:
			return sdk.StopReasonEndTurn, nil
		}
		data := map[string]any{"end_reason": string(f.end)}
		return "", &sdk.RequestError{Code: -32603, Message: sanitize.Strip(why), Data: data}
	}
	f.sendText("\n\n" + why)
	return sdk.StopReasonMaxTurnRequests, f.err
}
