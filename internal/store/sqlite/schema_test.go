package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// raw opens the database beside the store, as somebody who goes around it would.
func raw(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqlite.FileName)+"?_pragma=foreign_keys(1)&_pragma=busy_timeout(2000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestSchemaRefuses tries what the specification forbids with plain SQL: the database itself refuses each.
func TestSchemaRefuses(t *testing.T) {
	dir := t.TempDir()
	w := storetest.NewWorld(t, open(t, dir))
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindAction)
	if err := w.AppendReply(fence, reply); err != nil {
		t.Fatal(err)
	}
	db := raw(t, dir)
	for name, c := range map[string]struct{ sql, says string }{
		"log row changed":                  {"UPDATE events SET at = 1", "never change"},
		"log row deleted":                  {"DELETE FROM events", "never deleted"},
		"body changed":                     {"UPDATE event_bodies SET body = 'x'", "never changed"},
		"head over a gap":                  {"UPDATE chains SET head = head + 1", "gap"},
		"head back":                        {"UPDATE chains SET head = head - 1", "gap"},
		"second open round":                {"INSERT INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, provider, model, started_at) SELECT randomblob(16), session, 2, reason, 'WAITING', phase, 1, limits, 1, '', '', '', '', 1 FROM rounds", "rounds.session"},
		"round ended without a reason":     {"UPDATE rounds SET state = 'ENDED', phase = 'END', ended_at = 1", "CHECK"},
		"reason without an end":            {"UPDATE rounds SET end_reason = 'LIMIT'", "CHECK"},
		"unknown round state":              {"UPDATE rounds SET state = 'SLEEPING'", "CHECK"},
		"epoch back":                       {"UPDATE rounds SET epoch = 0", "only rise"},
		"session epoch back":               {"UPDATE sessions SET epoch = 0", "only rises"},
		"end reason on an open session":    {"UPDATE sessions SET end_reason = 'COMPLETED'", "CHECK"},
		"closed without a time":            {"UPDATE sessions SET state = 'CLOSED'", "CHECK"},
		"active template":                  {"UPDATE sessions SET type = 'SEED'", "CHECK"},
		"call without its code":            {"UPDATE calls SET state = 'NOT_RUN', settled_at = 1, error = '{}'", "CHECK"},
		"code on a running call":           {"UPDATE calls SET code = 'DENIED'", "CHECK"},
		"settled without a result":         {"UPDATE calls SET state = 'FAILED', settled_at = 1", "CHECK"},
		"effect without an intent":         {"UPDATE calls SET state = 'SUCCEEDED', settled_at = 1, result = '' WHERE kind = 'action'", "CHECK"},
		"unknown query":                    {"UPDATE calls SET state = 'UNKNOWN', settled_at = 1, started_at = 1, result = '' WHERE kind = 'query'", "CHECK"},
		"arguments changed":                {"UPDATE calls SET arguments = '{}'", "never changes"},
		"query of class once":              {"INSERT INTO calls SELECT randomblob(16), session, round_id, exchange, 9, randomblob(16), origin, tool, NULL, 'query', 'once', signature, definition, arguments, executed, ask, state, code, intent, result, error, result_blob, duplicate_of, attempts, recovered, duration_us, proposed_at, started_at, settled_at, NULL, NULL, NULL, NULL FROM calls LIMIT 1", "CHECK"},
		"message of two variants' senders": {"UPDATE messages SET sender = 'SYSTEM'", "never changes"},
		"audit message in the prompt":      {"INSERT INTO messages (id, session, seq, sender, variant, system_type, author_kind, author_id) SELECT randomblob(16), session, 99, 'SYSTEM', 'system', 'NETWORK_ERROR', 'component', 'x' FROM messages LIMIT 1", "CHECK"},
		"message with missing calls":       {"INSERT INTO messages (id, session, seq, sender, variant, author_kind, author_id, calls) SELECT randomblob(16), session, 98, 'AI', 'ai', 'agent', 'x', 1 FROM messages LIMIT 1", "do not agree"},
		"wait without a deadline":          {"INSERT INTO waits (id, session, round_id, kind, owner_id, state, created_at) SELECT randomblob(16), session, id, 'APPROVAL', randomblob(16), 'OPEN', 1 FROM rounds", "CHECK"},
		"wrong type":                       {"UPDATE rounds SET total = 'many'", "TEXT value"},
		"id of the wrong length":           {"INSERT INTO users (id, name, created_at) VALUES (x'00', 'x', 1)", "CHECK"},
		"negative money":                   {"UPDATE exchanges SET reserved_microusd = -1", "CHECK"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := db.ExecContext(t.Context(), c.sql)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want a refusal that says %q", err, c.says)
			}
		})
	}
	// A settled call keeps its one result; an UNKNOWN one ends only by evidence (invariants 4 and 5).
	if err := w.CommitCalls(fence, store.Settle{Exchange: 1, Start: &reply.Calls[1]}); err != nil {
		t.Fatal(err)
	}
	if err := w.CommitCalls(fence, half(w, reply)); err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]string{
		"second result":                 "UPDATE calls SET result = 'another' WHERE kind = 'query'",
		"UNKNOWN without evidence":      "UPDATE calls SET state = 'FAILED' WHERE kind = 'action'",
		"UNKNOWN back to the beginning": "UPDATE calls SET state = 'PROPOSED', settled_at = NULL WHERE kind = 'action'",
	} {
		if _, err := db.ExecContext(t.Context(), query); err == nil || !strings.Contains(err.Error(), "exactly one result") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// half settles the query, and the action as UNKNOWN.
func half(w *storetest.World, reply store.Reply) store.Settle {
	settle := w.Settled(1, reply.Calls)
	settle.Advance, settle.Message = nil, nil
	settle.Settled[1].State, settle.Settled[1].Error = regie.CallUnknown, &regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "?"}
	return settle
}

