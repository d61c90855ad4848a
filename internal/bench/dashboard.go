package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// fillRollUps adds 100,000 rounds of 6 calls in 30 days: by the hour those of 3 agents with 3 end
// reasons, and the calls of 10 tools in 5 buckets each.
const fillRollUps = `
	CREATE TEMP TABLE n AS WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 719)
		SELECT i FROM c;
	INSERT INTO round_stats SELECT unixepoch() / 3600 - n.i, w.id, 'agent ' || a.i, 'model', e, 16, 20, 93, 1, 1,
			9000, 900, 4000, 0, 3000, 500
		FROM n, workspaces w, (SELECT i FROM n WHERE n.i < 3) a,
			(SELECT 'ANSWERED' e UNION SELECT 'LIMIT' UNION SELECT 'DENIED');
	INSERT INTO tool_stats SELECT w.id, 'kit.tool_' || t.i, 10 + b.i, unixepoch() / 3600 - n.i, 17, 16, 0
		FROM n, workspaces w, (SELECT i FROM n WHERE n.i < 10) t, (SELECT i FROM n WHERE i < 5) b;`

// reporting measures what the dashboard takes for 30 days of 100,000 rounds of 6 calls.
func (s *session) reporting() (err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx := access.AsOwner(context.Background())
	opened, err := sqlite.Open(ctx, sqlite.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	user, err := opened.EnsureUser(ctx, "ada")
	if err != nil {
		return err
	}
	_, err = opened.EnsureWorkspace(ctx, user.ID, regie.Workspace{Name: "w", Root: "/w", FoundBy: "git"})
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqlite.FileName))
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, fillRollUps); err != nil {
		return errors.Join(err, db.Close())
	}
	month := store.StatFilter{From: time.Now().AddDate(0, 0, -29).Format(time.DateOnly), Group: "agent"}
	stats, rounds := control.New(control.Config{Store: opened}).Stats, int64(0)
	var took []float64
	before, err := resources()
	if err != nil {
		return errors.Join(err, db.Close())
	}
	for range s.rounds * 8 {
		started := time.Now()
		got, err := stats.Get(ctx, month)
		if err != nil {
			return err
		}
		took, rounds = append(took, float64(time.Since(started).Microseconds())/1000), got.Total.Rounds
	}
	after, err := resources()
	fmt.Printf("| the dashboard of 30 days, %d rounds, ms; processor time | %.1f; %.1f | | | ≤ 50 |\n", rounds, median(took),
		(processor(after)-processor(before))/1000/float64(len(took)))
	return errors.Join(err, db.Close())
}
