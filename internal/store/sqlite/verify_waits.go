package sqlite

import (
	"context"
	"database/sql"
	"reflect"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// waitRow is a wait as it is stored, with the question of one.
type waitRow struct {
	id, object, round, owner      regie.ID
	kind                          regie.WaitKind
	state                         string
	deadline, created, resolvedAt int64
	resolution, by                sql.NullString
	call                          regie.ID
	module, request               sql.NullString
}

// verifyWaits compares the waits for people, and the questions, with what the log says was asked
// and answered. Of waits for the network it says only that there was one.
func verifyWaits(ctx context.Context, q querier, report *store.VerifyReport, said *spokenLog) error {
	rows, err := q.QueryContext(ctx, `SELECT w.id, w.kind, w.object_id, w.round_id, w.owner_id, w.state, coalesce(w.deadline, 0), w.created_at, coalesce(w.resolved_at, 0),
			w.resolution, w.resolved_by, u.call_id, u.module, u.request
		FROM waits w JOIN sessions s ON s.n = w.session LEFT JOIN questions u ON u.wait_id = w.id WHERE s.id = ? AND (w.kind = 'APPROVAL' OR w.kind = 'QUESTION')`, report.OwnerID)
	if err != nil {
		return err
	}
	defer rows.Close()
	seen := map[regie.ID]bool{} // questions, and approvals
	for rows.Next() {
		var w waitRow
		var kind string
		if err := rows.Scan(&w.id, &kind, &w.object, &w.round, &w.owner, &w.state, &w.deadline, &w.created,
			&w.resolvedAt, &w.resolution, &w.by,
			&w.call, &w.module, &w.request); err != nil {
			return err
		}
		w.kind = regie.WaitKind(kind)
		thing, column, known := w.compare(said, report.Erased > 0)
		seen[thing] = true
		switch {
		case !known && report.Erased > 0:
		case !known:
			return broken("the log knows no wait for %s", thing)
		case column == "" && !said.owner.IsZero() && w.owner != said.owner:
			column = "owner_id"
			fallthrough
		case column != "":
			return broken("the log does not say the same of the wait for %s: %s", thing, column)
		}
	}
	for id := range said.approvals {
		if !seen[id] {
			return broken("the wait for %s is missing", id)
		}
	}
	for id := range said.questions {
		if !seen[id] {
			return broken("the wait for %s is missing", id)
		}
	}
	return rows.Err()
}

// compare returns what a wait is for, the first column of it that the log has otherwise, and
// whether the log knows it.
func (w *waitRow) compare(said *spokenLog, erased bool) (thing regie.ID, column string, known bool) {
	if w.kind == regie.WaitApproval {
		log, known := said.approvals[w.object]
		if known {
			column = w.compareApproval(log, erased)
		}
		return w.object, column, known
	}
	log, known := said.questions[w.id]
	if known {
		column = w.compareQuestion(log, erased)
	}
	return w.id, column, known
}

// compareApproval returns the first column of an approval's wait that the log has otherwise, "" for
// none.
func (w *waitRow) compareApproval(log *spokenApproval, erased bool) string {
	state := map[regie.ApprovalState]regie.WaitState{
		regie.ApprovalOpen: regie.WaitOpen, regie.ApprovalDecided: regie.WaitResolved,
		regie.ApprovalExpired: regie.WaitExpired, regie.ApprovalWithdrawn: regie.WaitWithdrawn,
	}[log.state]
	by := ""
	if log.state == regie.ApprovalDecided {
		by = log.lastBy
	}
	var d differs
	d.in("state", w.state != string(state) && !erased)
	d.in("resolved_at", w.resolvedAt != log.closedAt && !erased)
	d.in("resolved_by", asLogged(w.by.String) != by && !erased)
	d.in("resolution", w.resolution.Valid)
	if log.asked.ExpiresAt != nil {
		d.in("round_id", w.round != log.asked.RoundID)
		d.in("created_at", w.created != log.askedAt)
		d.in("deadline", w.deadline != log.asked.ExpiresAt.UnixMicro())
	}
	return d.column
}

// compareQuestion returns the first column of a question or its wait that the log has otherwise, ""
// for none.
func (w *waitRow) compareQuestion(log *spokenQuestion, erased bool) string {
	var d differs
	if log.askedAt != 0 {
		d.in("round_id", w.round != log.asked.RoundID)
		d.in("object_id", w.object != log.asked.CallID)
		d.in("call_id", w.call != log.asked.CallID)
		d.in("module", !sameJSON(w.module.String, log.asked.Module))
		d.in("created_at", w.created != log.askedAt)
		d.in("deadline", w.deadline != microsOf(log.asked.ExpiresAt))
	}
	if log.closedAt == 0 {
		d.in("state", (w.state != string(regie.WaitOpen) || w.request.Valid) && !erased)
		return d.column
	}
	by := ""
	if log.closed.Reply != nil {
		by = log.closed.Reply.By
	}
	d.in("state", w.state != string(log.closed.State))
	d.in("resolution", !sameJSON(w.resolution.String, log.closed.Reply))
	d.in("resolved_by", asLogged(w.by.String) != by)
	d.in("resolved_at", w.resolvedAt != log.closedAt)
	d.in("request", asLogged(w.request.String) != log.closed.Request)
	return d.column
}

// verifyRules compares a workspace's rules with what its log says was made and revoked.
func verifyRules(ctx context.Context, q querier, report *store.VerifyReport, said *spokenLog) error {
	rows, err := q.QueryContext(ctx, "SELECT "+
		ruleColumns+", r.tool FROM rules r LEFT JOIN sessions s ON s.n = r.session WHERE r.workspace_id = ?",
		report.OwnerID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var tool string
		rule, err := scanRule(rows, &tool)
		if err != nil {
			return err
		}
		log, ok := said.rules[rule.ID]
		if !ok && report.Erased > 0 {
			continue
		}
		if !ok {
			return broken("the log knows no rule %s", rule.ID)
		}
		delete(said.rules, rule.ID)
		if column := log.compare(&rule, tool, report.Erased > 0); column != "" {
			return broken("the log does not say the same of rule %s: %s", rule.ID, column)
		}
	}
	for id := range said.rules {
		return broken("rule %s is missing", id)
	}
	return rows.Err()
}

// compare returns the first column of a rule that the log has otherwise, "" for none.
func (log *spokenRule) compare(r *regie.Rule, tool string, erased bool) string {
	var d differs
	if made := log.made; made != nil {
		d.in("session", r.SessionID != made.SessionID)
		d.in("verdict", r.Verdict != made.Verdict)
		d.in("tool", tool != made.Scope.Tool)
		d.in("scope", !sameScope(&r.Scope, &made.Scope))
		d.in("author", asLogged(r.Author) != made.Author)
		d.in("from_call", r.FromCall != made.FromCall)
		d.in("created_at", r.CreatedAt.UnixMicro() != made.CreatedAt.UnixMicro())
		d.in("expires_at", microsOf(&r.ExpiresAt) != microsOf(&made.ExpiresAt))
	}
	if log.revokedAt != 0 || !erased {
		d.in("revoked_at", microsOf(&r.RevokedAt) != log.revokedAt)
		d.in("revoked_by", asLogged(r.RevokedBy) != log.revokedBy)
	}
	return d.column
}

func sameScope(a, b *regie.Scope) bool { return reflect.DeepEqual(*a, *b) }
