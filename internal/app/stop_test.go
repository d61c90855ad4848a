package app_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// hangs is a model call that goes on until it is cut; it tells when it was asked.
func hangs(asked chan<- struct{}) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}
}

// TestStop_CancelsQuestion: a question that waits at stop is cancelled in the thread, in the
// transaction that ends the round (decision 11).
func TestStop_CancelsQuestion(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", colour)))
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{Questions: true}))
	if err != nil {
		t.Fatal(err)
	}
	b.parked(conn, run.SessionID)
	if _, err := conn.Stop(t.Context(), run.SessionID); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndStopped, "NOT_RUN INTERRUPTED")
	export, err := conn.Export(t.Context(), run.SessionID)
	fatal(t, err)
	last := export.Messages[len(export.Messages)-1].Message
	if last.System == nil || last.System.Type != regie.SystemCommunicationCancelled || len(last.System.CallIDs) != 1 {
		t.Errorf("the last message is %+v", last)
	}
}

// TestClosedEngine asks an engine that has ended: it says so with a code, stores nothing, and ends
// its followers.
func TestClosedEngine(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("hello")))
	conn := b.connect()
	run := b.startRun(conn, everything)
	b.await(conn, run)
	followed := make(chan error, 1)
	reading := make(chan struct{}, 100)
	go func() {
		followed <- conn.Events(t.Context(), run.SessionID, 0, func(dispatch.Item) error {
			reading <- struct{}{}
			return nil
		})
	}()
	<-reading
	fatal(t, conn.Close())
	if err := <-followed; regie.CodeOf(err) != regie.CodeEngineGone {
		t.Errorf("a follower got %v", err)
	}
	if _, err := conn.Submit(t.Context(), b.request(everything)); regie.CodeOf(err) != regie.CodeEngineGone {
		t.Errorf("a submission got %v", err)
	}
	conn = b.connect()
	defer conn.Close()
	if list, err := conn.List(t.Context(), store.RoundFilter{Limit: 10}); err != nil || len(list) != 1 {
		t.Errorf("%d runs, %v", len(list), err)
	}
}

// TestSubmissionsMeetClose submits from a client while the engine ends again and again: each
// message makes exactly one round, whoever runs it.
func TestSubmissionsMeetClose(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("hello")))
	first := b.connect()
	client := b.connect()
	var group sync.WaitGroup
	submitted := make(chan struct{}, 1)
	for i := range 20 {
		group.Go(func() {
			run, err := client.Submit(t.Context(), b.request(everything))
			if i == 5 {
				submitted <- struct{}{}
			}
			if err != nil {
				t.Error(err)
				return
			}
			expect(t, b.await(client, run), regie.EndAnswered)
		})
	}
	<-submitted
	fatal(t, first.Close())
	group.Wait()
	if list, err := client.List(t.Context(), store.RoundFilter{Limit: 100}); err != nil || len(list) != 20 {
		t.Errorf("%d runs, %v", len(list), err)
	}
}

// TestClientsOutlastAClosingEngine asks an engine that ends and waits for an action: it answers
// that it has gone for as long as the action takes, and the client asks on until it can take over.
func TestClientsOutlastAClosingEngine(t *testing.T) {
	t.Parallel()
	started, free := make(chan struct{}), make(chan struct{})
	slow := action(t, "slow.act", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		close(started)
		<-free
		return tool.Result{Content: "done"}, nil
	}, nil)
	b := newHarness(t, newModel(t, replyWith("", call{"a", "slow__act", `{}`}), replyWith("ok")), slow)
	engine, client := b.connect(), b.connect()
	defer client.Close()
	run := b.startRun(engine, everything)
	<-started
	closed := make(chan error, 1)
	go func() { closed <- engine.Close() }()
	b.gone(engine, run)
	asked := make(chan error, 1)
	go func() {
		_, err := client.Submit(t.Context(), b.request(approval.Policy{OnApproval: approval.DenyAndGoOn}))
		asked <- err
	}()
	close(free)
	fatal(t, <-closed)
	if err := <-asked; err != nil {
		t.Errorf("the client was told %v", err)
	}
	expect(t, b.await(client, run), regie.EndAnswered, "SUCCEEDED")
}

// gone waits until an engine that is closing says that it has gone.
func (b *harness) gone(engine *app.Conn, run dispatch.Run) {
	b.t.Helper()
	for {
		request := b.request(everything)
		request.SessionID = run.SessionID
		request.WhenBusy = store.Reject
		if _, err := engine.Service().Rounds.Submit(access.AsOwner(b.t.Context()), request); regie.CodeOf(err) == regie.CodeEngineGone {
			return
		}
	}
}
