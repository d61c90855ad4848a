package dispatch_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
	"github.com/regie-run/regie/internal/tool"
)

// scripted is a provider whose replies a test makes, each when it likes.
type scripted struct{ reply func() *provider.Reply }

func (s scripted) Name() string { return "scripted" }
func (s scripted) Capabilities(string) provider.Capabilities {
	return provider.Capabilities{NativeTools: true, Free: true}
}

func (s scripted) Open(provider.Head) (provider.Conversation, error) {
	return s, nil
}
func (s scripted) Append(...provider.Turn)    {}
func (s scripted) EndWith(provider.Tail)      {}
func (s scripted) Request() (regie.Hash, int) { return regie.HashOf(nil), 0 }
func (s scripted) Send(context.Context, func(provider.Delta)) (*provider.Reply, error) {
	return s.reply(), nil
}

// slow is a store that lets a test do something at the worst moment: after a transition is stored
// and before its caller knows, or before it is stored.
type slow struct {
	*sqlite.Store
	submitted func(store.Accepted)
	resuming  func()
	looking   func() // before the orphans are looked for
	replying  func(store.Reply)
	settling  func(store.Settle) error // its error keeps a transition from being stored
	settled   func(store.Settle) error // its error is what the caller sees of one that is
	replied   func(store.Reply) error  // its error is what the caller sees of a reply that is stored
	claimed   func(round regie.ID)
	stored    func() // after an answer or a word is
	pages     int    // the most that the database file may have
}

func (s slow) Orphans(ctx context.Context, holder string) ([]store.Orphan, error) {
	if s.looking != nil {
		s.looking()
	}
	return s.Store.Orphans(ctx, holder)
}

func (s slow) Claim(ctx context.Context, round regie.ID, holder string) (store.Claimed, error) {
	out, err := s.Store.Claim(ctx, round, holder)
	if err == nil && s.claimed != nil {
		s.claimed(round)
	}
	return out, err
}

func (s slow) CommitCalls(ctx context.Context, fence store.Fence, in store.Settle) (store.Outcome, error) {
	if s.settling != nil {
		if err := s.settling(in); err != nil {
			return store.Outcome{}, err
		}
	}
	out, err := s.Store.CommitCalls(ctx, fence, in)
	if err == nil && s.settled != nil {
		err = s.settled(in)
	}
	return out, err
}

func (s slow) AppendReply(ctx context.Context, fence store.Fence, in store.Reply) (store.Outcome, error) {
	if s.replying != nil {
		s.replying(in)
	}
	out, err := s.Store.AppendReply(ctx, fence, in)
	if err == nil && s.replied != nil {
		err = s.replied(in)
	}
	return out, err
}

func (s slow) Submit(ctx context.Context, in store.Submission) (store.Accepted, error) {
	out, err := s.Store.Submit(ctx, in)
	if s.submitted != nil {
		s.submitted(out)
	}
	return out, err
}

func (s slow) told() {
	if s.stored != nil {
		s.stored()
	}
}

func (s slow) RequestStop(ctx context.Context, round regie.ID, word regie.StopRequest) (regie.ID, error) {
	defer s.told()
	return s.Store.RequestStop(ctx, round, word)
}

func (s slow) Resume(ctx context.Context, round regie.ID) error {
	if s.resuming != nil {
		s.resuming()
	}
	defer s.told()
	return s.Store.Resume(ctx, round)
}

// house is a dispatcher on a slow store.
type house struct {
	world      *storetest.World
	store      *sqlite.Store
	hub        *dispatch.Hub
	dispatcher *dispatch.Dispatcher
	session    regie.ID // for a test's own use
	told       func()   // a decision is stored
}

// resolve stores a decision as control does.
func (h *house) resolve(ctx context.Context, in store.Decide) error {
	_, err := h.dispatcher.Resolve(ctx, false, func(ctx context.Context) (store.Resolved, error) {
		if h.told != nil {
			defer h.told()
		}
		return h.store.Decide(ctx, in)
	})
	return err
}

