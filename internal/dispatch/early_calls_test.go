package dispatch_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// looks is a query, local or not, that does what a test wants and counts how often it was run.
func looks(t *testing.T, local bool, look func(ctx context.Context) error) (tool.Tool, *atomic.Int64) {
	t.Helper()
	var runs atomic.Int64
	type args struct {
		N int `json:"n,omitempty"`
	}
	made, err := tool.New(regie.ToolDefinition{
		Name: "test.look", Description: "looks", Kind: regie.KindQuery, Class: regie.ClassRead, Risk: regie.RiskInternal, ParallelSafe: true, Local: local,
	}, tool.Handler[args]{Run: func(ctx context.Context, _ *tool.Invocation, _ args) (tool.Result, error) {
		runs.Add(1)
		return tool.Result{Content: "seen"}, look(ctx)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return made, &runs
}

// lookTwice is a model that looks twice in one reply and then answers.
func lookTwice() func() *provider.Reply {
	replies := 0
	return func() *provider.Reply {
		if replies++; replies > 1 {
			return answer("done")
		}
		return &provider.Reply{StopReason: "tool_calls", Parts: []provider.Part{
			{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "test__look", Arguments: `{"n":1}`}},
			{Type: regie.PartCall, Call: &provider.Call{ID: "b", Name: "test__look", Arguments: `{"n":2}`}},
		}}
	}
}

// states are the calls' as a reply is about to be stored.
func states(in store.Reply) (out []regie.CallState) {
	for i := range in.Calls {
		out = append(out, in.Calls[i].State)
	}
	return out
}

// wideLimits let a model look twice.
var wideLimits = regie.Limits{Total: 20, Queries: 10, Retries: 3, FormatErrors: 3, CallsInReply: 10}

func (h *house) run(t *testing.T) store.RoundView {
	t.Helper()
	in := h.world.Submission("look")
	in.Round.Limits = wideLimits
	if _, err := h.dispatcher.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	h.ended(t, in.SessionID, in.Round.ID)
	view, err := h.store.RoundView(t.Context(), in.Round.ID)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// TestQuickQueriesComeWithTheirReply answers two local queries at once: reply, results and the next
// exchange are one transition. What is not local waits until its reply is stored.
func TestQuickQueriesComeWithTheirReply(t *testing.T) {
	for _, local := range []bool{true, false} {
		look, runs := looks(t, local, func(context.Context) error { return nil })
		var early []regie.CallState
		var settles, before int64
		h := newHouse(t, slow{
			replying: func(in store.Reply) {
				if len(in.Calls) > 0 {
					early, before = states(in), runs.Load()
				}
			},
			settling: func(store.Settle) error { settles++; return nil },
		}, lookTwice(), look)
		view := h.run(t)
		calls := view.Exchanges[0].Calls
		if view.Round.End != regie.EndAnswered || runs.Load() != 2 || calls[0].Result != "seen" || calls[1].State != regie.CallSucceeded || calls[1].Attempts != 1 {
			t.Errorf("local %v: %d runs, %+v", local, runs.Load(), calls)
		}
		switch {
		case !local && (before != 0 || early[0] != regie.CallProposed || settles != 1):
			t.Errorf("%d ran before their reply was stored (%v), %d transitions brought results", before, early, settles)
		case local && settles == 0 && early[1] != regie.CallSucceeded, local && settles == 1 && early[0] != regie.CallProposed, settles > 1:
			// on a machine that is slow enough either may be
			t.Errorf("the reply came with %v, %d transitions brought results", early, settles)
		}
	}
}

// TestSlowQueryKeepsNoReplyWaiting has a local query end only once its reply is stored: it runs
// once, and its result comes by itself.
func TestSlowQueryKeepsNoReplyWaiting(t *testing.T) {
	stored := make(chan struct{})
	look, runs := looks(t, true, func(ctx context.Context) error {
		select {
		case <-stored:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	var early []regie.CallState
	settles := 0
	h := newHouse(t, slow{
		replying: func(in store.Reply) {
			if len(in.Calls) > 0 {
				early = states(in)
				close(stored)
			}
		},
		settling: func(store.Settle) error { settles++; return nil },
	}, lookTwice(), look)
	view := h.run(t)
	if runs.Load() != 2 || settles != 1 || early[0] != regie.CallProposed || early[1] != regie.CallProposed || view.Exchanges[0].Calls[1].Result != "seen" {
		t.Errorf("%d runs, %d transitions, the reply came with %v, the calls are %+v", runs.Load(), settles, early, view.Exchanges[0].Calls)
	}
}

// TestStopMeetsEarlyQuery interrupts a round while its queries run and their reply is not stored:
// they are cut, each has one result that says so, and the round ends.
func TestStopMeetsEarlyQuery(t *testing.T) {
	running := make(chan struct{}, 2)
	look, _ := looks(t, true, func(ctx context.Context) error {
		running <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	h := newHouse(t, slow{}, lookTwice(), look)
	in := h.world.Submission("look")
	in.Round.Limits = wideLimits
	if _, err := h.dispatcher.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	<-running
	if err := h.dispatcher.Stop(t.Context(), in.Round.ID, regie.StopInterrupt); err != nil {
		t.Fatal(err)
	}
	h.ended(t, in.SessionID, in.Round.ID)
	view, err := h.store.RoundView(t.Context(), in.Round.ID)
	if err != nil || view.Round.End != regie.EndInterrupted || len(view.Exchanges[0].Calls) != 2 {
		t.Fatalf("the round ended %s, %v", view.Round.End, err)
	}
	for _, call := range view.Exchanges[0].Calls {
		if call.State != regie.CallNotRun || call.NotRun != regie.NotRunInterrupted {
			t.Errorf("a call is %s %s", call.State, call.NotRun)
		}
	}
}
