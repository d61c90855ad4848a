package sqlite_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// raw opens the database beside the store, as somebody who goes around it would.
func raw(t *testing.T, dir string) *sql.DB {
	t.Helper()
	return rawWith(t, dir, "foreign_keys(1)")
}

func rawWith(t *testing.T, dir, pragma string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqlite.FileName)+"?_pragma=busy_timeout(2000)&_pragma="+pragma)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// refusal is something that the specification forbids, in plain SQL, and a word of what the
// database says to it.
type refusal struct{ sql, says string }

// newCall is the columns of a call that collides with nothing, but for what a test writes in place
// of them.
const newCall = "INSERT OR REPLACE INTO calls (id, session, round_id, exchange, ordinal, message_id, origin, tool, kind, class, signature, arguments, state, started_at, settled_at, result, proposed_at) SELECT "

// refusals are tried on a full store (see full).
var refusals = map[string]refusal{
	"log row changed":               {"UPDATE events SET at = 1", "never change"},
	"log row deleted":               {"DELETE FROM events", "never deleted"},
	"body erased without a word":    {"DELETE FROM event_bodies WHERE n = 2", "with a row in its log"},
	"body changed":                  {"UPDATE event_bodies SET body = 'x'", "never changed"},
	"head over a gap":               {"UPDATE chains SET head = head + 1 WHERE head > 0", "gap"},
	"head back":                     {"UPDATE chains SET head = head - 1 WHERE head > 0", "gap"},
	"round ended without a reason":  {"UPDATE rounds SET state = 'ENDED', phase = 'END', ended_at = 1 WHERE state <> 'ENDED'", "CHECK"},
	"reason without an end":         {"UPDATE rounds SET end_reason = 'LIMIT' WHERE state <> 'ENDED'", "CHECK"},
	"unknown round state":           {"UPDATE rounds SET state = 'SLEEPING' WHERE state <> 'ENDED'", "CHECK"},
	"end reason on an open session": {"UPDATE sessions SET end_reason = 'COMPLETED' WHERE state <> 'CLOSED'", "CHECK"},
	"closed without a time":         {"UPDATE sessions SET state = 'CLOSED' WHERE state = 'IDLE'", "CHECK"},
	"active template":               {"INSERT INTO sessions (n, id, workspace_id, user_id, agent, type, provider, model, state, created_at) SELECT (SELECT max(n) - 2 FROM chains), randomblob(16), workspace_id, user_id, agent, 'SEED', provider, model, 'ACTIVE', 1 FROM sessions LIMIT 1", "CHECK"},
	"call without its code":         {"UPDATE calls SET state = 'NOT_RUN', settled_at = 1, error = '{}' WHERE state = 'PROPOSED'", "CHECK"},
	"code on a running call":        {"UPDATE calls SET code = 'DENIED' WHERE state = 'PROPOSED'", "CHECK"},
	"settled without a result":      {"UPDATE calls SET state = 'FAILED', settled_at = 1 WHERE state = 'PROPOSED'", "CHECK"},
	"unknown query":                 {"UPDATE calls SET state = 'UNKNOWN', settled_at = 1, started_at = 1, result = '' WHERE kind = 'query' AND state = 'PROPOSED'", "CHECK"},
	"query of class once":           {"INSERT INTO calls SELECT randomblob(16), session, round_id, exchange, 9, randomblob(16), origin, tool, NULL, 'query', 'once', signature, definition, arguments, executed, ask, state, code, intent, result, error, result_blob, duplicate_of, attempts, recovered, duration_us, proposed_at, started_at, settled_at, NULL, NULL, NULL, NULL, NULL, NULL FROM calls WHERE state = 'PROPOSED'", "CHECK"},
	"audit message in the prompt":   {"INSERT INTO messages (id, session, seq, sender, variant, system_type, author_kind, author_id) SELECT randomblob(16), session, 99, 'SYSTEM', 'system', 'NETWORK_ERROR', 'component', 'x' FROM messages LIMIT 1", "CHECK"},
	"wait without a deadline":       {"INSERT INTO waits (id, session, round_id, kind, owner_id, state, created_at) SELECT randomblob(16), session, id, 'APPROVAL', randomblob(16), 'OPEN', 1 FROM rounds LIMIT 1", "CHECK"},
	"wrong type":                    {"UPDATE rounds SET total = 'many' WHERE state <> 'ENDED'", "TEXT value"},
	"id of the wrong length":        {"INSERT INTO users (id, name, created_at) VALUES (x'00', 'x', 1)", "CHECK"},
	"effect without an intent":      {"UPDATE calls SET state = 'SUCCEEDED', settled_at = 1, result = '' WHERE kind = 'action' AND state = 'PROPOSED'", "CHECK"},
	"second open round":             {"INSERT INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, provider, model, started_at) SELECT randomblob(16), session, 2, reason, 'WAITING', phase, 1, limits, 1, '', '', '', '', 1 FROM rounds WHERE state <> 'ENDED'", "UNIQUE"},
	"second undo of a workspace":    {"INSERT INTO undos SELECT randomblob(16), session, workspace_id, round_id, NULL, 'INTENDED', 0, 0, '[]', '[]', '[]', 'x', 1, NULL, 1, NULL FROM undos WHERE state = 'DONE'", "UNIQUE"},
	"file of an undo twice":         {"INSERT INTO undo_files (undo_id, ordinal, path, from_size, from_perm, to_size, to_perm) SELECT undo_id, 9, path, 0, 0, 0, 0 FROM undo_files LIMIT 1", "UNIQUE"},
	"second result of an undo":      {"UPDATE undos SET state = 'DONE', done_at = 1 WHERE state = 'INTENDED'", "CHECK"},
	"negative money":                {"UPDATE exchanges SET reserved_microusd = -1 WHERE state = 'OPEN'", "CHECK"},

	"decision by nobody":        {"UPDATE reviews SET answer = 'allow', decided_at = 1 WHERE answer IS NULL", "CHECK"},
	"rule revoked by nobody":    {"UPDATE rules SET revoked_at = 1 WHERE revoked_at IS NULL", "CHECK"},
	"one answer that expires":   {"UPDATE reviews SET answer = 'allow', decided_by = 'x', decided_at = 1, expires_at = 2 WHERE answer IS NULL", "CHECK"},
	"unknown verdict of a rule": {"INSERT INTO rules SELECT randomblob(16), workspace_id, session, 'MAYBE', tool, scope, author, from_call, 1, NULL, NULL, NULL FROM rules", "CHECK"},

	// Nothing is replaced: OR REPLACE deletes without a delete trigger.
	"log row replaced by number":        {"INSERT OR REPLACE INTO events SELECT n, chain, seq, 'forged', at, body, mac FROM events WHERE n = 2", "comes once"},
	"log row replaced by place":         {"INSERT OR REPLACE INTO events SELECT 999, chain, seq, 'forged', at, body, mac FROM events WHERE n = 2", "comes once"},
	"newest log row replaced by number": {"INSERT OR REPLACE INTO events SELECT n, chain, seq + 1, 'forged', at, body, mac FROM events ORDER BY n DESC LIMIT 1", "comes once"},
	"newest log row replaced by place":  {"INSERT OR REPLACE INTO events SELECT n + 1, chain, seq, 'forged', at, body, mac FROM events ORDER BY n DESC LIMIT 1", "comes once"},
	"log row beyond a gap":              {"INSERT INTO events SELECT 999, n, head + 2, 'forged', 1, mac, mac FROM chains WHERE n = 1", "no gap"},
	"body replaced":                     {"INSERT OR REPLACE INTO event_bodies (n, body) VALUES (2, 'forged')", "comes once"},
	"newest body replaced":              {"INSERT OR REPLACE INTO event_bodies (n, body) SELECT max(n), 'forged' FROM event_bodies", "comes once"},
	"chain replaced by number":          {"INSERT OR REPLACE INTO chains (n, kind, owner_id, mac, head_at) VALUES (1, 'session', randomblob(16), zeroblob(32), 1)", "comes once"},
	"chain replaced by owner":           {"INSERT OR REPLACE INTO chains (kind, owner_id, mac, head_at) SELECT kind, owner_id, mac, head_at FROM chains LIMIT 1", "comes once"},
	"chain that comes with a head":      {"INSERT INTO chains (kind, owner_id, head, mac, head_at) VALUES ('session', randomblob(16), 7, zeroblob(32), 1)", "comes once"},

	"mac without a row":                 {"UPDATE chains SET mac = zeroblob(32) WHERE head > 0", "does not fit"},
	"head with another mac":             {"UPDATE chains SET head = head + 1, mac = zeroblob(32) WHERE head > 0", "gap"},
	"audit message put into the prompt": {"UPDATE messages SET excluded = 0 WHERE system_type = 'NETWORK_ERROR'", "CHECK"},
}

