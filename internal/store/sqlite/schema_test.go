package sqlite_test

import (
	"database/sql"
	"fmt"
	"maps"
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
	"log row changed":                  {"UPDATE events SET at = 1", "never change"},
	"log row deleted":                  {"DELETE FROM events", "never deleted"},
	"body erased without a word":       {"DELETE FROM event_bodies WHERE n = 2", "with a row in its log"},
	"body changed":                     {"UPDATE event_bodies SET body = 'x'", "never changed"},
	"head over a gap":                  {"UPDATE chains SET head = head + 1 WHERE head > 0", "gap"},
	"head back":                        {"UPDATE chains SET head = head - 1 WHERE head > 0", "gap"},
	"second open round":                {"INSERT INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, provider, model, started_at) SELECT randomblob(16), session, 2, reason, 'WAITING', phase, 1, limits, 1, '', '', '', '', 1 FROM rounds WHERE state <> 'ENDED'", "one at a time"},
	"round ended without a reason":     {"UPDATE rounds SET state = 'ENDED', phase = 'END', ended_at = 1 WHERE state <> 'ENDED'", "CHECK"},
	"reason without an end":            {"UPDATE rounds SET end_reason = 'LIMIT' WHERE state <> 'ENDED'", "CHECK"},
	"unknown round state":              {"UPDATE rounds SET state = 'SLEEPING' WHERE state <> 'ENDED'", "CHECK"},
	"epoch back":                       {"UPDATE rounds SET epoch = 0", "only rise"},
	"session epoch back":               {"UPDATE sessions SET epoch = 0", "only rises"},
	"end reason on an open session":    {"UPDATE sessions SET end_reason = 'COMPLETED' WHERE state <> 'CLOSED'", "CHECK"},
	"closed without a time":            {"UPDATE sessions SET state = 'CLOSED' WHERE state = 'IDLE'", "CHECK"},
	"active template":                  {"INSERT INTO sessions (n, id, workspace_id, user_id, agent, type, provider, model, state, created_at) SELECT (SELECT max(n) - 2 FROM chains), randomblob(16), workspace_id, user_id, agent, 'SEED', provider, model, 'ACTIVE', 1 FROM sessions LIMIT 1", "CHECK"},
	"call without its code":            {"UPDATE calls SET state = 'NOT_RUN', settled_at = 1, error = '{}' WHERE state = 'PROPOSED'", "CHECK"},
	"code on a running call":           {"UPDATE calls SET code = 'DENIED' WHERE state = 'PROPOSED'", "CHECK"},
	"settled without a result":         {"UPDATE calls SET state = 'FAILED', settled_at = 1 WHERE state = 'PROPOSED'", "CHECK"},
	"effect without an intent":         {"UPDATE calls SET state = 'SUCCEEDED', settled_at = 1, result = '' WHERE kind = 'action' AND state = 'PROPOSED'", "exactly one result"},
	"unknown query":                    {"UPDATE calls SET state = 'UNKNOWN', settled_at = 1, started_at = 1, result = '' WHERE kind = 'query' AND state = 'PROPOSED'", "CHECK"},
	"arguments changed":                {"UPDATE calls SET arguments = '{}'", "never changes"},
	"changes after the result":         {"UPDATE calls SET changed = '{}' WHERE settled_at IS NOT NULL AND kind = 'action' AND started_at IS NOT NULL", "with its result, once"},
	"changes before the result":        {"UPDATE calls SET changed = '{}' WHERE settled_at IS NULL", "with its result, once"},
	"query of class once":              {"INSERT INTO calls SELECT randomblob(16), session, round_id, exchange, 9, randomblob(16), origin, tool, NULL, 'query', 'once', signature, definition, arguments, executed, ask, state, code, intent, result, error, result_blob, duplicate_of, attempts, recovered, duration_us, proposed_at, started_at, settled_at, NULL, NULL, NULL, NULL, NULL, NULL FROM calls WHERE state = 'PROPOSED'", "CHECK"},
	"message of two variants' senders": {"UPDATE messages SET sender = 'SYSTEM'", "never changes"},
	"audit message in the prompt":      {"INSERT INTO messages (id, session, seq, sender, variant, system_type, author_kind, author_id) SELECT randomblob(16), session, 99, 'SYSTEM', 'system', 'NETWORK_ERROR', 'component', 'x' FROM messages LIMIT 1", "CHECK"},
	"message with missing calls":       {"INSERT INTO messages (id, session, seq, sender, variant, author_kind, author_id, calls) SELECT randomblob(16), session, 98, 'AI', 'ai', 'agent', 'x', 1 FROM messages LIMIT 1", "do not agree"},
	"wait without a deadline":          {"INSERT INTO waits (id, session, round_id, kind, owner_id, state, created_at) SELECT randomblob(16), session, id, 'APPROVAL', randomblob(16), 'OPEN', 1 FROM rounds LIMIT 1", "CHECK"},
	"wrong type":                       {"UPDATE rounds SET total = 'many' WHERE state <> 'ENDED'", "TEXT value"},
	"id of the wrong length":           {"INSERT INTO users (id, name, created_at) VALUES (x'00', 'x', 1)", "CHECK"},
	"negative money":                   {"UPDATE exchanges SET reserved_microusd = -1 WHERE state = 'OPEN'", "CHECK"},

	// No call goes on without a person's word where one was asked for (invariant 3), and the word
	// is given once (decision 20).
	"approval out of nowhere":    {"UPDATE calls SET state = 'APPROVED' WHERE state = 'AWAITING_APPROVAL'", "no approval"},
	"proposed call approved":     {"UPDATE calls SET state = 'APPROVED' WHERE state = 'PROPOSED' AND kind = 'action'", "no approval"},
	"decision changed":           {"UPDATE reviews SET answer = 'deny' WHERE answer IS NOT NULL", "decided once"},
	"decision taken back":        {"UPDATE reviews SET answer = NULL, decided_by = NULL, decided_at = NULL WHERE answer IS NOT NULL", "decided once"},
	"decision by nobody":         {"UPDATE reviews SET answer = 'allow', decided_at = 1 WHERE answer IS NULL", "CHECK"},
	"other arguments shown":      {"UPDATE reviews SET arguments = '[]' WHERE answer IS NULL", "on what was shown"},
	"review that comes decided":  {"INSERT OR REPLACE INTO reviews SELECT approval_id, call_id, ordinal, definition, arguments, preview, verdict, grounds, 'allow', NULL, NULL, NULL, NULL, NULL, 'x', 1, NULL FROM reviews WHERE answer IS NULL", "undecided"},
	"approval replaced":          {"INSERT OR REPLACE INTO approvals SELECT id, session, round_id, exchange, 'OPEN', 1, 2, NULL, 1 FROM approvals", "never replaced"},
	"approval opened again":      {"UPDATE approvals SET state = 'OPEN', closed_at = NULL WHERE state = 'DECIDED'", "closes once"},
	"approval that lasts longer": {"UPDATE approvals SET expires_at = expires_at + 1 WHERE state = 'OPEN'", "closes once"},
	"rule widened":               {"UPDATE rules SET scope = '{}'", "never changes"},
	"rule replaced":              {"INSERT OR REPLACE INTO rules SELECT id, workspace_id, session, 'FORBID', tool, scope, author, from_call, 1, NULL, NULL, NULL FROM rules", "never replaced"},
	"rule of another call":       {"UPDATE rules SET from_call = NULL WHERE revoked_at IS NULL", "never changes"},
	"rule that lasts longer":     {"UPDATE rules SET expires_at = 1 WHERE revoked_at IS NULL", "never changes"},
	"rule revoked by nobody":     {"UPDATE rules SET revoked_at = 1 WHERE revoked_at IS NULL", "CHECK"},
	"revocation taken back":      {"UPDATE rules SET revoked_at = NULL, revoked_by = NULL WHERE revoked_at IS NOT NULL", "never changes"},
	"rule that comes revoked":    {"INSERT INTO rules SELECT randomblob(16), workspace_id, session, verdict, tool, scope, author, from_call, 1, NULL, 1, 'x' FROM rules", "comes once"},
	"approval asked elsewhere":   {"UPDATE approvals SET seq = seq + 1 WHERE state = 'OPEN'", "closes once"},
	"other reasons shown":        {"UPDATE reviews SET grounds = '[]' WHERE answer IS NULL", "on what was shown"},
	"one answer that expires":    {"UPDATE reviews SET answer = 'allow', decided_by = 'x', decided_at = 1, expires_at = 2 WHERE answer IS NULL", "CHECK"},
	"unknown verdict of a rule":  {"INSERT INTO rules SELECT randomblob(16), workspace_id, session, 'MAYBE', tool, scope, author, from_call, 1, NULL, NULL, NULL FROM rules", "CHECK"},

	// A settled call keeps its one result; an UNKNOWN one ends only by evidence (invariants 4 and
	// 5).
	"second result":                         {"UPDATE calls SET result = 'another' WHERE state = 'SUCCEEDED'", "exactly one result"},
	"UNKNOWN without evidence":              {"UPDATE calls SET state = 'FAILED' WHERE state = 'UNKNOWN'", "exactly one result"},
	"UNKNOWN back to the beginning":         {"UPDATE calls SET state = 'PROPOSED', settled_at = NULL WHERE state = 'UNKNOWN'", "exactly one result"},
	"settled call that took longer":         {"UPDATE calls SET duration_us = 1 WHERE state = 'SUCCEEDED'", "exactly one result"},
	"UNKNOWN resolved with a result":        {"UPDATE calls SET state = 'SUCCEEDED', resolved_at = 1, resolved_as = 'happened', result = 'x' WHERE state = 'UNKNOWN'", "changes nothing else"},
	"UNKNOWN resolved without its error":    {"UPDATE calls SET state = 'SUCCEEDED', resolved_at = 1, resolved_as = 'happened', error = '{}' WHERE state = 'UNKNOWN'", "changes nothing else"},
	"UNKNOWN settled at another time":       {"UPDATE calls SET state = 'SUCCEEDED', resolved_at = 1, resolved_as = 'happened', settled_at = 1 WHERE state = 'UNKNOWN'", "changes nothing else"},
	"UNKNOWN resolved against the evidence": {"UPDATE calls SET state = 'SUCCEEDED', resolved_at = 1, resolved_as = 'did_not_happen' WHERE state = 'UNKNOWN'", "changes nothing else"},
	"resolved before it is UNKNOWN":         {"UPDATE calls SET resolved_at = 1 WHERE state = 'STARTED'", "only an UNKNOWN"},

	// No step of a call is left out (decision 3): no effect without an intent that was stored
	// before (invariant 2).
	"effect with a forged start":           {"UPDATE calls SET state = 'SUCCEEDED', started_at = 1, settled_at = 1, result = '' WHERE kind = 'action' AND state = 'PROPOSED'", "exactly one result"},
	"unknown with a forged start":          {"UPDATE calls SET state = 'UNKNOWN', started_at = 1, settled_at = 1, result = '' WHERE kind = 'action' AND state = 'PROPOSED'", "exactly one result"},
	"approved effect with a forged start":  {"UPDATE calls SET state = 'SUCCEEDED', started_at = 1, settled_at = 1, result = '' WHERE state = 'APPROVED'", "exactly one result"},
	"approved unknown with a forged start": {"UPDATE calls SET state = 'UNKNOWN', started_at = 1, settled_at = 1, result = '' WHERE state = 'APPROVED'", "exactly one result"},
	"approval forgotten":                   {"UPDATE calls SET state = 'PROPOSED' WHERE state = 'APPROVED'", "exactly one result"},
	"start at another time":                {"UPDATE calls SET started_at = started_at + 1 WHERE state = 'STARTED'", "never changes"},
	"start taken back":                     {"UPDATE calls SET started_at = NULL WHERE state = 'STARTED'", "never changes"},
	"start moved by the result":            {"UPDATE calls SET state = 'SUCCEEDED', started_at = 1, settled_at = 2, result = '' WHERE state = 'STARTED'", "never changes"},
	"action that comes SUCCEEDED":          {newCall + "randomblob(16), session, round_id, exchange, 9, randomblob(16), origin, tool, 'action', 'once', signature, '{}', 'SUCCEEDED', 1, 1, '', 1 FROM calls LIMIT 1", "without the result of a run"},
	"action that comes UNKNOWN":            {newCall + "randomblob(16), session, round_id, exchange, 9, randomblob(16), origin, tool, 'action', 'once', signature, '{}', 'UNKNOWN', 1, 1, '', 1 FROM calls LIMIT 1", "without the result of a run"},
	"call that comes APPROVED":             {newCall + "randomblob(16), session, round_id, exchange, 9, randomblob(16), origin, tool, 'action', 'once', signature, '{}', 'APPROVED', NULL, NULL, NULL, 1 FROM calls LIMIT 1", "without the result of a run"},

	// Nothing is replaced: OR REPLACE deletes without a delete trigger.
	"log row replaced by number":            {"INSERT OR REPLACE INTO events SELECT n, chain, seq, 'forged', at, body, mac FROM events WHERE n = 2", "comes once"},
	"log row replaced by place":             {"INSERT OR REPLACE INTO events SELECT 999, chain, seq, 'forged', at, body, mac FROM events WHERE n = 2", "comes once"},
	"newest log row replaced by number":     {"INSERT OR REPLACE INTO events SELECT n, chain, seq + 1, 'forged', at, body, mac FROM events ORDER BY n DESC LIMIT 1", "comes once"},
	"newest log row replaced by place":      {"INSERT OR REPLACE INTO events SELECT n + 1, chain, seq, 'forged', at, body, mac FROM events ORDER BY n DESC LIMIT 1", "comes once"},
	"log row beyond a gap":                  {"INSERT INTO events SELECT 999, n, head + 2, 'forged', 1, mac, mac FROM chains WHERE n = 1", "no gap"},
	"body replaced":                         {"INSERT OR REPLACE INTO event_bodies (n, body) VALUES (2, 'forged')", "comes once"},
	"newest body replaced":                  {"INSERT OR REPLACE INTO event_bodies (n, body) SELECT max(n), 'forged' FROM event_bodies", "comes once"},
	"chain replaced by number":              {"INSERT OR REPLACE INTO chains (n, kind, owner_id, mac, head_at) VALUES (1, 'session', randomblob(16), zeroblob(32), 1)", "comes once"},
	"chain replaced by owner":               {"INSERT OR REPLACE INTO chains (kind, owner_id, mac, head_at) SELECT kind, owner_id, mac, head_at FROM chains LIMIT 1", "comes once"},
	"chain that comes with a head":          {"INSERT INTO chains (kind, owner_id, head, mac, head_at) VALUES ('session', randomblob(16), 7, zeroblob(32), 1)", "comes once"},
	"session replaced by number":            {"INSERT OR REPLACE INTO sessions (n, id, workspace_id, user_id, agent, type, provider, model, created_at) SELECT n, randomblob(16), workspace_id, user_id, agent, 'CHAT', provider, model, 1 FROM sessions LIMIT 1", "comes once"},
	"session replaced by id":                {"INSERT OR REPLACE INTO sessions (n, id, workspace_id, user_id, agent, type, provider, model, created_at) SELECT (SELECT max(n) - 2 FROM chains), id, workspace_id, user_id, agent, 'CHAT', provider, model, 1 FROM sessions LIMIT 1", "comes once"},
	"session replaced by its parent's call": {"INSERT OR REPLACE INTO sessions (n, id, workspace_id, user_id, agent, type, provider, model, parent_call, created_at) SELECT (SELECT max(n) - 2 FROM chains), randomblob(16), workspace_id, user_id, agent, type, provider, model, parent_call, 1 FROM sessions WHERE type = 'SUBAGENT'", "comes once"},
	"round replaced by id":                  {"INSERT OR REPLACE INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, provider, model, started_at) SELECT id, session, 99, reason, 'RUNNING', 'MODEL', 1, limits, 1, '', '', '', '', 1 FROM rounds WHERE state <> 'ENDED' LIMIT 1", "never replaced"},
	"ended round replaced by id":            {"INSERT OR REPLACE INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, provider, model, started_at) SELECT id, session, 99, reason, 'RUNNING', 'MODEL', 1, limits, 1, '', '', '', '', 1 FROM rounds WHERE state = 'ENDED'", "never replaced"},
	"round replaced by number":              {"INSERT OR REPLACE INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, provider, model, started_at, ended_at, end_reason) SELECT randomblob(16), session, number, reason, 'ENDED', 'END', 1, limits, 1, '', '', '', '', 1, 1, 'LIMIT' FROM rounds WHERE state <> 'ENDED' LIMIT 1", "never replaced"},
	"open round replaced by another":        {"INSERT OR REPLACE INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, provider, model, started_at) SELECT randomblob(16), session, number + 1, reason, 'RUNNING', 'MODEL', 1, limits, 1, '', '', '', '', 1 FROM rounds WHERE state <> 'ENDED' LIMIT 1", "never replaced"},
	"model call replaced by number":         {"INSERT OR REPLACE INTO exchanges (round_id, number, reason, state, provider, model, opened_at) SELECT round_id, number, reason, 'OPEN', provider, model, 1 FROM exchanges WHERE state = 'REPLIED' LIMIT 1", "never replaced"},
	"model call replaced by rowid":          {"INSERT OR REPLACE INTO exchanges (rowid, round_id, number, reason, state, provider, model, opened_at) SELECT rowid, round_id, number + 9, reason, 'OPEN', provider, model, 1 FROM exchanges WHERE state = 'REPLIED' LIMIT 1", "never replaced"},
	"answered step made a summary":          {"UPDATE exchanges SET purpose = 'summary' WHERE state = 'REPLIED' AND purpose = 'step'", "never changes"},
	"summary made a step":                   {"UPDATE exchanges SET purpose = 'step' WHERE purpose = 'summary'", "never changes"},
	"summary with its answer":               {"UPDATE exchanges SET purpose = 'summary', state = 'FAILED' WHERE state = 'OPEN' AND purpose = 'step'", "never changes"},
	"model call moved onto another":         {"UPDATE OR REPLACE exchanges SET _rowid_ = (SELECT min(rowid) FROM exchanges) WHERE state = 'OPEN'", "never changes"},
	"attempt replaced":                      {"INSERT OR REPLACE INTO attempts SELECT * FROM attempts LIMIT 1", "never replaced"},
	"message replaced by id":                {"INSERT OR REPLACE INTO messages (id, session, seq, sender, variant, author_kind, author_id, client_id) SELECT id, session, 99, 'USER', 'text', 'user', 'x', NULL FROM messages WHERE calls = 0 LIMIT 1", "never replaced"},
	"message replaced by place":             {"INSERT OR REPLACE INTO messages (id, session, seq, sender, variant, author_kind, author_id, client_id) SELECT randomblob(16), session, seq, 'USER', 'text', 'user', 'x', NULL FROM messages WHERE seq IS NOT NULL LIMIT 1", "never replaced"},
	"message replaced by client id":         {"INSERT OR REPLACE INTO messages (id, session, seq, sender, variant, author_kind, author_id, client_id) SELECT randomblob(16), session, 99, 'USER', 'text', 'user', 'x', client_id FROM messages WHERE client_id IS NOT NULL LIMIT 1", "never replaced"},
	"message admitted onto another":         {"UPDATE OR REPLACE messages SET seq = 2 WHERE seq IS NULL", "never changes"},
	"attachment replaced":                   {"INSERT OR REPLACE INTO attachments SELECT message_id, ordinal, blob, 'text/html', name, size FROM attachments", "never replaced"},
	"call replaced by id":                   {newCall + "id, session, round_id, exchange, 9, randomblob(16), origin, tool, 'action', 'once', signature, '{}', 'PROPOSED', NULL, NULL, NULL, 1 FROM calls WHERE state = 'STARTED'", "never replaced"},
	"call replaced by place":                {newCall + "randomblob(16), session, round_id, exchange, ordinal, message_id, origin, tool, 'action', 'once', signature, '{}', 'PROPOSED', NULL, NULL, NULL, 1 FROM calls WHERE state = 'UNKNOWN'", "never replaced"},
	"call added to a stored message":        {newCall + "randomblob(16), session, round_id, exchange, 9, message_id, origin, tool, 'action', 'once', signature, '{}', 'PROPOSED', NULL, NULL, NULL, 1 FROM calls WHERE state = 'UNKNOWN'", "with its message"},
	"wait replaced":                         {"INSERT OR REPLACE INTO waits SELECT * FROM waits", "never replaced"},

	// What has ended stays as it is, and what was spent is spent.
	"answered model call reopened":             {"UPDATE exchanges SET state = 'OPEN', reply_id = NULL WHERE state = 'REPLIED'", "one end"},
	"answered model call with another reply":   {"UPDATE exchanges SET reply_id = randomblob(16) WHERE state = 'REPLIED'", "one end"},
	"answered model call with another request": {"UPDATE exchanges SET request = randomblob(32) WHERE state = 'REPLIED'", "one end"},
	"answered model call with other tokens":    {"UPDATE exchanges SET output_tokens = 0 WHERE state = 'REPLIED'", "one end"},
	"answered model call with another price":   {"UPDATE exchanges SET cost_microusd = 0 WHERE state = 'REPLIED'", "one end"},
	"failed model call reopened":               {"UPDATE exchanges SET state = 'OPEN' WHERE state = 'FAILED'", "one end"},
	"attempts fewer":                           {"UPDATE exchanges SET attempt = 0 WHERE state = 'OPEN'", "only rise"},
	"attempt changed":                          {"UPDATE attempts SET cost_microusd = 0", "never change"},
	"attachment changed":                       {"UPDATE attachments SET name = 'x'", "never changes"},
	"tokens fewer":                             {"UPDATE rounds SET tokens = -1 WHERE state <> 'ENDED'", "only rise"},
	"a session's spent less":                   {"UPDATE spending SET spent_microusd = spent_microusd - 1", "only rises"},
	"what is due less":                         {"UPDATE spending SET due_microusd = -1", "only rises"},
	"spending deleted":                         {"DELETE FROM spending", "never deleted"},
	"spent less":                               {"UPDATE rounds SET spent_microusd = spent_microusd - 1 WHERE spent_microusd > 0", "only rise"},
	"idle with an open round":                  {"UPDATE sessions SET state = 'IDLE' WHERE state = 'ACTIVE'", "is open"},
	"closed with an open round":                {"UPDATE sessions SET state = 'CLOSED', closed_at = 1 WHERE state = 'ACTIVE'", "is open"},
	"automation reopened":                      {"UPDATE sessions SET state = 'IDLE', closed_at = NULL, end_reason = NULL WHERE type = 'AUTOMATION'", "only if it is a CHAT"},
	"mac without a row":                        {"UPDATE chains SET mac = zeroblob(32) WHERE head > 0", "does not fit"},
	"head with another mac":                    {"UPDATE chains SET head = head + 1, mac = zeroblob(32) WHERE head > 0", "gap"},
	"audit message put into the prompt":        {"UPDATE messages SET excluded = 0 WHERE system_type = 'NETWORK_ERROR'", "CHECK"},
}

