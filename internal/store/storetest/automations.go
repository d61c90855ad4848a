package storetest

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// automationSubmission returns a submission to an automation's session.
func automationSubmission(w *World) store.Submission {
	in := w.Submission("every night")
	in.New.Type, in.Round.Reason, in.Round.Dialect = regie.SessionAutomation,
		regie.ReasonAutomationStart, regie.DialectJSON
	return in
}

// closes ends an automation's round with its session: waiting messages are withdrawn, and later
// ones are refused (decision 44).
func closes(w *World) {
	in := automationSubmission(w)
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	late := w.Submission("and this")
	late.SessionID, late.New = in.SessionID, nil
	resultOf(w.Store.Submit(w.Ctx, late))(w)
	answer := w.Answer(1)
	answer.Advance.End = &store.End{
		Reason: regie.EndLimit, Note: regie.Verbatim("a limit"),
		Close: regie.SessionTimeout,
	}
	w.must(w.AppendReply(accepted.Fence, answer))
	session, _, err := w.Store.Session(w.Ctx, in.SessionID)
	w.must(err)
	w.equal("session", []any{session.State, session.EndReason}, []any{regie.SessionClosed, regie.SessionTimeout})
	back := resultOf(w.Store.Withdrawn(w.Ctx, in.SessionID))(w)
	if len(back) != 1 || back[0].ID != late.Message.ID {
		w.T.Errorf("what came back is %+v", back)
	}
	w.head(in.SessionID)
	more := w.Submission("more")
	more.SessionID, more.New = in.SessionID, nil
	w.unchanged(in.SessionID, regie.CodeConflict, func() error { _, err := w.Store.Submit(w.Ctx, more); return err })
}

// countsOn: the rounds of an automation share their counts, those of a chat do not (decision 2).
func countsOn(w *World) {
	for kind, want := range map[regie.SessionType][2]int64{
		regie.SessionAutomation: {4, 120},
		regie.SessionChat:       {0, 0},
	} {
		in := automationSubmission(w)
		in.New.Type = kind
		accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
		answer := w.Answer(1)
		answer.Exchange.Usage, answer.Advance.Counters = regie.Usage{Input: 100, Output: 20},
			regie.Counters{Total: 4, Retries: 1}
		w.must(w.AppendReply(accepted.Fence, answer))
		next := w.Submission("go on")
		next.SessionID, next.New = in.SessionID, nil
		resultOf(w.Store.Submit(w.Ctx, next))(w)
		round := resultOf(w.Store.Round(w.Ctx, next.Round.ID))(w)
		w.equal(string(kind), [2]int64{int64(round.Counters.Total), round.Tokens}, want)
		view := resultOf(w.Store.SessionView(w.Ctx, in.SessionID, w.User))(w)
		if e := view.Execution; kind == regie.SessionAutomation {
			w.equal("its execution", []any{e.Trigger, e.StartedAt, e.EndedAt, int64(e.RoundTrips), e.Tokens, e.ScheduledFor},
				[]any{regie.TriggerManual, view.History[0].StartedAt, time.Time{}, want[0], want[1], time.Time{}})
		} else {
			w.equal("the execution of a chat", e, (*regie.Execution)(nil))
		}
		first := resultOf(w.Store.Round(w.Ctx, accepted.RoundID))(w)
		w.equal("dialect", first.Dialect, regie.DialectJSON)
	}
}

// clockStands: a round's time does not run while it has no holder.
func clockStands(w *World) {
	in := w.Submission("quick")
	in.Round.Limits.Seconds = 60
	before := time.Now()
	accepted, err := w.Store.Submit(w.Ctx, in)
	w.must(err)
	started, err := w.Store.Round(w.Ctx, accepted.RoundID)
	w.must(err)
	if in := started.Deadline.Sub(before); in < 60*time.Second || in > 70*time.Second {
		w.T.Errorf("the time of a round of a minute is over after %s", in)
	}
	// It waits for its network, and is claimed a while later.
	w.must(w.FailAttempt(accepted.Fence, store.Failure{
		Attempt: regie.Attempt{
			RoundID: accepted.RoundID, Exchange: 1, Number: 1,
			Code: regie.CodeProviderOffline, Error: "gone",
		},
		Retry: &store.Open{Number: 1, Reason: regie.ExchangeStart}, WaitUntil: before,
		Outage: &regie.Outage{Exchange: 1, Since: before, Tries: 1},
	}))
	_, _, err = w.Store.ExpireWaits(w.Ctx, time.Now())
	w.must(err)
	claimed, err := w.Store.Claim(w.Ctx, accepted.RoundID, "other")
	w.must(err)
	stood := claimed.Round.Deadline.Sub(started.Deadline)
	if stood <= 0 || stood > time.Since(before) {
		w.T.Errorf("the clock stood for %s of at most %s", stood, time.Since(before))
	}
	w.must(w.AppendReply(claimed.Fence, w.Answer(1)))
	without := w.Start()
	w.must(w.Store.Release(w.Ctx, without))
	claimed, err = w.Store.Claim(w.Ctx, without.RoundID, "other")
	w.must(err)
	if !claimed.Round.Deadline.IsZero() {
		w.T.Errorf("a round without a limit must end at %s", claimed.Round.Deadline)
	}
}

