package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestLostConnections cuts the connection in the commit of one transition after the other, before
// the server has it and before its answer comes back: each is done once, and its caller is told so.
func TestLostConnections(t *testing.T) {
	for name, at := range map[string]int32{"before the commit": storetest.CutBefore, "before its answer": storetest.CutAnswer} {
		t.Run(name, func(t *testing.T) {
			p, url := storetest.NewProxy(t, storetest.Postgres(t))
			s := open(t, postgres.Config{URL: url, Dir: t.TempDir()})
			w := storetest.NewWorld(t, s)
			cut := func() { p.At.Store(at) }
			cut()
			if _, err := s.EnsureUser(w.Ctx, "bob"); err != nil { // leaves no row in a log
				t.Fatal(err)
			}
			cut()
			accepted, err := s.Submit(w.Ctx, w.Submission("go"))
			if err != nil || accepted.Duplicate || accepted.Message.Seq != 2 {
				t.Fatalf("%+v, %v", accepted, err)
			}
			fence := accepted.Fence
			cut()
			if claimed, err := s.Claim(w.Ctx, fence.RoundID, "next"); err != nil || claimed.Fence.Epoch != 2 {
				t.Fatalf("%+v, %v", claimed.Fence, err)
			}
			fence.Epoch = 2
			reply := w.Reply(fence, 1, regie.KindQuery)
			cut()
			if err := w.AppendReply(fence, reply); err != nil {
				t.Fatal(err)
			}
			cut()
			if err := w.CommitCalls(fence, w.Settled(1, reply.Calls)); err != nil {
				t.Fatal(err)
			}
			cut()
			hash, err := s.PutBlob(w.Ctx, []byte("blob"))
			if data, again := s.Blob(w.Ctx, hash); err != nil || again != nil || string(data) != "blob" {
				t.Fatalf("%q, %v, %v", data, err, again)
			}
			if p.At.Load() != storetest.Pass {
				t.Error("the last transition met no cut")
			}
			report, err := s.Verify(w.Ctx, fence.SessionID)
			if err != nil || report.Events != 6 {
				t.Errorf("the log has %d rows, %v", report.Events, err)
			}
		})
	}
}

// TestServerGone has all connections end, as when the server starts anew, and then the way to it: a
// transition is run again on a fresh connection, and one that finds none says so and leaves nothing
// behind.
func TestServerGone(t *testing.T) {
	p, url := storetest.NewProxy(t, storetest.Postgres(t))
	s := open(t, postgres.Config{URL: url, Dir: t.TempDir()})
	w := storetest.NewWorld(t, s)
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery)
	p.Cut()
	if err := w.AppendReply(fence, reply); err != nil {
		t.Fatal(err)
	}
	p.Down()
	soon := func() { // the store's own patience is longer
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		t.Cleanup(cancel)
		w.Ctx = ctx
	}
	soon()
	if err := w.CommitCalls(fence, w.Settled(1, reply.Calls)); regie.CodeOf(err) != regie.CodeDatabaseDown {
		t.Errorf("without a server: %v", err)
	}
	soon()
	if _, err := s.Round(w.Ctx, fence.RoundID); regie.CodeOf(err) != regie.CodeDatabaseDown {
		t.Errorf("a read without a server: %v", err)
	}
	soon()
	if _, err := s.Submit(w.Ctx, store.Submission{SessionID: fence.SessionID, Message: w.Submission("x").Message}); regie.CodeOf(err) != regie.CodeDatabaseDown {
		t.Errorf("a message without a server: %v", err)
	}
}
