package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"reflect"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// verifyMessages compares where messages stand with where the log has them. A message whose row is
// gone would be gone from the thread.
func verifyMessages(ctx context.Context, q querier, report *store.VerifyReport, said *spokenLog) error {
	gone := said.superseded()
	rows, err := q.QueryContext(ctx, `SELECT m.id, coalesce(m.seq, 0), coalesce(m.pending_seq, 0), coalesce(m.withdrawn_at, 0), m.superseded, m.taken_back
		FROM messages m JOIN sessions s ON s.n = m.session WHERE s.id = ?`, report.OwnerID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id regie.ID
		var seq, pending, withdrawn int64
		var superseded, takenBack bool
		if err := rows.Scan(&id, &seq, &pending, &withdrawn, &superseded, &takenBack); err != nil {
			return err
		}
		log, ok := said.messages[id]
		if !ok && report.Erased > 0 {
			continue
		}
		if !ok {
			return broken("the log knows no message %s", id)
		}
		delete(said.messages, id)
		var d differs
		d.in("seq", seq != log.seq && (log.seq != 0 || report.Erased == 0))
		d.in("pending_seq", pending != log.pending && (log.pending != 0 || report.Erased == 0))
		d.in("withdrawn_at", withdrawn != log.withdrawnAt && (log.withdrawnAt != 0 || report.Erased == 0))
		d.in("taken_back", takenBack != log.takenBack && (log.takenBack || report.Erased == 0))
		d.in("superseded", superseded != gone[id] && report.Erased == 0)
		if d.column != "" {
			return broken("the log does not say the same of message %s: %s", id, d.column)
		}
	}
	for id := range said.messages {
		return broken("message %s is missing", id)
	}
	return rows.Err()
}

// verifyApprovals compares the approvals' rows with what the log says was asked, and how it closed.
func verifyApprovals(ctx context.Context, q querier, report *store.VerifyReport, said *spokenLog) error {
	rows, err := q.QueryContext(ctx, `SELECT a.id, a.round_id, a.exchange, a.state, a.created_at, a.expires_at, coalesce(a.closed_at, 0), a.seq
		FROM approvals a JOIN sessions s ON s.n = a.session WHERE s.id = ?`, report.OwnerID)
	if err != nil {
		return err
	}
	defer rows.Close()
	seen := map[regie.ID]bool{}
	for rows.Next() {
		var id, round regie.ID
		var exchange int
		var state string
		var created, expires, closed, seq int64
		if err := rows.Scan(&id, &round, &exchange, &state, &created, &expires, &closed, &seq); err != nil {
			return err
		}
		seen[id] = true
		log, ok := said.approvals[id]
		if !ok && report.Erased > 0 {
			continue
		}
		if !ok {
			return broken("the log knows no approval %s", id)
		}
		var d differs
		d.in("state", state != string(log.state) && report.Erased == 0)
		d.in("closed_at", closed != log.closedAt && report.Erased == 0)
		if log.asked.ExpiresAt != nil {
			d.in("round_id", round != log.asked.RoundID)
			d.in("exchange", exchange != log.asked.Exchange)
			d.in("created_at", created != log.askedAt)
			d.in("expires_at", expires != log.asked.ExpiresAt.UnixMicro())
			d.in("seq", seq != log.seq)
		}
		if d.column != "" {
			return broken("the log does not say the same of approval %s: %s", id, d.column)
		}
	}
	for id := range said.approvals {
		if !seen[id] {
			return broken("approval %s is missing", id)
		}
	}
	return rows.Err()
}

// reviewRow is a review as it is stored, letter by letter.
type reviewRow struct {
	approval                                                  regie.ID
	ordinal                                                   int
	review                                                    regie.Review
	answer, edited, editedPreview, reason, scope, request, by sql.NullString
	expires, at                                               sql.NullInt64
}

