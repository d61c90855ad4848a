package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // to make schemas, and to ask the server what was written
)

// written is the database cost of an exchange.
type written struct {
	wal     float64 // bytes of the server's log, of all that it did meanwhile
	rows    float64 // inserted, updated and deleted
	stored  float64 // bytes of tables and indexes
	commits float64 // of the whole database
}

// shared is the private schema of one trial.
type shared struct {
	db     *sql.DB
	schema string
	url    string
	key    []byte
	lsn    string
	before float64
}

// newShared makes the URL of an empty schema and records the server's position in its log.
func newShared(database string) (*shared, error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("pgx", database)
	if err != nil {
		return nil, err
	}
	s := &shared{db: db, schema: "bench_" + strconv.FormatInt(time.Now().UnixNano(), 36), key: make([]byte, 32)}
	_, _ = rand.Read(s.key)
	query := u.Query()
	query.Set("search_path", s.schema)
	u.RawQuery = query.Encode()
	s.url = u.String()
	return s, db.QueryRowContext(context.Background(),
		"SELECT pg_current_wal_lsn()::text, (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())").Scan(&s.lsn, &s.before)
}

// close returns the writes of that many exchanges, and drops the schema.
func (s *shared) close(exchanges int) (w written, err error) {
	ctx := context.Background()
	defer s.db.Close()
	// The statistics of a connection that has ended are there a moment later.
	err = s.db.QueryRowContext(ctx, `SELECT pg_current_wal_lsn() - $1::pg_lsn, (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) - $2,
		(SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables WHERE schemaname = $3),
		(SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $3 AND c.relkind = 'r')`,
		s.lsn, s.before, s.schema).Scan(&w.wal, &w.commits, &w.rows, &w.stored)
	_, failed := s.db.ExecContext(ctx, "DROP SCHEMA IF EXISTS "+s.schema+" CASCADE")
	for _, figure := range []*float64{&w.wal, &w.commits, &w.rows, &w.stored} {
		*figure /= float64(exchanges)
	}
	return w, errors.Join(err, failed)
}

// sharing measures P8: one node on PostgreSQL against SQLite, two nodes against one, and the writes
// of an exchange.
func (s *session) sharing() error {
	if s.database == "" {
		fmt.Println("| P8 PostgreSQL | not measured: name one with -postgres or in REGIE_TEST_POSTGRES | | | |")
		return nil
	}
	rounds := s.rounds
	if s.scale == 1 {
		rounds = 1
	}
	var costs []written
	for _, width := range []struct {
		n, runs int
		goal    string
	}{{1, 60, ""}, {16, 200, ""}, {64, 400, "≥ 0.60"}} {
		var ours, theirs, ratio, two, gain, p99 []float64
		of := trial{Contestant: "regie", Steps: 3, Concurrent: width.n, Runs: width.runs * s.scale}
		for range rounds {
			there, cost, err := s.nodes(of, 1)
			if err != nil {
				return err
			}
			here, _, err := s.trial(of)
			if err != nil {
				return err
			}
			one, embedded := rate(there...), rate(here)
			ours, theirs, ratio, p99 = append(ours, one), append(theirs, embedded),
				append(ratio, one/embedded), append(p99, there[0].P99)
			if width.n < 64 {
				continue
			}
			costs = append(costs, cost)
			pair, _, err := s.nodes(of, 2)
			if err != nil {
				return err
			}
			two, gain = append(two, rate(pair...)), append(gain, rate(pair...)/one)
		}
		row("P8 PostgreSQL against SQLite, exchanges/s, ×%d", width.n)(median(ours), median(theirs),
			median(ratio), width.goal, "%.0f")
		fmt.Printf("| P8 run p99 on PostgreSQL, ms, ×%d | %.1f | | | |\n", width.n, median(p99))
		if width.n == 64 {
			row("P8 two nodes against one, exchanges/s, ×64 each")(median(two), median(ours), median(gain),
				"≥ 1.7 with headroom", "%.0f")
		}
	}
	// The server's log covers all its databases: the lowest figure is nearest to an exchange's own.
	least := func(figure func(written) float64) float64 {
		var all []float64
		for _, w := range costs {
			all = append(all, figure(w))
		}
		return slices.Min(all)
	}
	fmt.Printf("| P8 bytes of WAL in an exchange | %.0f | | | |\n", least(func(w written) float64 { return w.wal }))
	fmt.Printf("| P8 bytes stored by an exchange, with indexes | %.0f | | | |\n",
		least(func(w written) float64 { return w.stored }))
	fmt.Printf("| P8 rows written in an exchange | %.1f | | | |\n", least(func(w written) float64 { return w.rows }))
	fmt.Printf("| P8 transactions in an exchange | %.1f | | | |\n", least(func(w written) float64 { return w.commits }))
	return nil
}

// rate is what trials did together in a second.
func rate(results ...result) (sum float64) {
	for _, r := range results {
		sum += float64(r.Exchanges) / r.Seconds
	}
	return sum
}

// nodes runs a trial on n nodes at once, each in a separate process, on a private schema.
func (s *session) nodes(of trial, n int) (results []result, cost written, err error) {
	place, err := newShared(s.database)
	if err != nil {
		return nil, cost, err
	}
	of.Database, of.Key = place.url, place.key
	type ended struct {
		result
		err error
	}
	all := make(chan ended, n)
	for i := range n {
		go func() {
			one := of
			one.Name = strconv.Itoa(i) + "-"
			r, err := s.run(one)
			all <- ended{r, err}
		}()
	}
	for range n {
		e := <-all
		results, err = append(results, e.result), errors.Join(err, e.err)
	}
	// Those that warmed up count too, with their answers: a run of 3 exchanges has 4 model calls.
	cost, failed := place.close(n * of.Steps * (of.Runs + 2*of.Concurrent))
	return results, cost, errors.Join(err, failed)
}
