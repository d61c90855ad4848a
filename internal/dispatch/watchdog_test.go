package dispatch_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
	"github.com/regie-run/regie/internal/tool"
)

// voice is a provider that answers as it is told.
type voice struct {
	line
	send func(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error)
}

func (v voice) Open(provider.Head) (provider.Conversation, error) { return v, nil }
func (v voice) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	return v.send(ctx, sink)
}

// watched is a dispatcher with a watchdog of ten minutes, one slot of each kind, and a model.
type watched struct {
	*house
	t *testing.T
}

func newWatched(t *testing.T, send func(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error), tools ...tool.Tool) *watched {
	t.Helper()
	hub := dispatch.NewHub()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir(), Notify: hub.Commit})
	if err != nil {
		t.Fatal(err)
	}
	s.SetSlots(slot.Capacity{Chat: 1, Automation: 1, API: 1})
	registry, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{house: &house{world: storetest.NewWorld(t, s), store: s, hub: hub}, t: t}
	w.dispatcher = dispatch.New(s, engine.New(engine.Config{
		Store: s, Providers: func(string, regie.Hash) (provider.Provider, error) { return voice{send: send}, nil }, Tools: always(registry),
	}), hub, func(regie.Round) error { return nil }, "test", slog.New(slog.DiscardHandler))
	w.dispatcher.Watchdog(10 * time.Minute)
	if _, err := w.dispatcher.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.dispatcher.Close(dispatch.ErrGone)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *watched) submit(change func(*store.Submission)) store.Accepted {
	w.t.Helper()
	in := w.world.Submission("go")
	if change != nil {
		change(&in)
	}
	accepted, err := w.dispatcher.Submit(w.t.Context(), in)
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
	return accepted
}

// after lets time pass, and returns a round as it stands then.
func (w *watched) after(d time.Duration, round regie.ID) store.RoundView {
	w.t.Helper()
	time.Sleep(d) // of the bubble
	synctest.Wait()
	view, err := w.store.RoundView(w.t.Context(), round)
	if err != nil {
		w.t.Fatal(err)
	}
	return view
}

// stopped asserts that the watchdog ended a round: the reason, one audit message that no model
// reads, and a free slot.
func (w *watched) stopped(view store.RoundView, state regie.SessionState, end regie.SessionEnd) {
	w.t.Helper()
	if view.Round.State != regie.RoundEnded || view.Round.End != regie.EndWatchdog || !strings.Contains(view.Round.EndNote.String(), "10m0s") {
		w.t.Fatalf("the round is %s %s, %q", view.Round.State, view.Round.End, view.Round.EndNote)
	}
	session, _, err := w.store.Session(w.t.Context(), view.Session.ID)
	if err != nil || session.State != state || session.EndReason != end {
		w.t.Errorf("the session is %s %s, %v", session.State, session.EndReason, err)
	}
	thread, err := w.store.Thread(w.t.Context(), view.Session.ID, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	events, err := w.store.Events(w.t.Context(), view.Session.ID, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	told := 0
	for i := range events {
		var n regie.Notice
		if events[i].Type == regie.EventNotice && json.Unmarshal(events[i].Body, &n) == nil && n.Kind == regie.NoticeFailed && n.RoundID == view.Round.ID {
			told++
		}
	}
	if nobody := end != ""; nobody != (told == 1) || told > 1 {
		w.t.Errorf("people who do not watch were told %d times of the end of %s", told, view.Session.Type)
	}
	said := 0
	for _, m := range thread.Messages {
		if m.System != nil && m.System.Type == regie.SystemSessionTimeout {
			said++
			if !m.ExcludeFromPrompt {
				w.t.Error("the model would read SESSION_TIMEOUT")
			}
		}
	}
	if said != 1 {
		w.t.Errorf("SESSION_TIMEOUT stands in the thread %d times", said)
	}
	if _, err := w.store.Verify(w.t.Context(), view.Session.ID); err != nil {
		w.t.Error(err)
	}
}

// rows is how long a session's log is.
func (w *watched) rows(session regie.ID) int {
	w.t.Helper()
	events, err := w.store.Events(w.t.Context(), session, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(events)
}

func silent(ctx context.Context, _ func(provider.Delta)) (*provider.Reply, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// TestWatchdog has a model say nothing, without an end: it has its own time, then the watchdog's,
// and then its round is over and the slot is the next one's.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, silent)
		chat := w.submit(nil)
		run := w.submit(func(in *store.Submission) { in.New.Type = regie.SessionAutomation })
		next := w.submit(func(in *store.Submission) { in.New.Type = regie.SessionAutomation })
		if next.Position != 1 {
			t.Fatalf("the second automation is at place %d", next.Position)
		}
		quiet := provider.MaxSilence + 10*time.Minute
		if view := w.after(quiet-time.Second, chat.RoundID); view.Round.State != regie.RoundRunning {
			t.Fatalf("the round was stopped within the model's own time: %s", view.Round.End)
		}
		w.stopped(w.after(2*time.Second, chat.RoundID), regie.SessionIdle, "")
		w.stopped(w.after(0, run.RoundID), regie.SessionClosed, regie.SessionTimeout)
		if view := w.after(0, next.RoundID); view.Round.State != regie.RoundRunning || view.Session.State != regie.SessionActive {
			t.Errorf("the queued round is %s, its session %s", view.Round.State, view.Session.State)
		}
		w.stopped(w.after(quiet+time.Second, next.RoundID), regie.SessionClosed, regie.SessionTimeout)
	})
}

// TestWatchdogTakes has a model that does not hear that it is to end: its round is taken from it,
// and what it says later changes nothing.
func TestWatchdogTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		w := newWatched(t, func(context.Context, func(provider.Delta)) (*provider.Reply, error) {
			asked++
			time.Sleep(5 * time.Hour) // of the bubble
			return answer("late"), nil
		})
		in := w.submit(nil)
		w.stopped(w.after(provider.MaxSilence+10*time.Minute+20*time.Second, in.RoundID), regie.SessionIdle, "")
		before := w.rows(in.Fence.SessionID)
		if view := w.after(6*time.Hour, in.RoundID); view.Round.End != regie.EndWatchdog || len(view.Exchanges[0].Attempts) != 1 {
			t.Errorf("after the late answer the round is %s with %d lost attempts", view.Round.End, len(view.Exchanges[0].Attempts))
		}
		if after := w.rows(in.Fence.SessionID); after != before || asked != 1 {
			t.Errorf("the log has %d rows, it had %d; the model was asked %d times", after, before, asked)
		}
	})
}

