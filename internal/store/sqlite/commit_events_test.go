package sqlite_test

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// TestToldIsTheLog: what a commit tells is what the log has, to the byte: who is told need not read
// it.
func TestToldIsTheLog(t *testing.T) {
	ctx := t.Context()
	var mu sync.Mutex
	told := map[regie.ID][]regie.Event{}
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: t.TempDir(), Notify: func(session regie.ID, added []regie.Event) {
		mu.Lock()
		defer mu.Unlock()
		told[session] = append(told[session], added...)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	user, err := s.EnsureUser(ctx, "u")
	if err != nil {
		t.Fatal(err)
	}
	workspace, err := s.EnsureWorkspace(ctx, user.ID, regie.Workspace{Name: "w", Root: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	session := regie.NewID()
	submit := func(n *regie.Session, text string) store.Accepted {
		accepted, err := s.Submit(ctx, store.Submission{
			SessionID: session, Holder: "h", New: n, WhenBusy: store.Queue,
			Message: regie.Message{ID: regie.NewID(), Sender: regie.SenderUser, Author: regie.Author{Kind: regie.AuthorUser, ID: "u"}, Text: text},
			Round:   regie.Round{ID: regie.NewID(), Reason: regie.ReasonUserMessage, Agent: "main", Provider: "p", Model: "m", TraceID: "t"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return accepted
	}
	first := submit(&regie.Session{ID: session, WorkspaceID: workspace.ID, UserID: user.ID, Agent: "main", Type: regie.SessionChat, Provider: "p", Model: "m"}, "go \"é\u2028<&>")
	submit(nil, "and this")
	if _, err := s.RequestStop(ctx, first.Fence.RoundID, regie.StopInterrupt); err != nil {
		t.Fatal(err)
	}
	log, err := s.Events(ctx, session, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(log, told[session]); diff != "" || len(log) < 4 {
		t.Errorf("%d events; the log against what was told:\n%s", len(log), diff)
	}
}