// TestVerifyFindsTampering alters rows behind the store's back; verify names the first one (decision 15).
func TestVerifyFindsTampering(t *testing.T) {
	for name, c := range map[string]struct{ sql, says string }{
		"body":         {"DROP TRIGGER bodies_never_change; UPDATE event_bodies SET body = replace(body, 'go', 'no') WHERE n = 2", "the body of row 2"},
		"row":          {"DROP TRIGGER events_never_change; UPDATE events SET at = at + 1 WHERE seq = 3", "row 3 was altered"},
		"row gone":     {"DROP TRIGGER events_never_go; DELETE FROM events WHERE seq = 2", "row 2 is missing"},
		"tail gone":    {"DROP TRIGGER events_never_go; DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "its head says"},
		"result":       {"DROP TRIGGER calls_order; UPDATE calls SET result = 'better'", "the result of call"},
		"arguments":    {"DROP TRIGGER calls_identity; DROP TRIGGER calls_order; UPDATE calls SET arguments = '{}'", "the arguments of call"},
		"call removed": {"PRAGMA foreign_keys = 0; DELETE FROM calls", "is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := storetest.NewWorld(t, open(t, dir))
			fence := w.Start()
			reply := w.Reply(fence, 1, regie.KindQuery)
			if err := w.AppendReply(fence, reply); err != nil {
				t.Fatal(err)
			}
			if err := w.CommitCalls(fence, w.Settled(1, reply.Calls)); err != nil {
				t.Fatal(err)
			}
			if _, err := raw(t, dir).ExecContext(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
			_, err := w.Store.Verify(t.Context(), fence.SessionID)
			if regie.CodeOf(err) != regie.CodeChainBroken || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	t.Run("an erased body is no fault", func(t *testing.T) {
		dir := t.TempDir()
		w := storetest.NewWorld(t, open(t, dir))
		fence := w.Start()
		if _, err := raw(t, dir).ExecContext(t.Context(), "DELETE FROM event_bodies WHERE n = 2"); err != nil {
			t.Fatal(err)
		}
		report, err := w.Store.Verify(t.Context(), fence.SessionID)
		if err != nil || report.Erased != 1 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// TestOpenRefuses opens data directories that cannot be used; each says why and changes nothing.
func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		code  regie.Code
	}{
		"newer schema": {func(t *testing.T, dir string) {
			t.Helper()
			if _, err := raw(t, dir).ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
				t.Fatal(err)
			}
		}, regie.CodeNewerSchema},
		"not a database": {func(t *testing.T, dir string) {
			t.Helper()
			write(t, filepath.Join(dir, sqlite.FileName), strings.Repeat("garbage ", 1000))
		}, regie.CodeCorrupt},
		"key cut off": {func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "audit.key"), "short") }, regie.CodeCorrupt},
		"directory in place of the file": {func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, sqlite.FileName)); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, sqlite.FileName), 0o700); err != nil {
				t.Fatal(err)
			}
		}, regie.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, dir)
			s, err = sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
			if regie.CodeOf(err) != c.code {
				t.Errorf("got %v (%v), want %v", regie.CodeOf(err), err, c.code)
			}
			if s != nil {
				t.Error("a store came with the error")
			}
		})
	}
}

// TestFilesArePrivate looks at the modes of what a store makes.
func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	w := storetest.NewWorld(t, open(t, dir))
	w.Start()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 3 {
		t.Fatal(entries, err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
	}
}

// TestLocked holds the database as another program would: the transition fails whole, and works once the other lets go.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, BusyTimeout: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := storetest.NewWorld(t, s)
	other, err := raw(t, dir).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	in := w.Submission("go")
	if _, err := s.Submit(t.Context(), in); regie.CodeOf(err) != regie.CodeDatabaseLocked {
		t.Errorf("got %v", err)
	}
	if _, err := other.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Submit(t.Context(), in); err != nil {
		t.Error(err)
	}
}

// TestDiskFull bounds the file: the transition fails whole, says so, and the store goes on.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir, MaxPages: 120})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := storetest.NewWorld(t, s)
	fence := w.Start()
	big := w.Submission(strings.Repeat("x", 1<<20))
	if _, err := s.Submit(t.Context(), big); regie.CodeOf(err) != regie.CodeDiskFull {
		t.Errorf("got %v (%v)", regie.CodeOf(err), err)
	}
	if _, err := s.AppendReply(t.Context(), fence, w.Reply(fence, 1, regie.KindQuery)); err != nil {
		t.Errorf("the store did not go on: %v", err)
	}
	if _, _, err := s.Session(t.Context(), big.SessionID); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("half a submission is there: %v", err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
