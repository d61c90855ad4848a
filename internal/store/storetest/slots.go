package storetest

import (
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// slotCases are the cases of Run for slots.
var slotCases = map[string]func(*World){
	"Slots":            slots,
	"SlotsOfOthers":    slotsOfOthers,
	"SlotsGivenBack":   slotsGivenBack,
	"SlotsYield":       slotsYield,
	"SlotsStopped":     slotsStopped,
	"SlotsTogether":    slotsTogether,
	"SlotsLowered":     slotsLowered,
	"SlotsNext":        slotsNext,
	"Control":          control,
	"Switched":         switched,
	"ControlPositions": controlPositions,
	"Presence":         presence,
}

// one slot for chats, and one for automations.
var one = slot.Capacity{Chat: 1, Automation: 1, API: 1}

// submitted submits a message that makes a session, and returns its place in the queue.
func (w *World) submitted() (store.Fence, int) {
	w.T.Helper()
	accepted := resultOf(w.Store.Submit(w.Ctx, w.Submission("go")))(w)
	return accepted.Fence, accepted.Position
}

// queue asserts which sessions the queue lets start, and which have to yield.
func (w *World) queue(session regie.ID, start, yield []store.Fence) {
	w.T.Helper()
	view := resultOf(w.Store.Queues(w.Ctx, session))(w)
	ids := func(fences []store.Fence) (out []regie.ID) {
		for _, f := range fences {
			out = append(out, f.RoundID)
		}
		return out
	}
	rounds := func(list []store.Resolved) (out []regie.ID) {
		for _, r := range list {
			out = append(out, r.RoundID)
		}
		return out
	}
	w.equal("may start", rounds(view.Start), ids(start))
	w.equal("is to let go", rounds(view.Yield), ids(yield))
	w.must(w.Store.TellPlaces(w.Ctx, view.Moved))
}

// isQueued asserts that a round waits for a slot: it cannot be claimed, and it is no orphan.
func (w *World) isQueued(fence store.Fence, position int) {
	w.T.Helper()
	w.state(fence.SessionID, regie.SessionQueued)
	if _, err := w.Store.Claim(w.Ctx, fence.RoundID, "next"); !errors.Is(err, store.ErrQueued) {
		w.T.Fatalf("a queued round was claimed: %v", err)
	}
	view := resultOf(w.Store.SessionView(w.Ctx, fence.SessionID, w.User))(w)
	w.equal("position", view.QueuePosition, position)
	lines := resultOf(w.Store.Sessions(w.Ctx, store.SessionFilter{ID: fence.SessionID, UserID: w.User}))(w)
	w.equal("position in the list", lines[0].QueuePosition, position)
	orphans := resultOf(w.Store.Orphans(w.Ctx, ""))(w)
	for _, o := range orphans {
		if o.RoundID == fence.RoundID {
			w.T.Error("a queued round is taken for an orphan")
		}
	}
	resultOf(w.Store.Verify(w.Ctx, fence.SessionID))(w)
}

// runs claims a round and returns its new fence.
func (w *World) runs(fence store.Fence) store.Fence {
	w.T.Helper()
	claimed := resultOf(w.Store.Claim(w.Ctx, fence.RoundID, "next"))(w)
	w.state(fence.SessionID, regie.SessionActive)
	return claimed.Fence
}

// readStates returns the states in a session's log, with the places.
func readStates(w *World, session regie.ID) (out []string) {
	w.T.Helper()
	events := resultOf(w.Store.Events(w.Ctx, session, 0, 1000))(w)
	for _, e := range events {
		if e.Type == regie.EventSessionState {
			var body struct {
				State    string `json:"state"`
				Position int    `json:"position"`
			}
			w.must(json.Unmarshal(e.Body, &body))
			if body.Position > 0 {
				body.State += " at " + string(rune('0'+body.Position))
			}
			out = append(out, body.State)
		}
	}
	return out
}

// slots queues rounds without a free slot, and starts them when one is free.
func slots(w *World) {
	w.Store.SetSlots(one)
	first, at := w.submitted()
	w.equal("the first one's place", at, 0)
	second, at := w.submitted()
	w.equal("the second one's place", at, 1)
	w.isQueued(second, 1)
	w.queue(first.SessionID, nil, []store.Fence{first})
	third, at := w.submitted()
	w.equal("the third one's place", at, 1)
	w.isQueued(third, 1)
	w.isQueued(second, 2) // it lost its place, and nothing else

	w.must(w.AppendReply(first, w.Answer(1)))
	w.queue(regie.ID{}, []store.Fence{third}, nil)
	w.isQueued(second, 2) // it is not its turn
	third = w.runs(third)
	w.isQueued(second, 1)
	w.queue(second.SessionID, nil, nil) // it has no place, so no round yields for it
	w.must(w.AppendReply(third, w.Answer(1)))
	second = w.runs(second)
	w.must(w.AppendReply(second, w.Answer(1)))
	w.queue(regie.ID{}, nil, nil)
	w.equal("states", readStates(w, second.SessionID), []string{"QUEUED at 1", "QUEUED at 2", "QUEUED at 1", "ACTIVE"})
	w.equal("states", readStates(w, first.SessionID), []string(nil))
	for _, session := range []regie.ID{first.SessionID, second.SessionID, third.SessionID} {
		w.state(session, regie.SessionIdle)
		resultOf(w.Store.Verify(w.Ctx, session))(w)
	}
}

// slotsOfOthers: another workspace, another user or another kind has its own slots.
func slotsOfOthers(w *World) {
	w.Store.SetSlots(one)
	w.Start()
	in := w.Submission("in another workspace")
	workspace := resultOf(w.Store.EnsureWorkspace(w.Ctx, w.User,
		regie.Workspace{Name: "x", Root: "/x", FoundBy: "git"}))(w)
	in.New.WorkspaceID = workspace.ID
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.equal("place", accepted.Position, 0)
	in = w.Submission("somebody else's")
	other := resultOf(w.Store.EnsureUser(w.Ctx, "bob"))(w)
	in.New.UserID = other.ID
	accepted = resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.equal("place", accepted.Position, 0)
	accepted = resultOf(w.Store.Submit(w.Ctx, automationSubmission(w)))(w)
	w.equal("place", accepted.Position, 0)
	accepted = resultOf(w.Store.Submit(w.Ctx, automationSubmission(w)))(w)
	w.equal("place", accepted.Position, 1)

	w.Store.SetSlots(slot.Capacity{Exclusive: true}) // running rounds keep their slots; new claims find fewer
	_, at := w.submitted()
	w.equal("the chat's place before the automation", at, 1)
}

// slotsGivenBack: a wait and a pause free the slot. A round that continues asks for one again,
// behind chats, and preempts none.
func slotsGivenBack(w *World) {
	w.Store.SetSlots(one)
	parked := w.Parked(time.Now().Add(time.Hour))
	running, at := w.submitted()
	w.equal("place", at, 0)
	w.must(w.Store.Resume(w.Ctx, parked.RoundID)) // its wait is over: it continues with a free slot
	w.isQueued(parked, 1)
	w.queue(regie.ID{}, nil, nil)
	_, err := w.Store.RequestStop(w.Ctx, running.RoundID, regie.StopPause)
	w.must(err)
	w.queue(regie.ID{}, []store.Fence{parked}, nil)
	parked = w.runs(parked)
	w.must(w.Store.Release(w.Ctx, running))
	w.must(w.Store.Resume(w.Ctx, running.RoundID))
	w.isQueued(running, 1)
	_, err = w.Store.RequestStop(w.Ctx, running.RoundID, regie.StopPause) // a pause takes it out of the queue
	w.must(err)
	w.state(running.SessionID, regie.SessionPaused)
	w.must(w.AppendReply(parked, answerAgain(w)))
	w.queue(regie.ID{}, nil, nil)
	w.must(w.Store.Resume(w.Ctx, running.RoundID))
	w.state(running.SessionID, regie.SessionActive)
	running = w.runs(running)
	w.must(w.AppendReply(running, w.Answer(1)))
}

// answerAgain answers the second attempt of the first exchange.
func answerAgain(w *World) store.Reply {
	reply := w.Answer(1)
	reply.Exchange.Attempt = 2
	return reply
}

// slotsYield: a round that yields is queued, loses nothing, and continues.
func slotsYield(w *World) {
	w.Store.SetSlots(one)
	first := w.Start()
	second, _ := w.submitted()
	w.queue(first.SessionID, nil, []store.Fence{first})
	w.must(w.Store.Yield(w.Ctx, first))
	w.isQueued(first, 2)
	w.refused(regie.CodeNotFound, w.Store.SetAside(w.Ctx, store.SetAside{RoundID: regie.NewID()}))
	second = w.runs(second)
	w.isQueued(first, 1)
	w.queue(first.SessionID, nil, nil) // a continuing round preempts none
	w.must(w.AppendReply(second, w.Answer(1)))
	claimed := resultOf(w.Store.Claim(w.Ctx, first.RoundID, "next"))(w)
	w.equal("resumed", claimed.Resumed, false)
	w.equal("counted as a resume", claimed.Round.Counters.Resumes, 0)
	w.must(w.AppendReply(claimed.Fence, w.Answer(1)))
	w.equal("states", readStates(w, first.SessionID), []string{"QUEUED at 2", "QUEUED at 1", "ACTIVE"})
	w.refused(regie.CodeConflict, w.Store.Yield(w.Ctx, claimed.Fence))
}

// slotsStopped: a queued round can be stopped at once, and a stopped one takes no other round's
// slot.
func slotsStopped(w *World) {
	w.Store.SetSlots(one)
	first := w.Start()
	second, _ := w.submitted()
	_, err := w.Store.RequestStop(w.Ctx, second.RoundID, regie.StopInterrupt)
	w.must(err)
	w.queue(regie.ID{}, nil, nil)
	second = w.runs(second) // only to be ended
	_, err = w.Store.FailAttempt(w.Ctx, second, store.Failure{
		Attempt: regie.Attempt{
			RoundID: second.RoundID, Exchange: 1, Number: 1,
			Code: regie.CodeStopRequested, Error: "stopped",
		},
		Advance: &store.Advance{Phase: regie.PhaseEnd, End: &store.End{Reason: regie.EndInterrupted}},
	})
	w.must(err)
	w.state(second.SessionID, regie.SessionIdle)
	third, at := w.submitted()
	w.equal("place", at, 1)
	w.must(w.Store.SetAside(w.Ctx, store.SetAside{RoundID: third.RoundID})) // no engine here can go on with it
	w.queue(regie.ID{}, nil, nil)
	w.must(w.AppendReply(first, w.Answer(1)))
	third = w.runs(third)
	w.must(w.AppendReply(third, w.Answer(1)))
}

// slotsTogether: many rounds ask at once and get as many slots as exist, and all of them run in the
// end.
func slotsTogether(w *World) {
	w.Store.SetSlots(slot.Capacity{Chat: 3, Automation: 1, API: 1})
	const all = 16
	var group sync.WaitGroup
	var running, most, ended atomic.Int64
	// the rounds that run or ran in this process: one store relies on its process to claim each
	// once
	var here sync.Map
	runs := func(fence store.Fence) {
		now := running.Add(1)
		for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
		}
		running.Add(-1)
		if err := w.AppendReply(fence, w.Answer(1)); err != nil {
			w.T.Error(err)
		}
		ended.Add(1)
	}
	look := func() {
		for {
			view, err := w.Store.Queues(w.Ctx, regie.ID{})
			if err != nil || len(view.Start) == 0 {
				if err != nil {
					w.T.Error(err)
				}
				return
			}
			for _, r := range view.Start {
				if _, taken := here.LoadOrStore(r.RoundID, true); taken {
					continue
				}
				claimed, err := w.Store.Claim(w.Ctx, r.RoundID, regie.NewID().String())
				if err == nil {
					runs(claimed.Fence)
					continue
				}
				here.Delete(r.RoundID)
				if regie.CodeOf(err) != regie.CodeConflict && regie.CodeOf(err) != regie.CodeDatabaseLocked {
					w.T.Error(err)
				}
			}
		}
	}
	for range all {
		group.Go(func() {
			accepted, err := w.Store.Submit(w.Ctx, w.Submission("go"))
			if err != nil {
				w.T.Error(err)
				return
			}
			if accepted.Position == 0 {
				runs(accepted.Fence)
			}
			look()
		})
	}
	group.Wait()
	look()
	if most.Load() > 3 {
		w.T.Errorf("%d rounds ran side by side in 3 slots", most.Load())
	}
	w.equal("ended", ended.Load(), int64(all))
}

