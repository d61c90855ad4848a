package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// Every transition begins by locking the row of its log in chains, before it reads anything of the
// session. So two transitions of one session never run at once, and each statement after the lock
// sees every earlier commit (READ COMMITTED takes a snapshot for each statement). SERIALIZABLE
// would find no conflict. Sessions' logs are locked before their workspace's, several in the order
// of their numbers. If transitions deadlock all the same, PostgreSQL ends one and it runs again.

// logsOf are the conditions on chains c for each way to name logs.
var logsOf = map[sqlite.Holding]string{
	sqlite.ByChain:    "c.n = $1::bigint",
	sqlite.ByOwner:    "c.owner_id = $1",
	sqlite.ByRound:    "c.n = (SELECT session FROM rounds WHERE id = $1)",
	sqlite.ByApproval: "c.n = (SELECT session FROM approvals WHERE id = $1)",
	sqlite.ByWait:     "c.n = (SELECT session FROM waits WHERE id = $1)",
	sqlite.ByCall:     "c.n = (SELECT session FROM calls WHERE id = $1)",
	sqlite.ByUndo:     "c.n = (SELECT session FROM undos WHERE id = $1)",
	sqlite.ByRule:     "c.owner_id = (SELECT workspace_id FROM rules WHERE id = $1)",
	sqlite.ByToken:    "c.owner_id = (SELECT user_id FROM tokens WHERE id = $1)",
}

const (
	// A transition that changes a session's row has locked its log's row. The log's row is enough,
	// because every transition writes it.
	lockLogs = "SELECT c.n, c.head, c.mac FROM chains c WHERE %s ORDER BY c.n FOR NO KEY UPDATE OF c"
)

// Hold implements sqlite.Statements.
func (s *statements) Hold(by sqlite.Holding, key any) {
	s.add(queued{query: fmt.Sprintf(lockLogs, logsOf[by]), read: func(row []driver.Value) error {
		chain, seq, mac, err := held(row)
		if _, again := s.held[chain]; !again && err == nil {
			s.held[chain] = log{seq: seq, mac: mac}
		}
		return err
	}}, []any{key})
}

// lockSlots locks a user's slots in a workspace, which have no row of their own. The transition
// holds a log before it.
const lockSlots = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || $1::uuid::text || ' ' || $2::uuid::text, 0))"

// HoldSlots implements sqlite.Statements.
func (s *statements) HoldSlots(workspace, user regie.ID) {
	s.add(queued{query: lockSlots}, []any{workspace, user})
}

// Hurry implements sqlite.Statements.
func (s *statements) Hurry() {
	s.hurries = true
	s.add(queued{query: "SET LOCAL lock_timeout = '1s'"}, nil)
}

func held(row []driver.Value) (chain, seq int64, mac []byte, err error) {
	chain, first := row[0].(int64)
	seq, second := row[1].(int64)
	mac, third := row[2].([]byte)
	if !first || !second || !third {
		err = regie.Errorf(regie.CodeCorrupt, "the head of a log cannot be read")
	}
	return chain, seq, mac, err
}

// Held implements sqlite.Statements.
func (s *statements) Held(chain int64) (seq int64, mac []byte, err error) {
	l, ok := s.held[chain]
	if !ok { // its statement may still be queued
		if err := s.flush(); err != nil {
			return 0, nil, err
		}
		l, ok = s.held[chain]
	}
	if !ok {
		return 0, nil, sqlite.ErrNotHeld
	}
	return l.seq, l.mac, nil
}

// stalled selects this user's connections that hold logs and have sent nothing for as long as the
// server allows an idle transaction. Their process was stopped, or cut off, between the statements
// of one batch, where the server waits for it without limit.
const stalled = `SELECT count(*) FILTER (WHERE pg_terminate_backend(a.pid)) FROM pg_stat_activity a
	WHERE a.datname = current_database() AND a.usename = current_user AND a.pid <> pg_backend_pid()
		AND a.state = 'active' AND a.wait_event_type = 'Client' AND a.state_change < clock_timestamp() - interval '4 seconds'
		AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.relation = 'chains'::regclass AND l.mode = 'RowShareLock' AND l.granted)`

// endStalled ends them, and reports whether it ended any: waiting for their locks is in vain. Their
// transactions are rolled back, and a process that continues runs its transition again.
func (b *backend) endStalled(ctx context.Context) bool {
	var ended int
	return b.pool.QueryRow(ctx, stalled).Scan(&ended) == nil && ended > 0
}