func newHouse(t *testing.T, s slow, reply func() *provider.Reply, tools ...tool.Tool) *house {
	t.Helper()
	hub := dispatch.NewHub()
	var err error
	if s.Store, err = sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir(), Notify: hub.Commit, MaxPages: s.pages}); err != nil {
		t.Fatal(err)
	}
	registry, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	models := func(string, regie.Hash) (provider.Provider, error) { return scripted{reply}, nil }
	h := &house{world: storetest.NewWorld(t, s.Store), store: s.Store, hub: hub}
	h.dispatcher = dispatch.New(s, engine.New(engine.Config{Store: s, Providers: models, Tools: always(registry)}), hub,
		func(regie.Round) error { return nil }, "test", slog.New(slog.DiscardHandler))
	if _, err := h.dispatcher.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.dispatcher.Close(dispatch.ErrGone)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// always has every round work with the same tools.
func always(registry *tool.Registry) func(context.Context) *tool.Registry {
	return func(context.Context) *tool.Registry { return registry }
}

// ended waits until a round of a session has ended. A round with which nothing goes on fails the
// test when its time is over.
func (h *house) ended(t *testing.T, session, round regie.ID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := h.dispatcher.Stream(ctx, session, 0, func(item dispatch.Item) error {
		var body struct {
			RoundID regie.ID         `json:"round_id"`
			State   regie.RoundState `json:"state"`
		}
		if item.Event != nil && item.Event.Type == regie.EventRound && json.Unmarshal(item.Event.Body, &body) == nil &&
			body.RoundID == round && body.State == regie.RoundEnded {
			return context.Canceled
		}
		return nil
	})
	if ctx.Err() != nil {
		now, _ := h.store.Round(t.Context(), round)
		t.Fatalf("nothing goes on with the round: it is %s in phase %s (%v)", now.State, now.Phase, err)
	}
}

func answer(text string) *provider.Reply {
	return &provider.Reply{Parts: []provider.Part{{Type: regie.PartText, Text: text}}, StopReason: "stop"}
}

// TestPendingMeetsEnd submits a message during a round, which ends after the message is stored and
// before its submitter knows: the round that the message starts bears the id that the submitter has
// reserved, and runs all the same.
func TestPendingMeetsEnd(t *testing.T) {
	release := make(chan struct{})
	var once sync.Once
	var h *house
	h = newHouse(t, slow{
		submitted: func(out store.Accepted) {
			if !out.Pending {
				return
			}
			once.Do(func() { close(release) })
			// whoever follows it has the next round in hand, or waits for it
			if err := h.dispatcher.Wait(t.Context(), out.RoundID); err != nil {
				t.Error(err)
			}
		},
	}, func() *provider.Reply { <-release; return answer("done") })
	first := h.world.Submission("one")
	if _, err := h.dispatcher.Submit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second := h.world.Submission("two")
	second.SessionID, second.New.ID, second.Round.SessionID = first.SessionID, first.SessionID, first.SessionID
	out, err := h.dispatcher.Submit(t.Context(), second)
	if err != nil || !out.Pending {
		t.Fatalf("%+v, %v", out, err)
	}
	h.ended(t, first.SessionID, second.Round.ID)
}

