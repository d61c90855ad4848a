package app_test

import (
	"net/http"
	"runtime"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/store"
)

// TestWaitingCostsNoGoroutine parks many sessions (invariant 20): they are rows. All of them can be
// answered after a restart.
func TestWaitingCostsNoGoroutine(t *testing.T) {
	const sessions = waitingSessions
	m := newModel(t, replyWith("", write("a", "a.txt", "one\n")), replyWith("ok"))
	b := newHarness(t, m)
	b.settings.File.Slots.Chat = sessions
	conn := b.connect()
	before := runtime.NumGoroutine()
	free := make(chan struct{}, 32)
	var group sync.WaitGroup
	for range sessions {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
			if err == nil {
				err = conn.Wait(t.Context(), run.RoundID)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	http.DefaultClient.CloseIdleConnections()
	// A few belong to connections of the model server that are kept open; a goroutine for each
	// session would be a thousand.
	if after := runtime.NumGoroutine(); after > before+sessions/2 {
		t.Errorf("%d goroutines before, %d with %d sessions that wait", before, after, sessions)
	}
	fatal(t, conn.Close())
	conn = b.connect()
	inbox, err := conn.Inbox(t.Context(), store.InboxFilter{Root: b.root})
	if err != nil || len(inbox.Approvals) != sessions {
		t.Fatalf("%d approvals after the restart, %v", len(inbox.Approvals), err)
	}
	for _, asked := range inbox.Approvals {
		b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerDeny})
	}
	for _, asked := range inbox.Approvals {
		fatal(t, conn.Wait(t.Context(), asked.RoundID))
	}
	inbox, err = conn.Inbox(t.Context(), store.InboxFilter{})
	if err != nil || len(inbox.Approvals) != 0 {
		t.Errorf("%d approvals are left, %v", len(inbox.Approvals), err)
	}
}

// TestAppAsks sets what the app wants asked about (spec 4.4, decision 49).
func TestAppAsks(t *testing.T) {
	t.Parallel()
	t.Run("nothing", func(t *testing.T) {
		b := newHarness(t, newModel(t, replyWith("", write("a", "a.txt", "one\n")), replyWith("ok")))
		b.settings.File.Approvals = config.Approvals{Require: "none"}
		expect(t, b.run(approval.Policy{}), regie.EndAnswered, "SUCCEEDED")
	})
	t.Run("everything, whatever is allowed", func(t *testing.T) {
		b := newHarness(t, newModel(t, replyWith("", call{"l", "files__list_files", `{}`})))
		b.settings.File.Approvals = config.Approvals{RequireValidation: true}
		conn, run := b.start(everything)
		if asked := b.parked(conn, run.SessionID).Approvals[0]; asked.Reviews[0].Tool != "files.list_files" || asked.Reviews[0].Verdict != regie.VerdictMustAsk {
			t.Errorf("asked about %+v", asked.Reviews[0])
		}
	})
	t.Run("even a question, which is then asked", func(t *testing.T) {
		b := newHarness(t, newModel(t, replyWith("", call{"q", "session__ask_user", `{"question":"Go on?"}`}), replyWith("ok")))
		b.settings.File.Approvals = config.Approvals{RequireValidation: true}
		conn, run, asked := b.startAsked(questions)
		b.decide(conn, asked, regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})
		b.state(conn, run.SessionID, regie.SessionWaitingResponse)
		inbox, err := conn.Inbox(t.Context(), store.InboxFilter{SessionID: run.SessionID})
		if err != nil || len(inbox.Questions) != 1 {
			t.Fatalf("%+v, %v", inbox, err)
		}
		yes := true
		if _, err := conn.Answer(t.Context(), answer(inbox.Questions[0], "y", regie.QuestionReply{Yes: &yes})); err != nil {
			t.Fatal(err)
		}
		expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	})
}
