package sqlite

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Verify walks a session's log and checks that it is gapless, that each row follows from the one before under the audit key,
// that each body has its hash, and that the call rows are those that the log speaks of (decision 15). It returns CodeChainBroken
// naming the first altered row. Erased bodies are counted, they are no fault.
func (s *Store) Verify(ctx context.Context, session regie.ID) (store.VerifyReport, error) {
	report := store.VerifyReport{SessionID: session}
	var recorded sql.NullString
	if err := s.read.QueryRowContext(ctx, "SELECT "+recordedHash).Scan(&recorded); err != nil {
		return report, explain(err, FileName)
	}
	key, err := rightAuditKey(s.dir, recorded.String)
	if err != nil {
		return report, err
	}
	err = s.snapshot(ctx, func(q querier) error { return verifyChain(ctx, q, key, &report) })
	return report, explain(err, FileName)
}

func verifyChain(ctx context.Context, q querier, key []byte, report *store.VerifyReport) error {
	var chain, headSeq int64
	var headMAC []byte
	err := q.QueryRowContext(ctx, "SELECT n, head, mac FROM chains WHERE owner_id = ?", report.SessionID).Scan(&chain, &headSeq, &headMAC)
	if errors.Is(err, sql.ErrNoRows) {
		return notFound("session", report.SessionID)
	}
	if err != nil {
		return err
	}
	w := &writer{mac: hmac.New(sha256.New, key)} // only for link and genesis
	mac := w.genesis(report.SessionID)
	rows, err := q.QueryContext(ctx, `SELECT e.seq, e.type, e.at, e.body, e.mac, b.body FROM events e
		LEFT JOIN event_bodies b ON b.n = e.n WHERE e.chain = ? ORDER BY e.seq`, chain)
	if err != nil {
		return err
	}
	defer rows.Close()
	said := map[regie.ID]*spoken{}
	for rows.Next() {
		var seq, at int64
		var kind string
		var hash regie.Hash
		var stored []byte
		var body sql.NullString
		if err := rows.Scan(&seq, &kind, &at, &hash, &stored, &body); err != nil {
			return err
		}
		if seq > headSeq {
			return broken("row %d lies beyond the head of the log, which is %d: nobody has acknowledged it", seq, headSeq)
		}
		if seq != report.Events+1 {
			return broken("row %d is missing", report.Events+1)
		}
		if mac = w.link(mac, seq, fromMicros(at), regie.EventType(kind), hash); !hmac.Equal(mac[:], stored) {
			return broken("row %d was altered, or the audit key is another one", seq)
		}
		if body.Valid && regie.HashOf([]byte(body.String)) != hash {
			return broken("the body of row %d was altered", seq)
		}
		if !body.Valid {
			report.Erased++
		} else if err := remember(said, regie.EventType(kind), []byte(body.String)); err != nil {
			return broken("the body of row %d cannot be read", seq)
		}
		report.Events = seq
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if report.Events != headSeq || !hmac.Equal(mac[:], headMAC) {
		return broken("the log ends at row %d, its head says %d", report.Events, headSeq)
	}
	report.Head = hex.EncodeToString(mac[:])
	return verifyCalls(ctx, q, report, said)
}

func broken(format string, args ...any) error {
	return regie.Errorf(regie.CodeChainBroken, "the audit chain is broken: %v", regie.Errorf(regie.CodeChainBroken, format, args...))
}

// spoken is what the log says of a call.
type spoken struct {
	arguments regie.Hash
	state     regie.CallState
	code      regie.NotRunCode
	result    regie.Hash
	executed  regie.Hash // what a person's edit made of the arguments
	intent    regie.Hash
}

// remember notes what an event says of calls: what was proposed, and how it was settled.
func remember(said map[regie.ID]*spoken, kind regie.EventType, body []byte) error {
	switch kind {
	case regie.EventMessage:
		var m regie.Message
		if err := json.Unmarshal(body, &m); err != nil {
			return err
		}
		if m.AI == nil {
			return nil
		}
		for _, part := range m.AI.Parts {
			if part.Type == regie.PartCall {
				said[part.CallID] = &spoken{arguments: part.Arguments, state: regie.CallProposed}
			}
		}
	case regie.EventToolCall, regie.EventToolResult:
		var event callEvent
		if err := json.Unmarshal(body, &event); err != nil {
			return err
		}
		call := said[event.CallID]
		if call == nil { // its message was erased
			call = &spoken{}
			said[event.CallID] = call
		}
		call.state, call.code, call.result = event.State, event.Code, event.Result
		if !event.Executed.IsZero() {
			call.executed = event.Executed
		}
		if !event.Intent.IsZero() {
			call.intent = event.Intent
		}
	}
	return nil
}

func verifyCalls(ctx context.Context, q querier, report *store.VerifyReport, said map[regie.ID]*spoken) error {
	calls, err := readCalls(ctx, q, callsOfThread+"WHERE s.id = ?", report.SessionID)
	if err != nil {
		return err
	}
	for i := range calls {
		c := &calls[i]
		log, ok := said[c.ID]
		if !ok && report.Erased > 0 {
			continue // its events may be among the erased ones
		}
		if !ok {
			return broken("the log knows no call %s", c.ID)
		}
		delete(said, c.ID)
		switch {
		case !log.arguments.IsZero() && regie.HashOf([]byte(c.Arguments)) != log.arguments:
			return broken("the arguments of call %s were altered", c.ID)
		case hashOrZero(c.Executed) != log.executed && report.Erased == 0:
			return broken("what call %s ran with was altered", c.ID)
		case hashOrZero(c.Intent) != log.intent && report.Erased == 0:
			return broken("the evidence of call %s was altered", c.ID)
		case c.State != log.state || c.NotRun != log.code:
			return broken("call %s is %s, the log says %s", c.ID, c.State, log.state)
		case !log.result.IsZero() && regie.HashOf([]byte(c.Result)) != log.result:
			return broken("the result of call %s was altered", c.ID)
		}
	}
	for id := range said {
		return broken("call %s is missing", id)
	}
	return nil
}