// TestWatchdogCloses ends a process in which a round does not hear anything: it is not waited for
// once it was taken.
func TestWatchdogCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		w := newWatched(t, func(context.Context, func(provider.Delta)) (*provider.Reply, error) {
			<-end
			return nil, context.Canceled
		})
		in := w.submit(nil)
		w.stopped(w.after(provider.MaxSilence+11*time.Minute, in.RoundID), regie.SessionIdle, "")
		w.dispatcher.Close(dispatch.ErrGone)
		close(end)
		synctest.Wait()
	})
}

// TestWatchdogLets a run be that is slow and lives, waits for a person for days, or has a tool that
// takes its own time.
func TestWatchdogLets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exchange := 0
		w := newWatched(t, func(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
			if exchange++; exchange == 1 {
				for range 12 {
					select {
					case <-time.After(19 * time.Minute):
						sink(provider.Delta{}) // a piece of a call
					case <-ctx.Done():
						return nil, context.Cause(ctx)
					}
				}
				return acts()(), nil
			}
			return answer("done"), nil
		}, hourly(t, 3*time.Hour))
		in := w.submit(func(in *store.Submission) { in.Round.Policy = json.RawMessage(`{}`) })
		if view := w.after(5*time.Hour, in.RoundID); view.Session.State != regie.SessionWaitingValidation {
			t.Fatalf("the session is %s, the round %s %s", view.Session.State, view.Round.State, view.Round.End)
		}
		time.Sleep(20 * time.Hour) // of the bubble
		inbox, err := w.store.Inbox(t.Context(), store.InboxFilter{})
		if err != nil || len(inbox.Approvals) != 1 {
			t.Fatalf("%d approvals, %v", len(inbox.Approvals), err)
		}
		call := inbox.Approvals[0].Reviews[0].CallID
		if err := w.resolve(t.Context(), store.Decide{
			ApprovalID: inbox.Approvals[0].ID, Request: "1", Decisions: []regie.Decision{{CallID: call, Answer: regie.AnswerAllow, By: "p"}},
		}); err != nil {
			t.Fatal(err)
		}
		view := w.after(3*time.Hour+time.Minute, in.RoundID)
		if view.Round.End != regie.EndAnswered || view.Exchanges[0].Calls[0].State != regie.CallSucceeded {
			t.Errorf("the round ended %s, its call is %s", view.Round.End, view.Exchanges[0].Calls[0].State)
		}
	})
}

// hourly is an action that takes its own time.
func hourly(t *testing.T, takes time.Duration) tool.Tool {
	t.Helper()
	out, err := tool.New(regie.ToolDefinition{
		Name: "test.act", Description: "takes hours", Kind: regie.KindAction, Class: regie.ClassOnce, Risk: regie.RiskInternal, Timeout: 2 * takes,
	}, tool.Handler[struct{}]{Run: func(ctx context.Context, _ *tool.Invocation, _ struct{}) (tool.Result, error) {
		select {
		case <-time.After(takes):
			return tool.Result{Content: "done"}, nil
		case <-ctx.Done():
			return tool.Result{}, context.Cause(ctx)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWatchdogLost has a run stop without an end, as an error of the store would have it: nobody
// works on it, so it is ended when its time is over.
func TestWatchdogLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, func(context.Context, func(provider.Delta)) (*provider.Reply, error) {
			return nil, regie.Errorf(regie.CodeCorrupt, "none of a provider's errors")
		})
		in := w.submit(nil)
		if view := w.after(9*time.Minute, in.RoundID); view.Round.State != regie.RoundRunning || view.Session.State != regie.SessionActive {
			t.Fatalf("the round is %s", view.Round.State)
		}
		w.stopped(w.after(2*time.Minute, in.RoundID), regie.SessionIdle, "")
	})
}
