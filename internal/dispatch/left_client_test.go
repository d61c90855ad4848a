package dispatch_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// TestWhoLeavesLosesNothing has the client leave in the instant in which what it said is stored:
// the round goes on all the same.
func TestWhoLeavesLosesNothing(t *testing.T) {
	type scene struct {
		*house
		leave func() // ends the context that the client asked with
		ctx   context.Context
	}
	parked := func(t *testing.T) (*scene, store.Submission, regie.Approval) {
		t.Helper()
		runs := 0
		s := &scene{leave: func() {}}
		s.house = newHouse(t, slow{stored: func() { s.leave() }}, acts(), counted(t, regie.ClassOnce, &runs))
		s.told = func() { s.leave() }
		in := s.world.Submission("act")
		in.Round.Policy, in.Round.Limits.Retries = json.RawMessage(`{}`), 3
		asked := s.asked(t, in)
		ctx, leave := context.WithCancel(t.Context())
		s.ctx, s.leave = ctx, leave
		return s, in, asked
	}
	allows := func(a regie.Approval) store.Decide {
		return store.Decide{ApprovalID: a.ID, Request: "x", Decisions: []regie.Decision{{CallID: a.Reviews[0].CallID, Answer: regie.AnswerAllow, By: "ada"}}}
	}
	t.Run("an answer", func(t *testing.T) {
		s, in, asked := parked(t)
		if err := s.resolve(s.ctx, allows(asked)); err != nil {
			t.Error(err)
		}
		s.ended(t, in.SessionID, in.Round.ID)
	})
	t.Run("an interrupt", func(t *testing.T) {
		s, in, _ := parked(t)
		if err := s.dispatcher.Stop(s.ctx, in.Round.ID, regie.StopInterrupt); err != nil {
			t.Error(err)
		}
		s.ended(t, in.SessionID, in.Round.ID)
	})
	t.Run("a resume", func(t *testing.T) {
		s, in, asked := parked(t)
		leave := s.leave
		s.leave = func() {}
		if err := s.dispatcher.Stop(t.Context(), in.Round.ID, regie.StopPause); err != nil {
			t.Fatal(err)
		}
		if err := s.resolve(t.Context(), allows(asked)); err != nil {
			t.Fatal(err)
		}
		s.leave = leave
		if err := s.dispatcher.Resume(s.ctx, in.Round.ID); err != nil {
			t.Error(err)
		}
		s.ended(t, in.SessionID, in.Round.ID)
	})
	t.Run("a message", func(t *testing.T) {
		var leave func()
		h := newHouse(t, slow{submitted: func(store.Accepted) { leave() }}, func() *provider.Reply { return answer("done") })
		leave = func() {}
		first := h.world.Submission("one")
		if _, err := h.dispatcher.Submit(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		h.ended(t, first.SessionID, first.Round.ID)
		if err := h.dispatcher.Wait(t.Context(), first.Round.ID); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		leave = cancel
		second := h.world.Submission("two")
		second.SessionID, second.New.ID, second.Round.SessionID = first.SessionID, first.SessionID, first.SessionID
		if _, err := h.dispatcher.Submit(ctx, second); err != nil {
			t.Error(err)
		}
		h.ended(t, first.SessionID, second.Round.ID)
	})
}
