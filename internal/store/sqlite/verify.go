package sqlite

import (
	"context"
	"crypto/hmac"
	"database/sql"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Verify checks the log of a session, of a workspace or of a user (decision 15): it has no gap,
// each row follows from the one before under the audit key, and each body has its hash. The tables
// must match the log: of a session its calls, messages, approvals with every decision, questions,
// and undos with every file; of a workspace its rules; of a user the tokens. Verify returns
// CodeChainBroken naming the first altered row. Erased bodies are counted and are no error; the
// tables of such a log are not compared.
func (s auditStore) Verify(ctx context.Context, owner regie.ID) (store.VerifyReport, error) {
	report := store.VerifyReport{OwnerID: owner}
	var recorded string
	if err := s.read.QueryRowContext(ctx, "SELECT "+recordedHash).Scan(&recorded); err != nil {
		return report, err
	}
	key, err := OpenAuditKey(s.dir, recorded)
	if err != nil {
		return report, err
	}
	err = s.readOnce(ctx, func(ctx context.Context, q querier) error { return verifyChain(ctx, q, key, &report) })
	return report, err
}

// VerifyRules verifies the log of the workspace at root, or of all for "", as Verify does; the
// report counts them together.
func (s auditStore) VerifyRules(ctx context.Context, root string) (all store.VerifyReport, err error) {
	workspaces, err := queryAll(ctx, s.read, scanOne[regie.ID],
		"SELECT id FROM workspaces WHERE root = ? OR ? = '' ORDER BY id", root, root)
	if err != nil {
		return all, err
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

// verifyChain verifies a log. A workspace has none before its first rule, a user none before the
// first token; then the tables must be empty too.
func verifyChain(ctx context.Context, q querier, key []byte, report *store.VerifyReport) error {
	var chain, headSeq int64
	var headMAC []byte
	var kind string
	p := &projection{rows: map[string]columns{}}
	err := q.QueryRowContext(ctx, "SELECT n, kind, head, mac FROM chains WHERE owner_id = ?",
		report.OwnerID).Scan(&chain, &kind, &headSeq, &headMAC)
	if errors.Is(err, sql.ErrNoRows) {
		err := q.QueryRowContext(ctx, `SELECT 'workspace' FROM workspaces WHERE id = ?1
			UNION ALL SELECT 'user' FROM users WHERE id = ?1`, report.OwnerID).Scan(&kind)
		if err != nil {
			return unlessFound(err, notFound("session", report.OwnerID))
		}
		return compareTables(ctx, q, kind, report.OwnerID, p)
	}
	if err != nil {
		return err
	}
	mac, err := walkChain(ctx, q, key, chain, headSeq, report, p)
	if err != nil {
		return err
	}
	if report.Events != headSeq || !hmac.Equal(mac[:], headMAC) {
		return chainBroken("the log ends at row %d, its head says %d", report.Events, headSeq)
	}
	report.Head = hex.EncodeToString(mac[:])
	if report.Erased > 0 {
		return nil
	}
	return compareTables(ctx, q, kind, report.OwnerID, p)
}

// walkChain follows a chain and projects its events.
func walkChain(ctx context.Context, q querier, key auditMAC, chain, headSeq int64, report *store.VerifyReport,
	p *projection,
) (mac [32]byte, err error) {
	mac = key.genesisMAC(report.OwnerID)
	gone, err := queryAll(ctx, q, func(r scanner, erased *int64) error {
		var row logRow
		var hash regie.Hash
		var stored []byte
		err := r.Scan(&row.seq, &row.kind, &row.at, &hash, &stored, &row.body)
		switch {
		case err != nil:
			return err
		case row.seq > headSeq:
			return chainBroken("row %d is beyond the head of the log, which is %d: it was never acknowledged", row.seq,
				headSeq)
		case row.seq != report.Events+1:
			return chainBroken("row %d is missing", report.Events+1)
		}
		if mac = key.linkMAC(mac, row.seq, row.at, row.kind, hash); !hmac.Equal(mac[:], stored) {
			return chainBroken("row %d was altered, or the audit key is another one", row.seq)
		}
		report.Events = row.seq
		switch {
		case row.body == nil:
			report.Erased++
			*erased = row.seq
		case regie.HashOf(row.body) != hash:
			return chainBroken("the body of row %d was altered", row.seq)
		case p.applyEvent(row) != nil:
			return chainBroken("the body of row %d cannot be read", row.seq)
		}
		return nil
	}, `SELECT e.seq, e.type, e.at, e.body, e.mac, b.body FROM events e
		LEFT JOIN event_bodies b ON b.n = e.n WHERE e.chain = ? ORDER BY e.seq`, chain)
	for _, seq := range gone {
		if seq > 0 && !p.tellsErased(seq) {
			return mac, chainBroken("the body of row %d is gone, and no row says that it was erased", seq)
		}
	}
	return mac, err
}

func chainBroken(format string, args ...any) error {
	return regie.Errorf(regie.CodeChainBroken, "the audit chain is broken: %v",
		regie.Errorf(regie.CodeChainBroken, format, args...))
}

// compareTables compares the tables of a session, a workspace or a user with its log.
func compareTables(ctx context.Context, q querier, kind string, owner regie.ID, p *projection) error {
	tables := []func(context.Context, querier, regie.ID, *projection) error{
		compareSession, compareCalls, compareMessages, compareApprovals, compareReviews, compareWaits, compareUndos,
	}
	switch kind {
	case "workspace":
		tables = append(tables[:0], compareRules)
	case "user":
		tables = append(tables[:0], compareTokens)
	}
	p.applySuperseded()
	for _, compare := range tables {
		if err := compare(ctx, q, owner, p); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.rows)) {
		return chainBroken("%s is missing", key)
	}
	return nil
}

// compareRows gives each row of a query to compare.
func compareRows(ctx context.Context, q querier, compare func(scanner) error, query string, args ...any) error {
	_, err := queryAll(ctx, q, func(row scanner, _ *struct{}) error { return compare(row) }, query, args...)
	return err
}

func compareSession(ctx context.Context, q querier, owner regie.ID, p *projection) error {
	var from regie.ID
	var at int64
	var mode regie.Mode
	err := q.QueryRowContext(ctx, "SELECT forked_from, forked_at_seq, approval_mode FROM sessions WHERE id = ?", owner).
		Scan(&from, &at, &mode)
	if err != nil {
		return err
	}
	return p.compareRow("session", owner, columns{"forked_from": from, "forked_at_seq": at, "approval_mode": mode})
}

func compareCalls(ctx context.Context, q querier, owner regie.ID, p *projection) error {
	calls, err := readCalls(ctx, q, callsOfThread+"WHERE s.id = ?", owner)
	for i := 0; err == nil && i < len(calls); i++ {
		c := &calls[i]
		row := columns{
			"tool": c.Tool, "arguments": regie.HashOf([]byte(c.Arguments)), "executed": hashOrZero(c.Executed),
			"intent": hashOrZero(c.Intent), "changed": hashOrZero(c.Changed), "state": c.State, "code": c.NotRun,
			"copy_of": c.CopyOf,
		}
		if c.Error != nil {
			row["error"] = c.Error.Code
		} else if row["error"] = ""; c.State.Settled() {
			row["result"] = regie.HashOf([]byte(c.Result))
		}
		resolved := c.Resolution
		if resolved == nil {
			resolved = new(regie.Resolution)
		}
		row["resolved_as"], row["resolved_by"], row["resolve_note"], row["resolved_at"] = resolved.As, resolved.By,
			resolved.Note, resolved.At
		err = p.compareRow("call", c.ID, row)
	}
	return err
}

func compareMessages(ctx context.Context, q querier, owner regie.ID, p *projection) error {
	return compareRows(ctx, q, func(row scanner) error {
		var id regie.ID
		var seq, pending int64
		var withdrawn time.Time
		var superseded, takenBack bool
		if err := row.Scan(&id, &seq, &pending, &withdrawn, &superseded, &takenBack); err != nil {
			return err
		}
		return p.compareRow("message", id, columns{
			"seq": seq, "pending_seq": pending, "withdrawn_at": withdrawn, "superseded": superseded, "taken_back": takenBack,
		})
	}, `SELECT m.id, m.seq, m.pending_seq, m.withdrawn_at, m.superseded, m.taken_back
		FROM messages m JOIN sessions s ON s.n = m.session WHERE s.id = ?`, owner)
}

func compareApprovals(ctx context.Context, q querier, owner regie.ID, p *projection) error {
	return compareRows(ctx, q, func(row scanner) error {
		var id, round regie.ID
		var exchange, seq int64
		var state string
		var created, expires, closed time.Time
		if err := row.Scan(&id, &round, &exchange, &state, &created, &expires, &closed, &seq); err != nil {
			return err
		}
		return p.compareRow("approval", id, columns{
			"round_id": round, "exchange": exchange, "state": state, "created_at": created, "expires_at": expires,
			"closed_at": closed, "seq": seq,
		})
	}, `SELECT a.id, a.round_id, a.exchange, a.state, a.created_at, a.expires_at, a.closed_at, a.seq
		FROM approvals a JOIN sessions s ON s.n = a.session WHERE s.id = ?`, owner)
}

func compareReviews(ctx context.Context, q querier, owner regie.ID, p *projection) error {
	return compareRows(ctx, q, func(row scanner) error {
		var approval regie.ID
		var ordinal int
		var v regie.Review
		var d regie.Decision
		var editedPreview []byte
		var request string
		if err := row.Scan(&approval, &ordinal, &v.CallID, &v.Tool, &v.Definition, &v.Arguments, asJSON{&v.Preview},
			&v.Verdict, asJSON{&v.Grounds}, &d.Answer, &d.Arguments, &editedPreview, &d.Reason, asJSON{&d.Scope}, &request,
			&d.By, &d.ExpiresAt, &d.At); regie.CodeOf(err) == regie.CodeCorrupt {
			return chainBroken("the preview, the grounds or the scope of call %s cannot be read", v.CallID)
		} else if err != nil {
			return err
		}
		hash, err := hashShown(&v)
		if err != nil {
			return chainBroken("the preview of call %s cannot be read", v.CallID)
		}
		return p.compareRow("what approval "+approval.String()+" asks about call", v.CallID, columns{
			"ordinal": ordinal, "what was shown": hash, "answer": d.Answer, "edited": hashOrZero(d.Arguments),
			"edited_preview": hashOrZero(editedPreview), "reason": d.Reason, "scope": d.Scope, "request": request,
			"decided_by": d.By, "decided_at": d.At, "expires_at": d.ExpiresAt,
		})
	}, `SELECT v.approval_id, v.ordinal, v.call_id, c.tool, v.definition, v.arguments, v.preview, v.verdict, v.grounds, v.answer,
			v.edited, v.edited_preview, v.reason, v.scope, v.request, v.decided_by, v.expires_at, v.decided_at
		FROM approvals a JOIN sessions s ON s.n = a.session JOIN reviews v ON v.approval_id = a.id LEFT JOIN calls c ON c.id = v.call_id
		WHERE s.id = ?`, owner)
}

func compareWaits(ctx context.Context, q querier, owner regie.ID, p *projection) error {
	return compareRows(ctx, q, func(row scanner) error {
		var id, object, round, user, call regie.ID
		var kind regie.WaitKind
		var state, by, request string
		var deadline, created, resolved time.Time
		var resolution *regie.QuestionReply
		var module *regie.Module
		if err := row.Scan(&id, &kind, &object, &round, &user, &state, &deadline, &created, &resolved,
			asJSON{&resolution}, &by, &call, asJSON{&module}, &request); err != nil {
			return err
		}
		if kind == regie.WaitApproval {
			id = object
		}
		return p.compareRow("wait for", id, columns{
			"round_id": round, "object_id": object, "owner_id": user, "state": state, "deadline": deadline,
			"created_at": created, "resolved_at": resolved, "resolution": resolution, "resolved_by": by, "call_id": call,
			"module": module, "request": request,
		})
	}, `SELECT w.id, w.kind, w.object_id, w.round_id, w.owner_id, w.state, w.deadline, w.created_at, w.resolved_at,
			w.resolution, w.resolved_by, u.call_id, u.module, u.request
		FROM waits w JOIN sessions s ON s.n = w.session LEFT JOIN questions u ON u.wait_id = w.id
		WHERE s.id = ? AND (w.kind = 'APPROVAL' OR w.kind = 'QUESTION')`, owner)
}

func compareUndos(ctx context.Context, q querier, owner regie.ID, p *projection) error {
	undos, err := readUndos(ctx, q, "WHERE s.id = ?", owner)
	for i := 0; err == nil && i < len(undos); i++ {
		err = p.compareRow("undo", undos[i].ID, undoColumnsOf(&undos[i]))
	}
	return err
}

func compareRules(ctx context.Context, q querier, owner regie.ID, p *projection) error {
	return compareRows(ctx, q, func(row scanner) error {
		var rule regie.Rule
		var tool string
		if err := scanRuleAnd(row, &rule, &tool); err != nil {
			return err
		}
		return p.compareRow("rule", rule.ID, ruleColumnsOf(&rule, tool))
	}, "SELECT "+ruleColumns+", r.tool FROM rules r LEFT JOIN sessions s ON s.n = r.session WHERE r.workspace_id = ?", owner)
}

func compareTokens(ctx context.Context, q querier, owner regie.ID, p *projection) error {
	return compareRows(ctx, q, func(row scanner) error {
		var token regie.Token
		var hash regie.Hash
		if err := scanTokenAnd(row, &token, &hash); err != nil {
			return err
		}
		return p.compareRow("token", token.ID, tokenColumnsOf(&token, hash))
	}, "SELECT "+tokenColumns+" FROM tokens t WHERE t.user_id = ?", owner)
}
