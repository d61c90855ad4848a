package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// nodes opens several stores of one database, as so many processes do.
func nodes(t *testing.T, n int) (out []*sqlite.Store) {
	t.Helper()
	address, dir := storetest.Postgres(t), t.TempDir()
	for range n {
		out = append(out, open(t, postgres.Config{URL: address, Dir: dir}))
	}
	return out
}

// TestNodes has many clients of three nodes do everything at once to the same few sessions. No
// transition fails because others were in its way, no log has a gap, and each answer counts once.
func TestNodes(t *testing.T) {
	stores := nodes(t, 3)
	w := storetest.NewWorld(t, stores[0])
	var fences []store.Fence
	for range 3 {
		fences = append(fences, w.Start())
	}
	var group sync.WaitGroup
	fail := func(what string, err error, allowed ...regie.Code) {
		for _, code := range allowed {
			if regie.CodeOf(err) == code {
				return
			}
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for client := range 12 {
		s := stores[client%len(stores)]
		group.Go(func() {
			for i := range 8 {
				fence := fences[(client+i)%len(fences)]
				in := w.Submission(fmt.Sprint("more ", client, i))
				in.SessionID, in.New = fence.SessionID, nil
				_, err := s.Submit(t.Context(), in)
				fail("submit", err)
				claimed, err := s.Claim(t.Context(), fence.RoundID, fmt.Sprint("node ", client))
				fail("claim", err)
				reply := w.Reply(claimed.Fence, 1, regie.KindQuery)
				_, err = s.AppendReply(t.Context(), claimed.Fence, reply)
				fail("reply", err, regie.CodeStale, regie.CodeConflict)
				_, _, err = s.ExpireWaits(t.Context(), time.Now())
				fail("expire", err)
				fresh := w.Submission("new")
				_, err = s.Submit(t.Context(), fresh)
				fail("new session", err)
				_, err = s.EnsureWorkspace(t.Context(), w.User, regie.Workspace{Name: "v", Root: fmt.Sprint("/v", i)})
				fail("workspace", err)
			}
		})
	}
	group.Wait()
	for _, fence := range fences {
		if _, err := stores[2].Verify(t.Context(), fence.SessionID); err != nil {
			t.Error(err)
		}
	}
}

// TestSubmitTogether has three nodes store the same first message: it makes one session with one
// round.
func TestSubmitTogether(t *testing.T) {
	stores := nodes(t, 3)
	w := storetest.NewWorld(t, stores[0])
	for range 8 {
		in := w.Submission("once")
		in.Message.ClientID = "the same"
		var created, duplicates int
		var mu sync.Mutex
		var group sync.WaitGroup
		for _, s := range stores {
			group.Go(func() {
				again := in
				again.Message.ID, again.Round.ID = regie.NewID(), regie.NewID()
				accepted, err := s.Submit(t.Context(), again)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if accepted.Created {
					created++
				}
				if accepted.Duplicate {
					duplicates++
				}
			})
		}
		group.Wait()
		if created != 1 || duplicates != 2 {
			t.Fatalf("%d made the session, %d met it", created, duplicates)
		}
	}
}

// TestLeases: what a living holder has claimed is its own, on every node; what a dead one left is
// anybody's, and then the former one writes nothing more.
func TestLeases(t *testing.T) {
	address, dir := storetest.Postgres(t), t.TempDir()
	stores := []*sqlite.Store{open(t, postgres.Config{URL: address, Dir: dir}), open(t, postgres.Config{URL: address, Dir: dir})}
	w := storetest.NewWorld(t, stores[0])
	lease := func(s *sqlite.Store, holder string, ttl time.Duration) {
		t.Helper()
		if err := s.Lease(t.Context(), holder, ttl); err != nil {
			t.Fatal(err)
		}
	}
	abandoned := func(s *sqlite.Store, holder string, want int) {
		t.Helper()
		if found, err := s.Orphans(t.Context(), holder); err != nil || len(found) != want {
			t.Fatalf("%d rounds are abandoned, %v; want %d", len(found), err, want)
		}
	}
	storetest.PostgresExec(t, address, "INSERT INTO commits (id, at) VALUES (gen_random_uuid(), now() - interval '2 hours')")
	lease(stores[0], "test", time.Hour)
	lease(stores[1], "other", time.Hour)
	storetest.PostgresExec(t, address, "DO $$ BEGIN IF EXISTS (SELECT 1 FROM commits WHERE at < now() - interval '1 hour') THEN RAISE 'old commits are kept'; END IF; END $$")
	fence := w.Start()              // held by "test"
	abandoned(stores[0], "test", 1) // its own
	abandoned(stores[1], "other", 0)
	if _, err := stores[1].Claim(t.Context(), fence.RoundID, "other"); err != store.ErrElsewhere { //nolint:errorlint // the very value
		t.Fatalf("a living holder's session was claimed: %v", err)
	}
	lease(stores[0], "test", -time.Second)
	abandoned(stores[1], "other", 1)
	claimed, err := stores[1].Claim(t.Context(), fence.RoundID, "other")
	if err != nil || claimed.Fence.Epoch != fence.Epoch+1 || !claimed.Resumed {
		t.Fatalf("%+v, %v", claimed.Fence, err)
	}
	lease(stores[0], "test", time.Hour) // it lives after all
	if err := w.AppendReply(fence, w.Answer(1)); regie.CodeOf(err) != regie.CodeStale {
		t.Errorf("the former holder wrote: %v", err)
	}
	if _, err := stores[0].Claim(t.Context(), fence.RoundID, "test"); err != store.ErrElsewhere { //nolint:errorlint // the very value
		t.Errorf("the former holder took it back: %v", err)
	}
	if err := stores[1].EndLease(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	abandoned(stores[0], "test", 1)
}

// TestUndoLease: an undo is its holder's as a round is.
func TestUndoLease(t *testing.T) {
	address, dir := storetest.Postgres(t), t.TempDir()
	here, there := open(t, postgres.Config{URL: address, Dir: dir}), open(t, postgres.Config{URL: address, Dir: dir})
	w := storetest.NewWorld(t, here)
	fence := w.Acted(w.Submission("go"))
	if err := here.Lease(t.Context(), "test", time.Hour); err != nil {
		t.Fatal(err)
	}
	held, err := here.BeginUndo(t.Context(), w.UndoOf(fence), "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.ClaimUndo(t.Context(), held.ID, "other"); err != store.ErrElsewhere { //nolint:errorlint // the very value
		t.Fatalf("a living holder's undo was claimed: %v", err)
	}
	if err := here.Lease(t.Context(), "test", -time.Second); err != nil {
		t.Fatal(err)
	}
	taken, err := there.ClaimUndo(t.Context(), held.ID, "other")
	if err != nil || taken.Epoch != held.Epoch+1 {
		t.Fatalf("%d, %v", taken.Epoch, err)
	}
	if _, err := here.FinishUndo(t.Context(), storetest.Finished(held)); regie.CodeOf(err) != regie.CodeStale {
		t.Errorf("the former holder finished it: %v", err)
	}
	if done, err := there.FinishUndo(t.Context(), storetest.Finished(taken)); err != nil || done.State != regie.UndoDone {
		t.Errorf("%s, %v", done.State, err)
	}
}

// TestHostileBytes stores what PostgreSQL's text cannot hold, wherever it comes from outside.
func TestHostileBytes(t *testing.T) {
	w := storetest.NewWorld(t, open(t, postgres.Config{URL: storetest.Postgres(t), Dir: t.TempDir()}))
	const hostile = "a\x00b\xff\xfe\\x41'é"
	in := w.Submission("go")
	in.Message.ClientID, in.New.Name = hostile, hostile
	accepted, err := w.Store.Submit(w.Ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	reply := w.Reply(accepted.Fence, 1, regie.KindQuery)
	reply.Calls[0].Tool, reply.Calls[0].ProviderCallID = hostile, hostile
	reply.Exchange.StopReason = hostile
	if err := w.AppendReply(accepted.Fence, reply); err != nil {
		t.Fatal(err)
	}
	settle := w.Settled(1, reply.Calls)
	settle.Settled[0].Result = hostile
	if err := w.CommitCalls(accepted.Fence, settle); err != nil {
		t.Fatal(err)
	}
	if err := w.FailAttempt(accepted.Fence, store.Failure{
		Attempt: regie.Attempt{RoundID: accepted.RoundID, Exchange: 2, Number: 1, Code: regie.CodeTruncatedStream, Error: hostile, Partial: hostile},
		Retry:   &store.Open{Number: 2},
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.AppendReply(accepted.Fence, w.Answer(2)); err != nil {
		t.Fatal(err)
	}
	view, err := w.Store.RoundView(w.Ctx, accepted.RoundID)
	if err != nil {
		t.Fatal(err)
	}
	call := view.Exchanges[0].Calls[0]
	for what, got := range map[string]string{
		"tool": call.Tool, "provider's id": call.ProviderCallID, "result": call.Result, "stop reason": view.Exchanges[0].StopReason,
		"partial": view.Exchanges[1].Attempts[0].Partial, "name": view.Session.Name,
	} {
		if got != hostile {
			t.Errorf("%s came back as %q", what, got)
		}
	}
}