// verifyReviews compares what people were shown, and what they said, with the log: who decided
// what, when, about what.
func verifyReviews(ctx context.Context, q querier, report *store.VerifyReport, said *spokenLog) error {
	rows, err := q.QueryContext(ctx, `SELECT v.approval_id, v.ordinal, v.call_id, c.tool, v.definition, v.arguments, v.preview, v.verdict, v.grounds, v.answer,
			v.edited, v.edited_preview, v.reason, v.scope, v.request, v.decided_by, v.expires_at, v.decided_at
		FROM approvals a JOIN sessions s ON s.n = a.session JOIN reviews v ON v.approval_id = a.id LEFT JOIN calls c ON c.id = v.call_id WHERE s.id = ?`, report.OwnerID)
	if err != nil {
		return err
	}
	defer rows.Close()
	type place struct{ approval, call regie.ID }
	seen := map[place]bool{}
	for rows.Next() {
		var r reviewRow
		var tool sql.NullString
		var arguments, preview, verdict, grounds string
		if err := rows.Scan(&r.approval, &r.ordinal, &r.review.CallID, &tool, &r.review.Definition, &arguments,
			&preview, &verdict, &grounds, &r.answer,
			&r.edited, &r.editedPreview, &r.reason, &r.scope, &r.request, &r.by, &r.expires, &r.at); err != nil {
			return err
		}
		r.review.Tool, r.review.Arguments, r.review.Verdict = tool.String,
			json.RawMessage(arguments), regie.Verdict(verdict)
		readable := json.Unmarshal([]byte(preview), &r.review.Preview) == nil &&
			json.Unmarshal([]byte(grounds), &r.review.Grounds) == nil
		seen[place{r.approval, r.review.CallID}] = true
		log := said.approvals[r.approval]
		if log == nil {
			continue // verifyApprovals lets that pass only where it was erased
		}
		column := r.compare(log, report.Erased > 0)
		if !readable {
			column = "preview"
		}
		if column != "" {
			return broken("the log does not say the same of what was asked about call %s: %s", r.review.CallID, column)
		}
	}
	for id, log := range said.approvals {
		for _, call := range log.asked.Calls {
			if !seen[place{id, call.CallID}] {
				return broken("what was asked about call %s is missing", call.CallID)
			}
		}
	}
	return rows.Err()
}

// compare returns the first column of a review that the log has otherwise, "" for none.
func (r *reviewRow) compare(log *spokenApproval, erased bool) string {
	var d differs
	if calls := log.asked.Calls; log.asked.ExpiresAt != nil {
		known := r.ordinal >= 0 && r.ordinal < len(calls) && calls[r.ordinal].CallID == r.review.CallID
		d.in("ordinal", !known)
		hash, err := shown(&r.review)
		d.in("what was shown", err != nil || known && hash != calls[r.ordinal].Review)
	}
	was, decided := log.decided[r.review.CallID]
	if !decided {
		d.in("answer", (r.answer.Valid || r.edited.Valid || r.editedPreview.Valid || r.reason.Valid ||
			r.scope.Valid || r.request.Valid) && !erased)
		return d.column
	}
	d.in("answer", r.answer.String != string(was.Answer))
	d.in("edited", hashOrZero([]byte(r.edited.String)) != was.Edited)
	d.in("edited_preview", hashOrZero([]byte(r.editedPreview.String)) != was.EditedPreview)
	d.in("reason", asLogged(r.reason.String) != was.Reason)
	d.in("scope", !sameJSON(r.scope.String, was.Scope))
	d.in("request", asLogged(r.request.String) != was.Request)
	d.in("decided_by", asLogged(r.by.String) != was.By)
	d.in("decided_at", r.at.Int64 != was.at)
	d.in("expires_at", r.expires.Int64 != microsOf(was.RuleExpires))
	return d.column
}

// sameJSON reports whether a column holds what the log says, nothing where it says nothing.
func sameJSON[T any](column string, said *T) bool {
	if column == "" || said == nil {
		return column == "" && said == nil
	}
	var is T
	return json.Unmarshal([]byte(column), &is) == nil && reflect.DeepEqual(is, *said)
}

// asLogged is a column's text as the body of an event has it: bytes that are no UTF-8 became U+FFFD
// there.
func asLogged(column string) string { return string([]rune(column)) }

// microsOf is a time as a column holds it, 0 for none.
func microsOf(at *time.Time) int64 {
	if at == nil || at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}
