package app_test

import (
	"database/sql"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/storetest"
)

// shared is a harness on PostgreSQL whose schema is made, and a connection beside it.
func shared(t *testing.T, m *model) (*harness, *sql.DB) {
	t.Helper()
	b := newHarness(t, m)
	b.settings.Database = storetest.Postgres(t)
	fatal(t, b.connect().Close())
	db, err := sql.Open("pgx", b.settings.Database)
	fatal(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return b, db
}

// TestOpenTakesItsTime: an engine that waits for another one's migration, or makes a long one, is
// not cut off in it by the time for which a command waits for an answer.
func TestOpenTakesItsTime(t *testing.T) {
	b, db := shared(t, newModel(t))
	const patience = 50 * time.Millisecond
	app.ShortenAttach(t, patience)
	tx, err := db.BeginTx(t.Context(), nil)
	if err == nil {
		// as a migration has it
		_, err = tx.ExecContext(t.Context(), "LOCK TABLE goose_db_version IN ACCESS EXCLUSIVE MODE")
	}
	fatal(t, err)
	opened := make(chan error, 1)
	go func() {
		conn, err := app.Connect(t.Context(), app.Options{Config: b.settings})
		if err == nil {
			err = conn.Close()
		}
		opened <- err
	}()
	for waits := false; !waits; {
		fatal(t, db.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE relation = 'goose_db_version'::regclass AND NOT granted)").Scan(&waits))
	}
	select {
	case err = <-opened:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(4 * patience):
	}
	fatal(t, tx.Rollback())
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// logged takes what an operator's log gets.
type logged chan string

func (l logged) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default: // nobody reads on
	}
	return len(line), nil
}

// TestAwayAtTheStart takes the database away at the moment when an engine takes up what another one
// left: the engine goes on when it is back.
func TestAwayAtTheStart(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	var first atomic.Bool
	answer := replyWith("ok")
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		if first.CompareAndSwap(false, true) {
			close(asked)
			<-r.Context().Done()
			return
		}
		answer(w, r)
	})
	b := newHarness(t, m)
	proxy, database := storetest.NewProxy(t, storetest.Postgres(t))
	b.settings.Database = database
	before := b.connect()
	run := b.startRun(before, everything)
	<-asked
	fatal(t, before.Close())
	log := make(logged, 100)
	conn, err := app.Connect(t.Context(), app.Options{
		Config: b.settings, Models: b.watched(), Log: slog.New(slog.NewTextHandler(log, nil)), Resumed: func([]regie.ID) { proxy.Down() },
	})
	fatal(t, err)
	defer conn.Close()
	for !strings.Contains(<-log, "renew this engine's lease") { // that it was missed
	}
	proxy.Up()
	expect(t, b.comes(conn, run), regie.EndAnswered)
	if run, err = conn.Submit(t.Context(), b.request(everything)); err != nil {
		t.Fatal(err)
	}
	expect(t, b.comes(conn, run), regie.EndAnswered)
}

// comes returns a round once it has ended, over a database that is away for a while.
func (b *harness) comes(conn *app.Conn, run dispatch.Run) store.RoundView {
	b.t.Helper()
	long := time.After(time.Minute)
	for {
		view, err := conn.Get(b.t.Context(), run.RoundID)
		switch {
		case err == nil && view.Round.State == regie.RoundEnded:
			return view
		case err != nil && regie.CodeOf(err) != regie.CodeDatabaseDown:
			b.t.Fatal(err)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-long:
			b.t.Fatal("the run did not go on")
		}
	}
}