// gone are the tables whose rows stay for ever (decision 15).
var gone = []string{"events", "chains"}

// fixed are the columns that never change, and another value for each.
var fixed = map[string]map[string]string{
	"chains": {
		"n": "4711", "oid": "4711", "kind": "'workspace'", "owner_id": "randomblob(16)",
	},
}

// TestSchemaRefuses tries what the specification forbids with plain SQL: the database itself
// refuses each, and stays as it was. What goes around the store has other pragmas than ours: the
// guards hold under any.
func TestSchemaRefuses(t *testing.T) {
	for _, table := range gone {
		refusals[table+" deleted"] = refusal{"DELETE FROM " + table, "never deleted"}
	}
	for table, columns := range fixed {
		for column, value := range columns {
			refusals[table+"."+column+" changed"] = refusal{"UPDATE " + table + " SET " + column + " = " + value + " WHERE " + column + " IS NOT NULL", "never changes"}
		}
	}
	dir := t.TempDir()
	full(t, dir)
	for _, pragma := range []string{"foreign_keys(0)", "foreign_keys(1)", "recursive_triggers(1)"} {
		db := rawWith(t, dir, pragma)
		for name, c := range refusals {
			t.Run(pragma+"/"+name, func(t *testing.T) {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				before := dump(t, tx)
				if _, err := tx.ExecContext(t.Context(), c.sql); err == nil || !saysOne(err.Error(), c.says) {
					t.Errorf("got %v, want a refusal that says %q", err, c.says)
				}
				if dump(t, tx) != before {
					t.Error("the database is not what it was")
				}
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// saysOne reports whether a refusal says one of what is expected: which guard is asked first is
// SQLite's affair.
func saysOne(said, want string) bool {
	return slices.ContainsFunc(strings.Split(want, "|"), func(one string) bool { return strings.Contains(said, one) })
}

// full fills a store with rows in each state that a refusal speaks of.
func full(t *testing.T, dir string) {
	t.Helper()
	w := storetest.NewWorld(t, open(t, dir))
	w.Full()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	undone(t, w)
	// What nothing writes yet: a wait for a task, a message that is pending, sessions of other
	// types.
	for _, query := range []string{
		"INSERT INTO waits (id, session, round_id, kind, object_id, owner_id, state, created_at) SELECT randomblob(16), session, id, 'TASK', randomblob(16), randomblob(16), 'OPEN', 1 FROM rounds LIMIT 1",
		"INSERT INTO messages (id, session, pending_seq, sender, variant, author_kind, author_id) SELECT randomblob(16), session, 2, 'USER', 'text', 'user', 'x' FROM rounds LIMIT 1",
		"INSERT INTO chains (kind, owner_id, mac, head_at) VALUES ('session', randomblob(16), zeroblob(32), 1), ('session', randomblob(16), zeroblob(32), 1), ('session', randomblob(16), zeroblob(32), 1)",
		"INSERT INTO sessions (n, id, workspace_id, user_id, agent, type, provider, model, state, end_reason, created_at, closed_at, forked_from, forked_at_seq, token_id) SELECT (SELECT max(n) - 1 FROM chains), randomblob(16), workspace_id, user_id, agent, 'AUTOMATION', provider, model, 'CLOSED', 'COMPLETED', 1, 1, id, 1, randomblob(16) FROM sessions LIMIT 1",
		"INSERT INTO sessions (n, id, workspace_id, user_id, agent, type, provider, model, parent_call, created_at) SELECT (SELECT max(n) FROM chains), randomblob(16), workspace_id, user_id, agent, 'SUBAGENT', provider, model, randomblob(16), 1 FROM sessions LIMIT 1",
	} {
		_, err := raw(t, dir).ExecContext(t.Context(), query)
		must(err)
	}
}

// dump writes down every row of every table.
func dump(t *testing.T, tx *sql.Tx) string {
	t.Helper()
	var out strings.Builder
	for _, table := range []string{"events", "chains", "event_bodies", "users", "blobs", "calls", "messages", "exchanges", "rounds", "waits", "sessions", "approvals", "reviews", "rules", "undos"} {
		rows, err := tx.QueryContext(t.Context(), "SELECT * FROM "+table) //nolint:unqueryvet // every column is meant
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			for _, value := range values {
				fmt.Fprintf(&out, "%v|", value)
			}
			out.WriteString(table + "\n")
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// TestSchemaAllows tries what must go on working, or what later work needs.
func TestSchemaAllows(t *testing.T) {
	dir := t.TempDir()
	full(t, dir)
	for name, query := range map[string]string{
		"approval":                 "UPDATE reviews SET answer = 'allow', decided_by = 'x', decided_at = 1 WHERE answer IS NULL; UPDATE calls SET state = 'APPROVED', executed = '{}' WHERE state = 'AWAITING_APPROVAL'; UPDATE calls SET state = 'STARTED', started_at = 1 WHERE state = 'APPROVED'; UPDATE calls SET state = 'SUCCEEDED', result = 'ok', settled_at = 1 WHERE started_at = 1",
		"call that awaits at once": newCall + "randomblob(16), session, round_id, exchange, 9, randomblob(16), origin, tool, 'action', 'once', signature, '{}', 'AWAITING_APPROVAL', NULL, NULL, NULL, 1 FROM calls LIMIT 1",
		"UNKNOWN resolved":         "UPDATE calls SET state = 'FAILED', resolved_at = 1, resolved_by = 'ada', resolved_as = 'did_not_happen', resolve_note = 'looked' WHERE state = 'UNKNOWN'",
		"CHAT closed and reopened": "UPDATE sessions SET state = 'CLOSED', closed_at = 1 WHERE type = 'CHAT' AND state = 'IDLE'; UPDATE sessions SET state = 'IDLE', closed_at = NULL WHERE type = 'CHAT' AND state = 'CLOSED'",
		"message admitted":         "UPDATE messages SET seq = 77, round_id = (SELECT id FROM rounds LIMIT 1), exchange = 2 WHERE seq IS NULL",
		"message superseded":       "UPDATE messages SET superseded = 1 WHERE session = (SELECT session FROM undos WHERE state = 'INTENDED'); UPDATE messages SET superseded = 0 WHERE session = (SELECT session FROM undos WHERE state = 'INTENDED')",
		"levels rebuilt":           "UPDATE rounds SET level1 = (SELECT hash FROM blobs), level2 = (SELECT hash FROM blobs), provider = 'fallback', model = 'other' WHERE state <> 'ENDED'",
		"pin set once":             "UPDATE rounds SET agent_pin = zeroblob(32) WHERE agent_pin IS NULL AND state <> 'ENDED'",
		"wait resolved":            "UPDATE waits SET state = 'RESOLVED', resolved_at = 1, resolution = '{}' WHERE state = 'OPEN'",
		"body erased":              "INSERT INTO events SELECT (SELECT max(n) + 1 FROM events), n, head + 1, 'erased', 1, mac, zeroblob(32) FROM chains WHERE n = 1; DELETE FROM event_bodies WHERE n = 2",
		"blob erased":              "UPDATE blobs SET data = NULL",
		"session deleted":          "UPDATE sessions SET deleted_at = 1, name = '' WHERE state = 'IDLE'",
		"next row and its head":    "INSERT INTO events SELECT (SELECT max(n) + 1 FROM events), n, head + 1, 'erased', 1, mac, zeroblob(32) FROM chains WHERE n = 1; UPDATE chains SET head = head + 1, mac = zeroblob(32) WHERE n = 1",
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := raw(t, dir).BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for part := range strings.SplitSeq(query, "; ") {
				result, err := tx.ExecContext(t.Context(), part)
				if err != nil {
					t.Fatal(part, err)
				}
				if n, err := result.RowsAffected(); n == 0 || err != nil {
					t.Errorf("%s changed %d rows, %v", part, n, err)
				}
			}
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
		})
	}
}
