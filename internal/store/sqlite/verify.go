package sqlite

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Verify walks the log of a session or of a workspace and checks that it is gapless, that each row
// follows from the one before under the audit key, that each body has its hash, and that the rows
// which the log speaks of are what it says: of a session its calls, messages, approvals with every
// decision, questions, and undos with every file; of a workspace its rules (decision 15). It
// returns CodeChainBroken naming the first altered row. Erased bodies are counted, they are no
// fault.
func (s auditStore) Verify(ctx context.Context, owner regie.ID) (store.VerifyReport, error) {
	report := store.VerifyReport{OwnerID: owner}
	var recorded sql.NullString
	if err := s.read.QueryRowContext(ctx, "SELECT "+recordedHash).Scan(&recorded); err != nil {
		return report, explain(err, FileName)
	}
	key, err := s.auditKey(recorded.String)
	if err != nil {
		return report, err
	}
	err = s.once(ctx, func(ctx context.Context, q querier) error { return verifyChain(ctx, q, key, &report) })
	return report, explain(err, FileName)
}

// VerifyRules verifies the log of the workspace at root, or of all of them for "", as Verify; the
// report counts them together.
func (s auditStore) VerifyRules(ctx context.Context, root string) (store.VerifyReport, error) {
	var all store.VerifyReport
	workspaces, err := s.workspacesAt(ctx, root)
	if err != nil {
		return all, explain(err, FileName)
	}
	for _, id := range workspaces {
		report, err := s.Verify(ctx, id)
		if err != nil {
			return all, err
		}
		all.Events, all.Erased = all.Events+report.Events, all.Erased+report.Erased
		if len(workspaces) == 1 {
			all = report
		}
	}
	return all, nil
}

func (s auditStore) workspacesAt(ctx context.Context, root string) (out []regie.ID, err error) {
	return readIDs(ctx, s.read, "SELECT id FROM workspaces WHERE root = ? OR ? = '' ORDER BY id", root, root)
}

// verifyChain walks a log. A workspace has none before its first rule, a user none before the first
// token; then they have none of these either.
func verifyChain(ctx context.Context, q querier, key []byte, report *store.VerifyReport) error {
	var chain, headSeq int64
	var headMAC []byte
	var kind string
	said := newSpokenLog()
	err := q.QueryRowContext(ctx, "SELECT n, kind, head, mac FROM chains WHERE owner_id = ?",
		report.OwnerID).Scan(&chain, &kind, &headSeq, &headMAC)
	if errors.Is(err, sql.ErrNoRows) {
		var there bool
		var user bool
		if err := q.QueryRowContext(ctx,
			"SELECT EXISTS (SELECT 1 FROM workspaces WHERE id = ?1), EXISTS (SELECT 1 FROM users WHERE id = ?1)",
			report.OwnerID).
			Scan(&there, &user); err != nil {
			return err
		}
		switch {
		case user:
			return verifyTokens(ctx, q, report, said)
		case there:
			return verifyRules(ctx, q, report, said)
		default:
			return notFound("session", report.OwnerID)
		}
	}
	if err != nil {
		return err
	}
	w := &writer{mac: hmac.New(sha256.New, key)} // only for link and genesis
	mac, err := walk(ctx, q, w, chain, headSeq, report, said)
	if err != nil {
		return err
	}
	if report.Events != headSeq || !hmac.Equal(mac[:], headMAC) {
		return broken("the log ends at row %d, its head says %d", report.Events, headSeq)
	}
	report.Head = hex.EncodeToString(mac[:])
	checks := []func(context.Context, querier, *store.VerifyReport, *spokenLog) error{
		verifyFork, verifyCalls, verifyMessages, verifyApprovals, verifyReviews, verifyWaits, verifyUndos,
	}
	switch kind {
	case "workspace":
		checks = append(checks[:0], verifyRules)
	case "user":
		checks = append(checks[:0], verifyTokens)
	}
	for _, check := range checks {
		if err := check(ctx, q, report, said); err != nil {
			return err
		}
	}
	return nil
}

