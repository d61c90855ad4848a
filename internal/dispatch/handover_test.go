package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// counted is an action that counts how often it ran.
func counted(t *testing.T, class regie.EffectClass, runs *int) tool.Tool {
	t.Helper()
	handler := tool.Handler[struct{}]{Run: func(context.Context, *tool.Invocation, struct{}) (tool.Result, error) {
		*runs++
		return tool.Result{Content: "acted"}, nil
	}}
	if class == regie.ClassVerifiable {
		handler.Probe = func(context.Context, *tool.Invocation, struct{}) (tool.Evidence, tool.Result, error) {
			return tool.NotHappened, tool.Result{}, nil
		}
	}
	out, err := tool.New(regie.ToolDefinition{Name: "test.act", Description: "acts", Kind: regie.KindAction, Class: class, Risk: regie.RiskInternal}, handler)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// acts proposes the action once, and answers then.
func acts() func() *provider.Reply {
	asked := false
	return func() *provider.Reply {
		if asked {
			return answer("done")
		}
		asked = true
		return &provider.Reply{Parts: []provider.Part{{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "test__act", Arguments: "{}"}}}, StopReason: "tool_calls"}
	}
}

// next is the engine that comes after, with other settings, on the same store.
func (h *house) next(t *testing.T, s slow, levels []approval.Level, reply func() *provider.Reply, tools ...tool.Tool) {
	t.Helper()
	registry, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	h.nextWith(t, s, levels, reply, registry)
}

func (h *house) nextWith(t *testing.T, s slow, levels []approval.Level, reply func() *provider.Reply, registry *tool.Registry) {
	t.Helper()
	h.dispatcher.Close(dispatch.ErrGone)
	s.Store = h.store
	h.dispatcher = dispatch.New(s, engine.New(engine.Config{
		Store: s, Providers: func(string, regie.Hash) (provider.Provider, error) { return scripted{reply}, nil }, Tools: always(registry), Levels: levels,
	}), h.hub, func(regie.Round) error { return nil }, "next", slog.New(slog.DiscardHandler))
	if _, err := h.dispatcher.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestHandedOverIsJudged gives a round back, or dies, in the instant between the intent of its
// action and the action. Whoever comes next judges the action under the rules of that moment before
// it runs (decision 20).
func TestHandedOverIsJudged(t *testing.T) {
	gone := errors.New("the process is gone")
	strict := []approval.Level{{Source: regie.SourceApp, RequireValidation: true}}
	const fails = `{"allow":["*.*"],"on_approval":"fail"}`
	for _, c := range []struct {
		name   string
		class  regie.EffectClass
		dies   bool
		levels []approval.Level
		policy string
		state  regie.CallState
		code   regie.NotRunCode
		runs   int
		end    regie.RoundEnd
	}{
		{"given back, the same rules", regie.ClassOnce, false, nil, "", regie.CallSucceeded, "", 1, regie.EndAnswered},
		{"given back, stricter rules", regie.ClassOnce, false, strict, "", regie.CallNotRun, regie.NotRunInterrupted, 0, regie.EndAnswered},
		{"given back, stricter rules, a run that fails then", regie.ClassOnce, false, strict, fails, regie.CallNotRun, regie.NotRunDenied, 0, regie.EndDenied},
		{"dead, keyed, the same rules", regie.ClassKeyed, true, nil, "", regie.CallSucceeded, "", 1, regie.EndAnswered},
		{"dead, keyed, stricter rules", regie.ClassKeyed, true, strict, "", regie.CallUnknown, "", 0, regie.EndAnswered},
		{"dead, did not happen, the same rules", regie.ClassVerifiable, true, nil, "", regie.CallSucceeded, "", 1, regie.EndAnswered},
		{"dead, did not happen, stricter rules", regie.ClassVerifiable, true, strict, "", regie.CallNotRun, regie.NotRunInterrupted, 0, regie.EndAnswered},
		{"dead, once, the same rules", regie.ClassOnce, true, nil, "", regie.CallUnknown, "", 0, regie.EndAnswered},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs, reply := 0, acts()
			act := counted(t, c.class, &runs)
			var h *house
			h = newHouse(t, slow{replied: func(in store.Reply) error {
				if len(in.Calls) == 0 {
					return nil
				}
				if in.Calls[0].State != regie.CallStarted {
					t.Errorf("the reply's call is %s", in.Calls[0].State)
				}
				if c.dies {
					return gone
				}
				return h.dispatcher.Stop(t.Context(), in.Calls[0].RoundID, regie.StopPause)
			}}, reply, act)
			in := h.world.Submission("act")
			in.Round.Policy, in.Round.Limits.Retries = json.RawMessage(`{"allow":["*.*"]}`), 3
			if c.policy != "" {
				in.Round.Policy = json.RawMessage(c.policy)
			}
			if _, err := h.dispatcher.Submit(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if err := h.dispatcher.Wait(t.Context(), in.Round.ID); err != nil && !errors.Is(err, gone) {
				t.Fatal(err)
			}
			h.next(t, slow{}, c.levels, reply, act)
			if err := h.dispatcher.Resume(t.Context(), in.Round.ID); err != nil {
				t.Fatal(err)
			}
			h.ended(t, in.SessionID, in.Round.ID)
			view, err := h.store.RoundView(t.Context(), in.Round.ID)
			if err != nil {
				t.Fatal(err)
			}
			call := view.Exchanges[0].Calls[0]
			if call.State != c.state || call.NotRun != c.code || runs != c.runs || view.Round.End != c.end {
				t.Errorf("%s %s, %d runs, the round ended %s; want %s %s, %d, %s", call.State, call.NotRun, runs, view.Round.End, c.state, c.code, c.runs, c.end)
			}
			if call.Error != nil && call.NotRun == regie.NotRunInterrupted && call.Error.Code != "APPROVAL_NEEDED" {
				t.Errorf("the model is told %+v", call.Error)
			}
		})
	}
}