// slotsLowered: after a restart with fewer slots, new claims get no more than these.
func slotsLowered(w *World) {
	first, second := w.Start(), w.Start() // slots are unlimited
	w.Store.SetSlots(one)
	first = w.runs(first)
	checkQueuedAnew(w, second)
	w.Store.SetSlots(slot.Capacity{Chat: 2})
	second = w.runs(second)
	w.Store.SetSlots(one)
	first = w.runs(first)
	checkQueuedAnew(w, second)
	w.must(w.AppendReply(first, w.Answer(1)))
	w.must(w.AppendReply(w.runs(second), w.Answer(1)))
}

func checkQueuedAnew(w *World, fence store.Fence) {
	w.T.Helper()
	if _, err := w.Store.Claim(w.Ctx, fence.RoundID, "next"); !errors.Is(err, store.ErrQueued) {
		w.T.Fatalf("more rounds run than there are slots: %v", err)
	}
	w.state(fence.SessionID, regie.SessionQueued)
}

// slotsNext: a session's next round, started by its waiting messages, queues behind earlier rounds.
func slotsNext(w *World) {
	w.Store.SetSlots(one)
	first := w.Start()
	more := w.Submission("more")
	more.SessionID, more.New = first.SessionID, nil
	accepted := resultOf(w.Store.Submit(w.Ctx, more))(w)
	w.equal("pending", accepted.Pending, true)
	second, _ := w.submitted()
	out := resultOf(w.Store.AppendReply(w.Ctx, first, w.Answer(1)))(w)
	next := store.Fence{SessionID: first.SessionID, RoundID: out.Next}
	w.isQueued(next, 2)
	w.queue(first.SessionID, []store.Fence{second}, nil)
	w.must(w.AppendReply(w.runs(second), w.Answer(1)))
	w.must(w.AppendReply(w.runs(next), w.Answer(1)))
	resultOf(w.Store.Verify(w.Ctx, first.SessionID))(w)
}

