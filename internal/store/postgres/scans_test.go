package postgres_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// manyWait adds rounds that wait, each for a time ahead, with their sessions; nothing of them is in
// any log.
const manyWait = `SET session_replication_role = replica;
	INSERT INTO sessions SELECT (jsonb_populate_record(s, jsonb_build_object('n', -i, 'id', gen_random_uuid()))).* FROM sessions s, generate_series(1, 5000) i WHERE s.n = (SELECT min(n) FROM sessions);
	INSERT INTO rounds SELECT (jsonb_populate_record(r, jsonb_build_object('session', -i, 'id', gen_random_uuid()))).* FROM rounds r, generate_series(1, 5000) i WHERE r.state = 'WAITING';
	INSERT INTO waits SELECT (jsonb_populate_record(w, jsonb_build_object('session', -i, 'id', gen_random_uuid(), 'deadline', w.deadline + i))).* FROM waits w, generate_series(1, 5000) i;
	ANALYZE sessions; ANALYZE rounds; ANALYZE waits`

// TestScans has the server say by which index it found what every engine asks all the time, among
// many rounds that wait.
func TestScans(t *testing.T) {
	address, dir := storetest.Postgres(t), t.TempDir()
	w := storetest.NewWorld(t, open(t, postgres.Config{URL: address, Dir: dir}))
	running := w.Start()
	w.Parked(time.Now().Add(time.Hour))
	storetest.PostgresExec(t, address, manyWait)
	s, err := postgres.Open(t.Context(), postgres.Config{URL: address, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := s.Orphans(t.Context(), "somebody"); err != nil || len(found) != 1 || found[0].RoundID != running.RoundID {
		t.Errorf("found %+v, %v", found, err)
	}
	if ready, next, err := s.ExpireWaits(t.Context(), time.Now()); err != nil || len(ready) != 0 || next.Before(time.Now()) {
		t.Errorf("ready %+v, next %s, %v", ready, next, err)
	}
	if err := s.Close(); err != nil { // its connections leave their figures behind
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var used, read int
	for until := time.Now().Add(30 * time.Second); used < 2 && time.Now().Before(until); {
		if err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM pg_stat_user_indexes WHERE schemaname = current_schema()
				AND indexrelname IN ('rounds_running', 'waits_open') AND idx_scan > 0 AND idx_tup_read < 1000),
			(SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE schemaname = current_schema() AND relname IN ('rounds', 'waits'))`).Scan(&used, &read); err != nil {
			t.Fatal(err)
		}
	}
	if used != 2 || read > 1000 {
		t.Errorf("%d of the two indices were used for a few rows only, and %d rows read without any", used, read)
	}
}