// TestGivenBackBeforeItIsLookedInto has an engine take up a round whose action a dead process had
// started, and lets go of it before it has found out about the action. The engine after that still
// knows that it may have happened (decision 5).
func TestGivenBackBeforeItIsLookedInto(t *testing.T) {
	runs, reply := 0, acts()
	act := counted(t, regie.ClassOnce, &runs)
	gone, died := errors.New("the process is gone"), make(chan struct{})
	h := newHouse(t, slow{replied: func(in store.Reply) error {
		if len(in.Calls) > 0 {
			close(died)
			return gone
		}
		return nil
	}}, reply, act)
	in := h.world.Submission("act")
	in.Round.Policy, in.Round.Limits.Retries = json.RawMessage(`{"allow":["*.*"]}`), 3
	if _, err := h.dispatcher.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	<-died
	// nil where all of it has gone by now
	if err := h.dispatcher.Wait(t.Context(), in.Round.ID); err != nil && !errors.Is(err, gone) {
		t.Fatal(err)
	}
	var once sync.Once
	h.next(t, slow{claimed: func(round regie.ID) {
		once.Do(func() {
			if err := h.dispatcher.Stop(t.Context(), round, regie.StopPause); err != nil {
				t.Error(err)
			}
		})
	}}, nil, reply, act)
	if err := h.dispatcher.Wait(t.Context(), in.Round.ID); err != nil {
		t.Fatal(err)
	}
	if err := h.dispatcher.Resume(t.Context(), in.Round.ID); err != nil {
		t.Fatal(err)
	}
	h.ended(t, in.SessionID, in.Round.ID)
	view, err := h.store.RoundView(t.Context(), in.Round.ID)
	if err != nil || view.Exchanges[0].Calls[0].State != regie.CallUnknown || runs != 0 {
		t.Errorf("%+v, %d runs, %v", view.Exchanges[0].Calls, runs, err)
	}
}

// TestFailHoldsAtTheSecondLook has the second action of a batch need an approval only under the
// rules of the engine that goes on with it, in a run that is to fail then (spec 4.4): the first
// one's result stays, the second is not run, nor the third, which is allowed, and the round ends.
func TestFailHoldsAtTheSecondLook(t *testing.T) {
	type args struct {
		N int `json:"n,omitempty"`
	}
	runs := 0
	tools := make([]tool.Tool, 2)
	for i, name := range []string{"test.act", "test.free"} {
		var err error
		if tools[i], err = tool.New(regie.ToolDefinition{Name: name, Description: "acts", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal},
			tool.Handler[args]{Run: func(context.Context, *tool.Invocation, args) (tool.Result, error) {
				runs++
				return tool.Result{Content: "acted"}, nil
			}}); err != nil {
			t.Fatal(err)
		}
	}
	reply := func() *provider.Reply {
		out := &provider.Reply{StopReason: "tool_calls"}
		for i, name := range []string{"test__act", "test__act", "test__free"} {
			out.Parts = append(out.Parts, provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: name + fmt.Sprint(i), Name: name, Arguments: fmt.Sprintf(`{"n":%d}`, i)}})
		}
		return out
	}
	var h *house
	in := make(chan regie.ID, 1)
	h = newHouse(t, slow{}, reply, tools...)
	h.next(t, slow{settling: func(s store.Settle) error {
		if s.Start != nil {
			select {
			case round := <-in:
				if err := h.dispatcher.Stop(t.Context(), round, regie.StopPause); err != nil { // the store then lets nothing start
					t.Error(err)
				}
			default:
			}
		}
		return nil
	}}, []approval.Level{{Source: regie.SourceApp, Require: approval.RequireNone}}, reply, tools...)
	submission := h.world.Submission("act")
	submission.Round.Policy = json.RawMessage(`{"allow":["test.free"],"on_approval":"fail"}`)
	in <- submission.Round.ID
	if _, err := h.dispatcher.Submit(t.Context(), submission); err != nil {
		t.Fatal(err)
	}
	if err := h.dispatcher.Wait(t.Context(), submission.Round.ID); err != nil {
		t.Fatal(err)
	}
	h.next(t, slow{}, []approval.Level{{Source: regie.SourceApp, Require: approval.RequireWrites}}, reply, tools...)
	if err := h.dispatcher.Resume(t.Context(), submission.Round.ID); err != nil {
		t.Fatal(err)
	}
	h.ended(t, submission.SessionID, submission.Round.ID)
	view, err := h.store.RoundView(t.Context(), submission.Round.ID)
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, call := range view.Exchanges[0].Calls {
		states = append(states, string(call.State)+string(call.NotRun))
	}
	if got := strings.Join(states, " "); got != "SUCCEEDED NOT_RUNDENIED NOT_RUNDENIED" || view.Round.End != regie.EndDenied || view.Round.EndNote.IsZero() || runs != 1 {
		t.Errorf("%s, the round ended %s (%s), %d runs", got, view.Round.End, view.Round.EndNote, runs)
	}
}
