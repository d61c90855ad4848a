package app_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

func query(t *testing.T, name string, risk regie.Risk, safe bool, run func(context.Context, *tool.Invocation) (tool.Result, error)) tool.Tool {
	t.Helper()
	out, err := tool.New(regie.ToolDefinition{Name: name, Description: "a query", Kind: regie.KindQuery, Risk: risk, ParallelSafe: safe},
		tool.Handler[nameArgs]{Run: func(ctx context.Context, inv *tool.Invocation, _ nameArgs) (tool.Result, error) { return run(ctx, inv) }})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFoundDuplicatesThatAsk(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	act := action(t, "x.act", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		runs.Add(1)
		return tool.Result{Content: "done"}, nil
	}, nil)
	b := newBed(t, newModel(t, says("", call{"a", "x__act", `{"name":"pay"}`}, call{"b", "x__act", `{"name":"pay"}`}), says("ok")), act)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	var all []regie.Decision
	for _, r := range asked.Reviews {
		all = append(all, regie.Decision{CallID: r.CallID, Answer: regie.AnswerAllow})
	}
	if len(all) != 1 {
		t.Errorf("%d identical calls of one reply are put to the person", len(all))
	}
	if _, err := conn.Decide(t.Context(), decide(asked, "x", all...)); err != nil {
		t.Fatal(err)
	}
	view := b.await(conn, run)
	t.Log(states(view), runs.Load())
	if runs.Load() != 1 {
		t.Errorf("the action ran %d times", runs.Load())
	}
}

func TestFoundHotLoop(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 10)
	var block atomic.Bool
	block.Store(true)
	slow := query(t, "q.slow", regie.RiskInternal, true, func(ctx context.Context, _ *tool.Invocation) (tool.Result, error) {
		started <- struct{}{}
		if block.Load() {
			<-ctx.Done()
			return tool.Result{}, context.Cause(ctx)
		}
		return tool.Result{Content: "slow"}, nil
	})
	out := query(t, "q.outside", regie.RiskExternal, true, func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Result{Content: "outside"}, nil
	})
	b := newBed(t, newModel(t, says("", call{"a", "q__slow", `{}`}, call{"b", "q__outside", `{}`}), says("ok")), slow, out)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	<-started
	if err := conn.Pause(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	if err := conn.Wait(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	block.Store(false)
	if err := conn.Resume(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	select {
	case <-started:
		t.Log("the first query ran")
	case <-time.After(30 * time.Second):
		view, _ := conn.Get(t.Context(), run.RoundID)
		t.Errorf("30 s after resume the free query has not run: %v %s", states(view), view.Session.State)
	}
}

func TestFoundSteeredNetworkWait(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t))
	b.settings.BaseURL = "http://127.0.0.1:1/v1"
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{WaitNetwork: true}))
	if err != nil {
		t.Fatal(err)
	}
	b.state(conn, run.SessionID, regie.SessionWaitingNetwork)
	in := b.request(approval.Policy{})
	in.SessionID, in.WhenBusy = run.SessionID, store.Steer
	if _, err := conn.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	view, err := conn.Get(t.Context(), run.RoundID)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(view.Exchanges[0].Attempts); n > 5 {
		t.Errorf("%d model calls in 2 s, the log has %d events", n, view.Head)
	}
}

func TestFoundEditWhileQueryRuns(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	slow := query(t, "q.slow", regie.RiskInternal, false, func(_ context.Context, _ *tool.Invocation) (tool.Result, error) {
		<-free
		return tool.Result{Content: "slow"}, nil
	})
	var runs atomic.Int64
	act := action(t, "x.act", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		if runs.Add(1) == 1 {
			return tool.Result{}, context.DeadlineExceeded
		}
		return tool.Result{Content: "done"}, nil
	}, nil)
	b := newBed(t, newModel(t, says("", call{"a", "x__act", `{"name":"pay"}`}),
		says("", call{"q", "q__slow", `{}`}, call{"b", "x__act", `{"name":"other"}`}), says("ok")), slow, act)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		t.Fatal(err)
	}
	asked = b.next(conn, run.SessionID, asked.ID)
	if _, err := conn.Decide(t.Context(), decide(asked, "y", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, Arguments: json.RawMessage(`{"name":"pay"}`)})); err != nil {
		t.Fatal(err)
	}
	close(free)
	var why []regie.Ground
	b.until(conn, run.SessionID, func(*regie.Event) bool { // it is asked about again, or the run has ended without that
		inbox, err := conn.Inbox(t.Context(), store.InboxFilter{SessionID: run.SessionID})
		view, gone := conn.Get(t.Context(), run.RoundID)
		if err != nil || gone != nil {
			t.Fatal(err, gone)
		}
		if len(inbox.Approvals) > 0 && inbox.Approvals[0].ID != asked.ID {
			why = inbox.Approvals[0].Reviews[0].Grounds
		}
		return why != nil || view.Round.State == regie.RoundEnded
	})
	if runs.Load() != 1 || !slices.ContainsFunc(why, func(g regie.Ground) bool { return g.Source == regie.SourceUnknown }) {
		view, _ := conn.Get(t.Context(), run.RoundID)
		t.Errorf("the UNKNOWN action ran a second time without an approval that says why: %v", states(view))
	}
}

