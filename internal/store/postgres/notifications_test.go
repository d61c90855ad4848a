package postgres_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// ear is what a store hears of others.
type ear struct {
	heard  chan regie.ID
	missed chan struct{}
}

func newEar(holder string) (ear, postgres.Others) {
	e := ear{make(chan regie.ID, 4096), make(chan struct{}, 4096)}
	return e, postgres.Others{
		Holder: holder, Heard: func(session regie.ID) { e.heard <- session }, Missed: func() { e.missed <- struct{}{} },
	}
}

func (e ear) hears(t *testing.T, session regie.ID) {
	t.Helper()
	for {
		select {
		case got := <-e.heard:
			if got == session {
				return
			}
		case <-t.Context().Done():
			t.Fatal("nothing was heard")
		case <-time.After(20 * time.Second):
			t.Fatal("nothing was heard of the session in 20 s")
		}
	}
}

// misses waits until it is told that something may have been missed.
func (e ear) misses(t *testing.T) {
	t.Helper()
	select {
	case <-e.missed:
	case <-time.After(20 * time.Second):
		t.Fatal("it was not told in 20 s that something may have been missed")
	}
}

// TestOthers has two nodes hear each other, and not themselves; a node that listens anew is told
// that it may have missed something, whether the server ended its connection or the way to it
// broke, and hears what comes then.
func TestOthers(t *testing.T) {
	address, dir := storetest.Postgres(t), t.TempDir()
	named := change(t, address, func(_ *url.URL, query url.Values) { query.Set("application_name", "ear of "+query.Get("search_path")) })
	proxy, through := storetest.NewProxy(t, named)
	first, talks := newEar("first")
	second, listens := newEar("second")
	a := open(t, postgres.Config{URL: address, Dir: dir, Others: talks})
	first.misses(t)
	b := open(t, postgres.Config{URL: through, Dir: dir, Others: listens})
	second.misses(t)
	for holder, s := range map[string]*sqlite.Store{"first": a, "second": b} {
		if err := s.Lease(t.Context(), holder, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	w := storetest.NewWorld(t, a)
	one := w.Start()
	second.hears(t, one.SessionID)
	v := &storetest.World{Store: b, Ctx: w.Ctx, User: w.User, Workspace: w.Workspace}
	submitted := v.Submission("from the other one")
	if _, err := b.Submit(t.Context(), submitted); err != nil {
		t.Fatal(err)
	}
	first.hears(t, submitted.SessionID)
	for len(first.heard) > 0 {
		if <-first.heard == one.SessionID {
			t.Error("a node heard itself")
		}
	}
	reply := w.Reply(one, 1, regie.KindQuery)
	storetest.PostgresExec(t, named, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = current_setting('application_name')")
	second.misses(t)
	if err := w.AppendReply(one, reply); err != nil {
		t.Fatal(err)
	}
	second.hears(t, one.SessionID)
	proxy.Down()
	if err := w.CommitCalls(one, w.Settled(1, reply.Calls)); err != nil { // what is said now is missed
		t.Fatal(err)
	}
	proxy.Up()
	second.misses(t)
	if err := w.AppendReply(one, w.Answer(2)); err != nil {
		t.Fatal(err)
	}
	second.hears(t, one.SessionID)
}
