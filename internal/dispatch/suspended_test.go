package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// TestAwayIsJudgedWhenItIsBack has a process die with a keyed action, whose tool is away for the
// next engine: the round waits. The engine after that has the tool and judges the action under its
// own rules before it is repeated (decision 20), however orderly the round waited. Where a pause
// meets the wait, with the result of a call after it, nobody forgets either that the action may
// have happened (decision 5).
func TestAwayIsJudgedWhenItIsBack(t *testing.T) {
	gone := errors.New("the process is gone")
	strict := []approval.Level{{Source: regie.SourceApp, RequireValidation: true}}
	for _, c := range []struct {
		name         string
		paused       bool
		away, levels []approval.Level // the rules while the tool is away, and once it is back
		state, other regie.CallState
		runs         int
	}{
		{"the same rules", false, nil, nil, regie.CallSucceeded, regie.CallSucceeded, 1},
		{"stricter rules", false, nil, strict, regie.CallUnknown, regie.CallNotRun, 0},
		{"stricter rules at once", false, strict, strict, regie.CallUnknown, regie.CallNotRun, 0},
		{"paused, stricter rules", true, strict, strict, regie.CallUnknown, regie.CallNotRun, 0},
		{"paused, stricter rules for a while", true, strict, nil, regie.CallSucceeded, regie.CallNotRun, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs := 0
			act := counted(t, regie.ClassKeyed, &runs)
			other, err := tool.New(regie.ToolDefinition{Name: "other.act", Description: "acts", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal},
				tool.Handler[struct{}]{Run: func(context.Context, *tool.Invocation, struct{}) (tool.Result, error) {
					return tool.Result{Content: "acted"}, nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			asked := false
			reply := func() *provider.Reply {
				if asked {
					return answer("done")
				}
				asked = true
				return &provider.Reply{StopReason: "tool_calls", Parts: []provider.Part{
					{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "test__act", Arguments: "{}"}},
					{Type: regie.PartCall, Call: &provider.Call{ID: "b", Name: "other__act", Arguments: "{}"}},
				}}
			}
			died := make(chan struct{})
			h := newHouse(t, slow{replied: func(in store.Reply) error {
				if len(in.Calls) > 0 {
					close(died)
					return gone
				}
				return nil
			}}, reply, act, other)
			in := h.world.Submission("act")
			in.Round.Policy, in.Round.Limits.Retries = json.RawMessage(`{"allow":["*.*"],"on_approval":"deny"}`), 3
			if _, err := h.dispatcher.Submit(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			<-died
			// nil where all of it has gone by now
			if err := h.dispatcher.Wait(t.Context(), in.Round.ID); err != nil && !errors.Is(err, gone) {
				t.Fatal(err)
			}
			registry, err := tool.NewRegistry(other)
			if err == nil {
				registry, err = registry.With("test", nil, regie.Errorf(regie.CodeServerDown, "it is down"))
			}
			if err != nil {
				t.Fatal(err)
			}
			pause := c.paused
			h.nextWith(t, slow{settling: func(store.Settle) error {
				if !pause {
					return nil
				}
				pause = false
				// the store then lets nothing wait
				_, err := h.store.RequestStop(t.Context(), in.Round.ID, regie.StopPause)
				return err
			}}, c.away, reply, registry)
			if err := h.dispatcher.Wait(t.Context(), in.Round.ID); err != nil {
				t.Fatal(err)
			}
			view, err := h.store.RoundView(t.Context(), in.Round.ID)
			if err != nil {
				t.Fatal(err)
			}
			session := regie.SessionWaitingNetwork
			if c.paused {
				session = regie.SessionPaused
			}
			if call := view.Exchanges[0].Calls[0]; call.State != regie.CallStarted || call.Recovered == c.paused || view.Session.State != session || pause {
				t.Errorf("while the tool is away the call is %s and the session %s", call.State, view.Session.State)
			}
			h.next(t, slow{}, c.levels, reply, act, other)
			if err := h.dispatcher.Resume(t.Context(), in.Round.ID); err != nil {
				t.Fatal(err)
			}
			h.ended(t, in.SessionID, in.Round.ID)
			if view, err = h.store.RoundView(t.Context(), in.Round.ID); err != nil {
				t.Fatal(err)
			}
			calls := view.Exchanges[0].Calls
			if calls[0].State != c.state || calls[1].State != c.other || runs != c.runs || !calls[0].Recovered || view.Round.End != regie.EndAnswered {
				t.Errorf("%s and %s, %d runs, the round ended %s; want %s and %s, %d", calls[0].State, calls[1].State, runs, view.Round.End, c.state, c.other, c.runs)
			}
		})
	}
}
