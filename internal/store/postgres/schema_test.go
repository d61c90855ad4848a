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
	"log row changed":                {"UPDATE events SET at = 1", "never change"},
	"log row beyond a gap":           {"INSERT INTO events SELECT (n << 32) | (head + 2), n, head + 2, 'forged', 1, mac, mac FROM chains WHERE head > 0 LIMIT 1", "no gap"},
	"log row under another number":   {"INSERT INTO events SELECT 1, n, head + 1, 'forged', 1, mac, mac FROM chains WHERE head > 0 LIMIT 1", "events_check"},
	"log row beyond the head":        {"INSERT INTO events SELECT (n << 32) | (head + 1), n, head + 1, 'forged', 1, mac, mac FROM chains WHERE head > 0 LIMIT 1; SET CONSTRAINTS ALL IMMEDIATE", "beyond the head"},
	"body without a row":             {"INSERT INTO event_bodies VALUES (1, 'x')", "with its log row"},
	"body erased without a word":     {"DELETE FROM event_bodies", "with a row in its log"},
	"body changed":                   {"UPDATE event_bodies SET body = 'x'", "never changed"},
	"head over a gap":                {"UPDATE chains SET head = head + 1 WHERE head > 0", "gap"},
	"head back":                      {"UPDATE chains SET head = head - 1 WHERE head > 0", "gap"},
	"mac without a row":              {"UPDATE chains SET mac = decode(repeat('00', 32), 'hex') WHERE head > 0", "does not fit"},
	"chain of another":               {"UPDATE chains SET owner_id = gen_random_uuid()", "never changes"},
	"chain that comes with a head":   {"INSERT INTO chains SELECT 4711, 'session', gen_random_uuid(), 7, mac, 1 FROM chains LIMIT 1", "empty"},
	"second open round":              {"INSERT INTO rounds (id, session, number, reason, state, phase, exchange, limits, epoch, trace_id, agent, provider, model, started_at) SELECT gen_random_uuid(), session, 2, reason, 'WAITING', phase, 1, limits, 1, '', '', '', '', 1 FROM rounds WHERE state <> 'ENDED'", "rounds_one_open"},
	"round ended without a reason":   {"UPDATE rounds SET state = 'ENDED', phase = 'END', ended_at = 1 WHERE state <> 'ENDED'", "check"},
	"unknown round state":            {"UPDATE rounds SET state = 'SLEEPING' WHERE state <> 'ENDED'", "check"},
	"epoch back":                     {"UPDATE rounds SET epoch = 0", "only rise"},
	"session epoch back":             {"UPDATE sessions SET epoch = 0 WHERE epoch > 0", "only rises"},
	"tokens fewer":                   {"UPDATE rounds SET tokens = -1 WHERE state <> 'ENDED'", "only rise"},
	"end reason on an open session":  {"UPDATE sessions SET end_reason = 'COMPLETED' WHERE state <> 'CLOSED'", "check"},
	"idle with an open round":        {"UPDATE sessions SET state = 'IDLE' WHERE state = 'ACTIVE'", "is open"},
	"removed with an open round":     {"UPDATE sessions SET deleted_at = 1 WHERE state = 'ACTIVE'", "no round open"},
	"session of another":             {"UPDATE sessions SET user_id = gen_random_uuid()", "never changes"},
	"session of another token":       {"UPDATE sessions SET token_id = gen_random_uuid()", "never changes"},
	"call without its code":          {"UPDATE calls SET state = 'NOT_RUN', settled_at = 1, error = '{}' WHERE state = 'PROPOSED'", "check"},
	"settled without a result":       {"UPDATE calls SET state = 'FAILED', settled_at = 1 WHERE state = 'PROPOSED'", "check"},
	"effect without an intent":       {"UPDATE calls SET state = 'SUCCEEDED', started_at = 1, settled_at = 1, result = '' WHERE kind = 'action' AND state = 'AWAITING_APPROVAL'", "exactly one result"},
	"approved effect, forged start":  {"UPDATE calls SET state = 'SUCCEEDED', started_at = 1, settled_at = 1, result = '' WHERE state = 'APPROVED'", "exactly one result"},
	"second result":                  {"UPDATE calls SET result = 'another' WHERE state = 'SUCCEEDED'", "exactly one result"},
	"UNKNOWN without evidence":       {"UPDATE calls SET state = 'FAILED' WHERE state = 'UNKNOWN'", "exactly one result"},
	"UNKNOWN resolved with a result": {"UPDATE calls SET state = 'SUCCEEDED', resolved_at = 1, resolved_as = 'happened', result = 'x' WHERE state = 'UNKNOWN'", "changes nothing else"},
	"UNKNOWN against the evidence":   {"UPDATE calls SET state = 'SUCCEEDED', resolved_at = 1, resolved_as = 'did_not_happen' WHERE state = 'UNKNOWN'", "changes nothing else"},
	"resolved before it is UNKNOWN":  {"UPDATE calls SET resolved_at = 1 WHERE state = 'STARTED'", "only an UNKNOWN"},
	"start at another time":          {"UPDATE calls SET started_at = started_at + 1 WHERE state = 'STARTED'", "never changes"},
	"arguments changed":              {"UPDATE calls SET arguments = '{}'", "never changes"},
	"arguments taken away":           {"UPDATE calls SET arguments = '' WHERE state = 'STARTED'", "never changes"},
	"another tool":                   {"UPDATE calls SET tool = 'forged'", "never changes"},
	"approval out of nowhere":        {"UPDATE calls SET state = 'APPROVED' WHERE state = 'AWAITING_APPROVAL'", "no approval"},
	"proposed call approved":         {"UPDATE calls SET state = 'APPROVED' WHERE state = 'PROPOSED'", "no approval"},
	"action that comes SUCCEEDED":    {"INSERT INTO calls (id, session, round_id, exchange, ordinal, message_id, origin, tool, kind, class, signature, arguments, state, started_at, settled_at, result, proposed_at) SELECT gen_random_uuid(), session, round_id, exchange, 9, gen_random_uuid(), origin, tool, 'action', 'once', signature, '{}', 'SUCCEEDED', 1, 1, '', 1 FROM calls LIMIT 1", "without the result of a run"},
	"call added to a stored message": {"INSERT INTO calls (id, session, round_id, exchange, ordinal, message_id, origin, tool, kind, class, signature, arguments, state, proposed_at) SELECT gen_random_uuid(), session, round_id, exchange, 9, message_id, origin, tool, 'action', 'once', signature, '{}', 'PROPOSED', 1 FROM calls LIMIT 1", "with its message"},
	"message with missing calls":     {"INSERT INTO messages (id, session, seq, sender, variant, author_kind, author_id, calls) SELECT gen_random_uuid(), session, 98, 'AI', 'ai', 'agent', 'x', 1 FROM messages LIMIT 1", "do not agree"},
	"message of another sender":      {"UPDATE messages SET sender = 'SYSTEM'", "never changes"},
	"message at another place":       {"UPDATE messages SET seq = 4711 WHERE seq = 2", "never changes its place"},
	"audit message in the prompt":    {"UPDATE messages SET excluded = 0 WHERE system_type = 'NETWORK_ERROR'", "check"},
	"superseded without an undo":     {"UPDATE messages SET superseded = 1", "by an undo"},
	"wait without a deadline":        {"INSERT INTO waits (id, session, round_id, kind, owner_id, state, created_at) SELECT gen_random_uuid(), session, id, 'APPROVAL', gen_random_uuid(), 'OPEN', 1 FROM rounds LIMIT 1", "check"},
	"wait for another":               {"UPDATE waits SET object_id = gen_random_uuid()", "never changes"},
	"decision changed":               {"UPDATE reviews SET answer = 'deny' WHERE answer IS NOT NULL", "decided once"},
	"decision by nobody":             {"UPDATE reviews SET answer = 'allow', decided_at = 1 WHERE answer IS NULL", "check"},
	"other arguments shown":          {"UPDATE reviews SET arguments = '[]' WHERE answer IS NULL", "on what was shown"},
	"approval opened again":          {"UPDATE approvals SET state = 'OPEN', closed_at = NULL WHERE state = 'DECIDED'", "closes once"},
	"approval that lasts longer":     {"UPDATE approvals SET expires_at = expires_at + 1 WHERE state = 'OPEN'", "closes once"},
	"rule widened":                   {"UPDATE rules SET scope = '{}'", "never changes"},
	"rule revoked by nobody":         {"UPDATE rules SET revoked_at = 1 WHERE revoked_at IS NULL", "check"},
	"revocation taken back":          {"UPDATE rules SET revoked_at = NULL, revoked_by = NULL WHERE revoked_at IS NOT NULL", "never changes"},
	"answered model call reopened":   {"UPDATE exchanges SET state = 'OPEN', reply_id = NULL WHERE state = 'REPLIED'", "one end"},
	"failed model call reopened":     {"UPDATE exchanges SET state = 'OPEN' WHERE state = 'FAILED'", "one end"},
	"summary back to a step":         {"UPDATE exchanges SET purpose = 'step' WHERE purpose = 'summary'", "what a model call is for"},
	"a session's spent less":         {"UPDATE spending SET spent_microusd = spent_microusd - 1", "only rises"},
	"spending deleted":               {"DELETE FROM spending", "never deleted"},
	"spending emptied":               {"TRUNCATE spending", "never deleted"},
	"attempt changed":                {"UPDATE attempts SET cost_microusd = 0", "never change"},
	"attachment changed":             {"UPDATE attachments SET name = 'x'", "never changes"},
	"undo while a round runs":        {"INSERT INTO undos SELECT gen_random_uuid(), r.session, s.workspace_id, r.id, NULL, 'INTENDED', 0, 0, '[]', '[]', '[]', 'x', 1, NULL, 1, NULL FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.state <> 'ENDED' LIMIT 1", "while a round"},
	"a file of the data directory":   {"UPDATE blobs SET in_file = 1", "check"},
}

// TestSchemaRefuses tries each with plain SQL: the database itself refuses it, as the store does.
func TestSchemaRefuses(t *testing.T) {
	address := storetest.Postgres(t)
	w := storetest.NewWorld(t, open(t, postgres.Config{URL: address, Dir: t.TempDir()}))
	w.Full()
	for _, table := range []string{
		"calls", "messages", "exchanges", "attempts", "rounds", "waits", "sessions", "chains", "attachments", "events", "approvals", "reviews", "rules",
	} {
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