// TestResumeMeetsDecision resumes a paused session that waits while the last answer comes in:
// whoever is last goes on with the round.
func TestResumeMeetsDecision(t *testing.T) {
	act, err := tool.New(regie.ToolDefinition{Name: "test.act", Description: "acts", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal},
		tool.Handler[struct{}]{Run: func(context.Context, *tool.Invocation, struct{}) (tool.Result, error) {
			return tool.Result{Content: "acted"}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	replies := 0
	var h *house
	var asked regie.Approval
	h = newHouse(t, slow{resuming: func() {
		if err := h.resolve(t.Context(), store.Decide{
			ApprovalID: asked.ID, Request: "x", Decisions: []regie.Decision{{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow, By: "ada", At: time.Now()}},
		}); err != nil {
			t.Error(err)
		}
	}}, func() *provider.Reply {
		if replies++; replies > 1 {
			return answer("done")
		}
		return &provider.Reply{Parts: []provider.Part{{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "test__act", Arguments: "{}"}}}, StopReason: "tool_calls"}
	}, act)
	in := h.world.Submission("act")
	in.Round.Policy = json.RawMessage(`{}`)
	if _, err := h.dispatcher.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := h.dispatcher.Wait(t.Context(), in.Round.ID); err != nil {
		t.Fatal(err)
	}
	inbox, err := h.store.Inbox(t.Context(), store.InboxFilter{SessionID: in.SessionID})
	if err != nil || len(inbox.Approvals) != 1 {
		t.Fatalf("%+v, %v", inbox, err)
	}
	asked = inbox.Approvals[0]
	if err := h.dispatcher.Stop(t.Context(), in.Round.ID, regie.StopPause); err != nil {
		t.Fatal(err)
	}
	if err := h.dispatcher.Resume(t.Context(), in.Round.ID); err != nil {
		t.Fatal(err)
	}
	h.ended(t, in.SessionID, in.Round.ID)
}

// TestWordMeetsAnswer stops a session when its answer is here and not stored yet: the answer is
// kept, the round ends STOPPED, and the message that waited is given back (decision 6).
func TestWordMeetsAnswer(t *testing.T) {
	var h *house
	first := make(chan store.Submission, 1)
	h = newHouse(t, slow{replying: func(store.Reply) {
		select {
		case in := <-first:
			next := h.world.Submission("later")
			next.SessionID, next.New.ID = in.SessionID, in.SessionID
			if out, err := h.store.Submit(t.Context(), next); err != nil || !out.Pending {
				t.Errorf("%+v, %v", out, err)
			}
			if _, err := h.store.RequestStop(t.Context(), in.Round.ID, regie.StopStop); err != nil {
				t.Error(err)
			}
		default:
		}
	}}, func() *provider.Reply { return answer("done") })
	in := h.world.Submission("go")
	first <- in
	if _, err := h.dispatcher.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	h.ended(t, in.SessionID, in.Round.ID)
	view, err := h.store.RoundView(t.Context(), in.Round.ID)
	if err != nil || view.Round.End != regie.EndStopped || view.Session.State != regie.SessionClosed || view.Exchanges[0].Reply.AI.Text() != "done" {
		t.Errorf("the round ended %s, the session is %s, %v", view.Round.End, view.Session.State, err)
	}
	if open, err := h.store.OpenRound(t.Context(), in.SessionID); err != nil || !open.IsZero() {
		t.Errorf("round %s goes on, %v", open, err)
	}
}

// TestStopMeetsInterrupt says the stronger word when the weaker one is about to end the round in
// the middle of a batch: every call has its result, and the round ends with the stronger one.
func TestStopMeetsInterrupt(t *testing.T) {
	type args struct {
		Again int `json:"again,omitempty"`
	}
	started, release := make(chan struct{}), make(chan struct{})
	act, err := tool.New(regie.ToolDefinition{Name: "test.act", Description: "acts", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal},
		tool.Handler[args]{Run: func(ctx context.Context, _ *tool.Invocation, _ args) (tool.Result, error) {
			close(started)
			<-release
			return tool.Result{Content: "acted"}, context.Cause(ctx)
		}})
	if err != nil {
		t.Fatal(err)
	}
	var h *house
	var once sync.Once
	h = newHouse(t, slow{settling: func(in store.Settle) error {
		if in.Advance != nil && in.Advance.End != nil {
			once.Do(func() {
				if in.Advance.End.Reason != regie.EndInterrupted {
					t.Errorf("the round is about to end %s", in.Advance.End.Reason)
				}
				round, err := h.store.OpenRound(t.Context(), h.session)
				if err == nil {
					_, err = h.store.RequestStop(t.Context(), round, regie.StopStop)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		return nil
	}}, func() *provider.Reply {
		return &provider.Reply{Parts: []provider.Part{
			{Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "test__act", Arguments: "{}"}},
			{Type: regie.PartCall, Call: &provider.Call{ID: "b", Name: "test__act", Arguments: `{"again":1}`}},
		}, StopReason: "tool_calls"}
	}, act)
	in := h.world.Submission("act")
	in.Round.Policy = json.RawMessage(`{"allow":["*.*"]}`)
	h.session = in.SessionID
	if _, err := h.dispatcher.Submit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := h.dispatcher.Stop(t.Context(), in.Round.ID, regie.StopInterrupt); err != nil {
		t.Fatal(err)
	}
	close(release)
	h.ended(t, in.SessionID, in.Round.ID)
	view, err := h.store.RoundView(t.Context(), in.Round.ID)
	if err != nil || view.Round.End != regie.EndStopped || view.Session.State != regie.SessionClosed {
		t.Errorf("the round ended %s, the session is %s, %v", view.Round.End, view.Session.State, err)
	}
	for _, c := range view.Exchanges[0].Calls {
		if !c.State.Settled() {
			t.Errorf("call %d is %s", c.Ordinal, c.State)
		}
	}
}
