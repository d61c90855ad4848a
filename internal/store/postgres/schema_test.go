package postgres_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// refusals are what the specification forbids, in plain SQL, and a word of what the database says
// to it; they are tried on a full store.
var refusals = map[string]struct{ sql, says string }{
	"log row changed":               {"UPDATE events SET at = 1", "never change"},
	"log row beyond a gap":          {"INSERT INTO events SELECT (n << 32) | (head + 2), n, head + 2, 'forged', 1, mac, mac FROM chains WHERE head > 0 LIMIT 1", "no gap"},
	"log row under another number":  {"INSERT INTO events SELECT 1, n, head + 1, 'forged', 1, mac, mac FROM chains WHERE head > 0 LIMIT 1", "events_check"},
	"log row beyond the head":       {"INSERT INTO events SELECT (n << 32) | (head + 1), n, head + 1, 'forged', 1, mac, mac FROM chains WHERE head > 0 LIMIT 1; SET CONSTRAINTS ALL IMMEDIATE", "beyond the head"},
	"body without a row":            {"INSERT INTO event_bodies VALUES (1, 'x')", "with its log row"},
	"body erased without a word":    {"DELETE FROM event_bodies", "with a row in its log"},
	"body changed":                  {"UPDATE event_bodies SET body = 'x'", "never changed"},
	"head over a gap":               {"UPDATE chains SET head = head + 1 WHERE head > 0", "gap"},
	"head back":                     {"UPDATE chains SET head = head - 1 WHERE head > 0", "gap"},
	"mac without a row":             {"UPDATE chains SET mac = decode(repeat('00', 32), 'hex') WHERE head > 0", "does not fit"},
	"chain of another":              {"UPDATE chains SET owner_id = gen_random_uuid()", "never changes"},
	"chain that comes with a head":  {"INSERT INTO chains SELECT 4711, 'session', gen_random_uuid(), 7, mac, 1 FROM chains LIMIT 1", "empty"},
	"second open round":             {"INSERT INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, provider, model, started_at) SELECT gen_random_uuid(), session, 2, reason, 'WAITING', phase, 1, limits, 1, '', '', '', '', 1 FROM rounds WHERE state <> 'ENDED'", "rounds_one_open"},
	"round ended without a reason":  {"UPDATE rounds SET state = 'ENDED', phase = 'END', ended_at = 1 WHERE state <> 'ENDED'", "check"},
	"unknown round state":           {"UPDATE rounds SET state = 'SLEEPING' WHERE state <> 'ENDED'", "check"},
	"end reason on an open session": {"UPDATE sessions SET end_reason = 'COMPLETED' WHERE state <> 'CLOSED'", "check"},
	"call without its code":         {"UPDATE calls SET state = 'NOT_RUN', settled_at = 1, error = '{}' WHERE state = 'PROPOSED'", "check"},
	"settled without a result":      {"UPDATE calls SET state = 'FAILED', settled_at = 1 WHERE state = 'PROPOSED'", "check"},
	"audit message in the prompt":   {"UPDATE messages SET excluded = 0 WHERE system_type = 'NETWORK_ERROR'", "check"},
	"wait without a deadline":       {"INSERT INTO waits (id, session, round_id, kind, owner_id, state, created_at) SELECT gen_random_uuid(), session, id, 'APPROVAL', gen_random_uuid(), 'OPEN', 1 FROM rounds LIMIT 1", "check"},
	"decision by nobody":            {"UPDATE reviews SET answer = 'allow', decided_at = 1 WHERE answer IS NULL", "check"},
	"rule revoked by nobody":        {"UPDATE rules SET revoked_at = 1 WHERE revoked_at IS NULL", "check"},
	"a file of the data directory":  {"UPDATE blobs SET in_file = 1", "check"},
}

// TestSchemaRefuses tries each with plain SQL: the database itself refuses it, as the store does.
func TestSchemaRefuses(t *testing.T) {
	address := storetest.Postgres(t)
	w := storetest.NewWorld(t, open(t, postgres.Config{URL: address, Dir: t.TempDir()}))
	w.Full()
	for _, table := range []string{"events", "chains"} {
		refusals[table+" deleted"] = struct{ sql, says string }{"DELETE FROM " + table, "never deleted"}
		refusals[table+" emptied"] = struct{ sql, says string }{"TRUNCATE " + table + " CASCADE", "never emptied"}
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name, c := range refusals {
		t.Run(name, func(t *testing.T) {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			for statement := range strings.SplitSeq(c.sql, "; ") {
				if _, err = tx.ExecContext(t.Context(), statement); err != nil {
					break
				}
			}
			var state *pgconn.PgError
			if !errors.As(err, &state) || !strings.HasPrefix(state.Code, "23") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want a refusal that says %q", err, c.says)
			}
		})
	}
	if err := w.Store.QuickCheck(t.Context()); err != nil {
		t.Error(err)
	}
	if list, err := w.Store.Rounds(t.Context(), store.RoundFilter{Limit: 100}); err != nil || len(list) == 0 || list[0].Round.State == regie.RoundEnded && len(list) == 1 {
		t.Errorf("%d rounds, %v", len(list), err)
	}
}