type fakeModel struct {
	send func(ctx context.Context) (*provider.Reply, error)
}

func (f *fakeModel) Name() string { return "fake" }

func (f *fakeModel) Capabilities(string) provider.Capabilities {
	return provider.Capabilities{NativeTools: true}
}

func (f *fakeModel) Open(provider.Head) (provider.Conversation, error) {
	return f, nil
}

func (f *fakeModel) Append(...provider.Turn) {}
func (f *fakeModel) EndWith(provider.Tail)   {}

func (f *fakeModel) Request() (regie.Hash, int) { return regie.HashOf([]byte("x")), 1 }

func (f *fakeModel) Send(ctx context.Context, _ func(provider.Delta)) (*provider.Reply, error) {
	return f.send(ctx)
}

func TestFoundPauseMeetsAnswer(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t))
	var calls atomic.Int64
	in, said := make(chan struct{}), make(chan struct{})
	fake := &fakeModel{}
	fake.send = func(context.Context) (*provider.Reply, error) {
		if calls.Add(1) == 1 {
			close(in)
			<-said // the pause is durable; the last byte of the reply is here already
		}
		return &provider.Reply{Parts: []provider.Part{{Type: regie.PartText, Text: "ok"}}, StopReason: "stop"}, nil
	}
	conn, err := app.Connect(t.Context(), app.Options{Config: b.settings, Models: func(string) (provider.Provider, error) { return fake, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	<-in
	next := b.request(everything)
	next.SessionID = run.SessionID
	if _, err := conn.Submit(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if err := conn.Pause(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	close(said)
	if err := conn.Wait(t.Context(), run.RoundID); err != nil {
		t.Fatal(err)
	}
	if view, err := conn.Get(t.Context(), run.RoundID); err != nil || calls.Load() > 1 || view.Session.State != regie.SessionPaused {
		t.Errorf("a paused session asked the model %d times; it is %s, %v", calls.Load(), view.Session.State, err)
	}
}

func TestFoundWithdrawnMessageAgain(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	b := newBed(t, newModel(t, hangs(asked), says("again")))
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	in := b.request(approval.Policy{})
	in.SessionID, in.WhenBusy = run.SessionID, store.Queue
	if _, err := conn.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Stop(t.Context(), run.SessionID); err != nil {
		t.Fatal(err)
	}
	b.await(conn, run)
	out, err := conn.Submit(t.Context(), in)
	t.Logf("%+v %v", out, err)
	if err == nil && out.Pending {
		t.Error("a withdrawn message is said to wait for its place")
	}
}

func TestFoundResolvedNotHappened(t *testing.T) {
	t.Parallel()
	var runs atomic.Int64
	act := action(t, "x.act", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		if runs.Add(1) == 1 {
			return tool.Result{}, context.DeadlineExceeded
		}
		return tool.Result{Content: "done"}, nil
	}, nil)
	b := newBed(t, newModel(t, says("", call{"a", "x__act", `{"name":"pay"}`}), says("", write("w", "a.txt", "x")), says("", call{"b", "x__act", `{"name":"pay"}`}), says("ok")), act)
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{Allow: []string{"x.*"}}))
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	view, _ := conn.Get(t.Context(), run.RoundID)
	if err := conn.Resolve(t.Context(), dispatch.ResolveRequest{CallID: view.Exchanges[0].Calls[0].ID, As: regie.ResolvedDidNotHappen}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		t.Fatal(err)
	}
	view = b.await(conn, run)
	t.Log(states(view), view.Exchanges[2].Calls[0].Error)
	if runs.Load() != 2 {
		t.Errorf("the person said that it did not happen, and it is refused: %v", states(view))
	}
}

func TestFoundStricterSettings(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("", write("a", "a.txt", "one\n")), says("ok")))
	conn := b.connect()
	in := b.request(approval.Policy{})
	in.Settings = b.settings.Fingerprint() // as cmd/regie sends it
	run, err := conn.Submit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	b.settings.File.Approvals = config.Approvals{Expire: 48 * time.Hour}
	conn = b.connect()
	defer conn.Close()
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		t.Fatal(err)
	}
	if view := b.await(conn, run); view.Round.End != regie.EndAnswered { // where nobody goes on, this waits for ever
		t.Errorf("approved, and the run ended %s", view.Round.End)
	}
}