// switched requests control where another chat runs: its place is reserved while that one yields.
func switched(w *World) {
	w.Store.SetSlots(slot.Capacity{Exclusive: true})
	ask := func(session regie.ID) store.Controlled {
		w.T.Helper()
		out := resultOf(w.Store.RequestControl(w.Ctx,
			store.Control{SessionID: session, For: time.Hour, Ask: slot.AskChat}))(w)
		return out
	}
	first := w.Start()
	w.must(w.AppendReply(first, w.Answer(1)))
	second, _ := w.submitted()
	got := ask(first.SessionID)
	w.equal("a message that came before the other one lets go would wait", got.State, store.ControlQueued)
	w.equal("and go first then", got.Position, 1)
	w.equal("the place is reserved while the other one lets go", got.Until.IsZero(), false)
	w.queue(regie.ID{}, nil, []store.Fence{second})
	w.must(w.Store.Yield(w.Ctx, second))
	w.equal("a message that comes now runs at once", ask(first.SessionID).State, store.ControlActivated)
	w.queue(regie.ID{}, nil, nil) // no round jumps in, not even the one that yielded
	w.isQueued(second, 1)
	between, at := w.submitted()
	w.equal("the place of who comes in between", at, 1)
	w.queue(regie.ID{}, nil, nil)
	in := w.Submission("switched")
	in.SessionID, in.New = first.SessionID, nil
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.equal("the asker's place", accepted.Position, 0)
	w.must(w.AppendReply(accepted.Fence, w.Answer(1)))
	between = w.runs(between)

	ask(first.SessionID) // and again, for a message before the other one has yielded
	w.queue(regie.ID{}, nil, []store.Fence{between})
	in = w.Submission("too soon")
	in.SessionID, in.New = first.SessionID, nil
	accepted = resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.equal("the place of who switched too soon", accepted.Position, 1)
	w.queue(regie.ID{}, nil, []store.Fence{between})
	w.must(w.AppendReply(between, w.Answer(1)))
	w.must(w.AppendReply(w.runs(accepted.Fence), w.Answer(1)))
	second = w.runs(second)

	third := newIdleSession(w) // two switch one after the other: the later one has the place
	ask(first.SessionID)
	ask(third)
	w.must(w.Store.Yield(w.Ctx, second))
	in = w.Submission("late")
	in.SessionID, in.New = first.SessionID, nil
	late := resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.equal("the place of who was switched from", late.Position, 1)
	w.must(w.Store.ReleaseControl(w.Ctx, third))
	late.Fence = w.runs(late.Fence)
	w.must(w.AppendReply(late.Fence, w.Answer(1)))
	second = w.runs(second)
	w.must(w.AppendReply(second, w.Answer(1)))
}