// gone are the tables whose rows stay for ever (decision 15).
var gone = []string{"calls", "messages", "exchanges", "attempts", "rounds", "waits", "sessions", "chains", "attachments", "events", "approvals", "reviews", "rules", "undos", "undo_files"}

// fixed are the columns that never change, and another value for each.
var fixed = map[string]map[string]string{
	"chains": {
		"n": "4711", "oid": "4711", "kind": "'workspace'", "owner_id": "randomblob(16)",
	},
	"sessions": {
		"n": "4711", "rowid": "4711", "id": "randomblob(16)", "workspace_id": "randomblob(16)", "user_id": "randomblob(16)",
		"type": "'SEED'", "created_at": "4711", "parent_call": "randomblob(16)", "forked_from": "randomblob(16)",
		"forked_at_seq": "4711", "token_id": "randomblob(16)",
	},
	"rounds": {
		"id": "randomblob(16)", "session": "4711", "number": "4711", "reason": "'TASK_CALLBACK'", "limits": "'{}'",
		"trace_id": "'forged'", "agent": "'forged'", "agent_pin": "randomblob(32)", "policy": "'[]'",
		"trigger_message_id": "randomblob(16)", "started_at": "4711",
	},
	"exchanges": {
		"round_id": "randomblob(16)", "number": "4711", "purpose": "'check'", "reason": "'forged'",
	},
	"messages": {
		"id": "randomblob(16)", "session": "4711", "seq": "4711", "pending_seq": "4711", "sender": "'AI'", "variant": "'ai'",
		"system_type": "'UNDONE'", "author_kind": "'task'", "author_id": "'forged'", "client_id": "'forged'",
		"round_id": "randomblob(16)", "exchange": "4711", "calls": "4711",
	},
	"calls": {
		"id": "randomblob(16)", "session": "4711", "round_id": "randomblob(16)", "exchange": "4711", "message_id": "randomblob(16)",
		"ordinal": "4711", "origin": "'API'", "tool": "'forged'", "kind": "'query'", "signature": "randomblob(32)",
		"definition": "randomblob(32)", "arguments": "'[]'", "ask": "1", "proposed_at": "4711", "provider_call_id": "'forged'",
		"class": "'keyed'",
	},
	"waits": {
		"id": "randomblob(16)", "session": "4711", "round_id": "randomblob(16)", "kind": "'CHILD'", "object_id": "randomblob(16)",
		"owner_id": "randomblob(16)", "created_at": "4711",
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
	maps.Copy(refusals, undoRefusals)
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
	for _, table := range append([]string{"event_bodies", "users", "blobs"}, gone...) {
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

// TestWaitIsResolvedOnce resolves a wait twice (spec 4.4).
func TestWaitIsResolvedOnce(t *testing.T) {
	dir := t.TempDir()
	full(t, dir)
	db := raw(t, dir)
	if _, err := db.ExecContext(t.Context(), "UPDATE waits SET state = 'RESOLVED', resolved_at = 1 WHERE state = 'OPEN'"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE waits SET state = 'EXPIRED'"); err == nil || !strings.Contains(err.Error(), "resolved once") {
		t.Errorf("got %v", err)
	}
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