// walk checks the rows of a log one after another and remembers what they say.
func walk(ctx context.Context, q querier, w *writer, chain, headSeq int64, report *store.VerifyReport,
	said *spokenLog,
) (mac [32]byte, err error) {
	mac = w.genesis(report.OwnerID)
	rows, err := q.QueryContext(ctx, `SELECT e.seq, e.type, e.at, e.body, e.mac, b.body FROM events e
		LEFT JOIN event_bodies b ON b.n = e.n WHERE e.chain = ? ORDER BY e.seq`, chain)
	if err != nil {
		return mac, err
	}
	defer rows.Close()
	var gone []int64
	for rows.Next() {
		var seq, at int64
		var kind string
		var hash regie.Hash
		var stored []byte
		var body sql.NullString
		if err := rows.Scan(&seq, &kind, &at, &hash, &stored, &body); err != nil {
			return mac, err
		}
		if seq > headSeq {
			return mac, broken("row %d lies beyond the head of the log, which is %d: nobody has acknowledged it", seq,
				headSeq)
		}
		if seq != report.Events+1 {
			return mac, broken("row %d is missing", report.Events+1)
		}
		if mac = w.link(mac, seq, fromMicros(at), regie.EventType(kind), hash); !hmac.Equal(mac[:], stored) {
			return mac, broken("row %d was altered, or the audit key is another one", seq)
		}
		if body.Valid && regie.HashOf([]byte(body.String)) != hash {
			return mac, broken("the body of row %d was altered", seq)
		}
		if !body.Valid {
			report.Erased++
			gone = append(gone, seq)
		} else if err := said.remember(logRow{
			seq: seq, at: at, kind: regie.EventType(kind),
			body: []byte(body.String),
		}); err != nil {
			return mac, broken("the body of row %d cannot be read", seq)
		}
		report.Events = seq
	}
	if err := rows.Err(); err != nil {
		return mac, err
	}
	for _, seq := range gone {
		if !said.tellsErased(seq) {
			return mac, broken("the body of row %d is gone, and no row says that it was erased", seq)
		}
	}
	return mac, nil
}

func broken(format string, args ...any) error {
	return regie.Errorf(regie.CodeChainBroken, "the audit chain is broken: %v",
		regie.Errorf(regie.CodeChainBroken, format, args...))
}

// differs says which column of a row is not what the log says; "" for none.
type differs struct{ column string }

// in notes a column that is not as it should be; the first one counts.
func (d *differs) in(column string, is bool) {
	if is && d.column == "" {
		d.column = column
	}
}

func verifyCalls(ctx context.Context, q querier, report *store.VerifyReport, said *spokenLog) error {
	calls, err := readCalls(ctx, q, callsOfThread+"WHERE s.id = ?", report.OwnerID)
	if err != nil {
		return err
	}
	for i := range calls {
		c := &calls[i]
		log, ok := said.calls[c.ID]
		if !ok && report.Erased > 0 {
			continue // its events may be among the erased ones
		}
		if !ok {
			return broken("the log knows no call %s", c.ID)
		}
		delete(said.calls, c.ID)
		switch {
		case !log.arguments.IsZero() && regie.HashOf([]byte(c.Arguments)) != log.arguments:
			return broken("the arguments of call %s were altered", c.ID)
		case hashOrZero(c.Executed) != log.executed && report.Erased == 0:
			return broken("what call %s ran with was altered", c.ID)
		case hashOrZero(c.Intent) != log.intent && report.Erased == 0:
			return broken("the evidence of call %s was altered", c.ID)
		case hashOrZero(c.Changed) != log.changed && report.Erased == 0:
			return broken("what call %s made of files was altered", c.ID)
		case c.State != log.state || c.NotRun != log.code:
			return broken("call %s is %s, the log says %s", c.ID, c.State, log.state)
		case !log.result.IsZero() && regie.HashOf([]byte(c.Result)) != log.result:
			return broken("the result of call %s was altered", c.ID)
		}
		if column := log.compare(c, report.Erased > 0); column != "" {
			return broken("the log does not say the same of call %s: %s", c.ID, column)
		}
	}
	for id := range said.calls {
		return broken("call %s is missing", id)
	}
	return nil
}