// postText stores the model's text for after its actions: behind the results, and in no prompt
// (spec 2.2).
func postText(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	w.must(w.AppendReply(fence, reply))
	settle := w.Settled(1, reply.Calls)
	settle.Post = &regie.Message{
		ID: regie.NewID(), Sender: regie.SenderAI, Author: reply.Message.Author, Exchange: 1,
		Text: "Written.", ExcludeFromPrompt: true,
	}
	settle.Advance = &store.Advance{
		Phase: regie.PhaseEnd, Counters: regie.Counters{Total: 1},
		End: &store.End{Reason: regie.EndAnswered},
	}
	w.must(w.CommitCalls(fence, settle))
	thread := resultOf(w.Store.Thread(w.Ctx, fence.SessionID, 0))(w)
	last := thread.Messages[len(thread.Messages)-1]
	if last.Text != "Written." || !last.ExcludeFromPrompt || last.Seq != thread.Messages[len(thread.Messages)-2].Seq+1 {
		w.T.Errorf("the last message is %+v", last)
	}
	w.head(fence.SessionID)
}

// controlPositions asks for control of three queued automations: each has its own place.
func controlPositions(w *World) {
	w.Store.SetSlots(one)
	resultOf(w.Store.Submit(w.Ctx, automationSubmission(w)))(w)
	var queued []regie.ID
	for place := 1; place <= 3; place++ {
		accepted := resultOf(w.Store.Submit(w.Ctx, automationSubmission(w)))(w)
		w.equal("place", accepted.Position, place)
		queued = append(queued, accepted.Fence.SessionID)
	}
	for i, session := range queued {
		out, err := w.Store.RequestControl(w.Ctx, store.Control{
			SessionID: session,
			For:       time.Hour, Ask: slot.AskManual,
		})
		w.must(err)
		w.equal("control", out, store.Controlled{State: store.ControlQueued, Position: i + 1})
	}
}

// controlMatrix is the table of spec 5.1, row by row, as requestSessionControl answers it.
func controlMatrix(w *World) {
	chat := func() store.Submission { return w.Submission("hello") }
	automation := func() store.Submission { return automationSubmission(w) }
	for name, row := range map[string]struct {
		capacity slot.Capacity
		busy     []func() store.Submission // each takes a slot, or a place in the queue
		want     map[slot.Ask]store.Controlled
	}{
		"free": {one, nil, map[slot.Ask]store.Controlled{
			slot.AskManual: {State: store.ControlActivated}, slot.AskScheduled: {State: store.ControlActivated},
			slot.AskEvent: {State: store.ControlActivated},
		}},
		"an automation runs": {one, []func() store.Submission{automation}, map[slot.Ask]store.Controlled{
			slot.AskManual: {State: store.ControlQueued, Position: 1}, slot.AskScheduled: {State: store.ControlRefused},
			slot.AskEvent: {State: store.ControlQueued, Position: 1},
		}},
		"one runs, one waits": {one, []func() store.Submission{automation, automation}, map[slot.Ask]store.Controlled{
			slot.AskManual: {State: store.ControlQueued, Position: 2}, slot.AskScheduled: {State: store.ControlRefused},
			slot.AskEvent: {State: store.ControlQueued, Position: 2},
		}},
		"a chat runs beside it": {one, []func() store.Submission{chat}, map[slot.Ask]store.Controlled{
			slot.AskManual: {State: store.ControlActivated}, slot.AskScheduled: {State: store.ControlActivated},
			slot.AskEvent: {State: store.ControlActivated},
		}},
		"a chat has the only slot": {slot.Capacity{Exclusive: true}, []func() store.Submission{chat}, map[slot.Ask]store.Controlled{
			slot.AskManual: {State: store.ControlQueued, Position: 1}, slot.AskScheduled: {State: store.ControlRefused},
			slot.AskEvent: {State: store.ControlQueued, Position: 1},
		}},
		"behind any chat": {
			slot.Capacity{Exclusive: true}, []func() store.Submission{automation, chat}, map[slot.Ask]store.Controlled{
				slot.AskManual: {State: store.ControlQueued, Position: 2}, slot.AskScheduled: {State: store.ControlRefused},
				slot.AskEvent: {State: store.ControlQueued, Position: 2},
			},
		},
	} {
		for ask, want := range row.want {
			w.Store.SetSlots(row.capacity)
			var begun []store.Accepted
			for _, submission := range row.busy {
				begun = append(begun, resultOf(w.Store.Submit(w.Ctx, submission()))(w))
			}
			idle := *automationSubmission(w).New
			made := resultOf(w.Store.CreateSession(w.Ctx, idle))(w)
			got := resultOf(w.Store.RequestControl(w.Ctx, store.Control{SessionID: made.ID, For: time.Hour, Ask: ask}))(w)
			got.Until = time.Time{}
			w.equal(name+", "+string(ask), got, want)
			w.must(w.Store.ReleaseControl(w.Ctx, made.ID))
			for _, accepted := range begun { // gives all back for the next cell
				claimed := resultOf(w.Store.Claim(w.Ctx, accepted.RoundID, "cell"))(w)
				w.must(w.AppendReply(claimed.Fence, w.Answer(1)))
			}
		}
	}
}