// newIdleSession makes a session without messages.
func newIdleSession(w *World) regie.ID {
	w.T.Helper()
	in := w.Submission("")
	made := resultOf(w.Store.CreateSession(w.Ctx, *in.New))(w)
	return made.ID
}

// control is requestSessionControl (spec 5.1, decision 43).
func control(w *World) {
	w.Store.SetSlots(slot.Capacity{Exclusive: true})
	ask := func(session regie.ID) store.Controlled {
		w.T.Helper()
		out, err := w.Store.RequestControl(w.Ctx, store.Control{SessionID: session, For: time.Hour, Ask: slot.AskChat})
		w.must(err)
		return out
	}
	first := w.Start()
	w.equal("its own round runs", ask(first.SessionID).State, store.ControlActive)
	w.must(w.AppendReply(first, w.Answer(1)))
	got := ask(first.SessionID)
	w.equal("free", got.State, store.ControlActivated)
	if until := time.Until(got.Until); until < 59*time.Minute || until > time.Hour {
		w.T.Errorf("reserved for %s", until)
	}
	second, at := w.submitted()
	w.equal("the place behind a reservation", at, 1)
	view, err := w.Store.Queues(w.Ctx, regie.ID{})
	w.must(err)
	w.equal("until", view.Until, got.Until)
	w.queue(regie.ID{}, nil, nil)
	w.must(w.Store.ReleaseControl(w.Ctx, first.SessionID))
	second = w.runs(second)
	w.must(w.AppendReply(second, w.Answer(1)))

	ask(first.SessionID) // the first message takes the reservation
	in := w.Submission("now")
	in.SessionID, in.New = first.SessionID, nil
	accepted, err := w.Store.Submit(w.Ctx, in)
	w.must(err)
	w.equal("place", accepted.Position, 0)
	w.must(w.AppendReply(accepted.Fence, w.Answer(1)))

	automation, err := w.Store.Submit(w.Ctx, automationSubmission(w))
	w.must(err)
	w.equal("an automation is allowed to finish", ask(first.SessionID),
		store.Controlled{State: store.ControlQueued, Position: 1})
	third, _ := w.submitted()
	fourth, _ := w.submitted()
	w.isQueued(third, 2)
	w.equal("asked for control in the queue", ask(third.SessionID),
		store.Controlled{State: store.ControlQueued, Position: 1})
	w.isQueued(third, 1)
	w.isQueued(fourth, 2)
	w.must(w.Store.ReleaseControl(w.Ctx, third.SessionID)) // the place, not the round
	w.queue(automation.Fence.SessionID, nil, nil)
	w.state(third.SessionID, regie.SessionQueued)
	_, err = w.Store.RequestControl(w.Ctx, store.Control{SessionID: regie.NewID(), Ask: slot.AskChat})
	w.refused(regie.CodeNotFound, err)
	w.refused(regie.CodeNotFound, w.Store.ReleaseControl(w.Ctx, regie.NewID()))
}
