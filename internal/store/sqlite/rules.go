package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Rules returns the unrevoked standing rules of a session, with those of its workspace (spec 4.4).
// The verdict skips expired ones.
func (s approvalStore) Rules(ctx context.Context, workspace, session regie.ID) ([]regie.Rule, error) {
	return queryAll(ctx, s.read, scanRule, "SELECT "+ruleColumns+` FROM rules r LEFT JOIN sessions s ON s.n = r.session
		WHERE r.workspace_id = ? AND r.revoked_at IS NULL AND (s.id = ? OR r.session IS NULL) ORDER BY r.created_at, r.id`,
		workspace, session)
}

// ruleColumns are those of a rule r with its session s.
const ruleColumns = "r.id, r.workspace_id, s.id, r.verdict, r.scope, r.author, r.from_call, r.created_at, r.expires_at, r.revoked_at, r.revoked_by"

func scanRule(row scanner, r *regie.Rule) error { return scanRuleAnd(row, r) }

func scanRuleAnd(row scanner, r *regie.Rule, more ...any) error {
	return row.Scan(append([]any{
		&r.ID, &r.WorkspaceID, &r.SessionID, &r.Verdict,
		asJSON{&r.Scope},
		&r.Author, &r.FromCall,
		&r.CreatedAt, &r.ExpiresAt, &r.RevokedAt, &r.RevokedBy,
	}, more...)...)
}

// ListRules returns the standing rules that a filter selects, the oldest first, each with its state
// at a time. It returns CodeBadID for a part that is not hexadecimal.
func (s approvalStore) ListRules(ctx context.Context, filter store.RuleFilter,
	now time.Time,
) ([]store.StandingRule, error) {
	if err := checkPart(filter.Short); err != nil {
		return nil, err
	}
	// The rule's own review says what the call did: a call that was reviewed twice has two.
	return queryList(ctx, s.read, func(row scanner, rule *store.StandingRule) error {
		var shown regie.Preview
		err := scanRuleAnd(row, &rule.Rule, &rule.Workspace, &rule.SessionName, &rule.RoundID, asJSON{&shown})
		rule.State, rule.Call = rule.StateAt(now), shown.Sentence
		return err
	}, "SELECT "+ruleColumns+`, w.name, s.name, c.round_id,
			(SELECT coalesce(v.edited_preview, v.preview) FROM reviews v WHERE v.call_id = r.from_call AND v.decided_at = r.created_at)
		FROM rules r JOIN workspaces w ON w.id = r.workspace_id LEFT JOIN sessions s ON s.n = r.session LEFT JOIN calls c ON c.id = r.from_call
		WHERE (r.id = ?1 OR ?1 IS NULL) AND (w.root = ?2 OR ?2 = '') AND (?3 = '' OR `+hasPart("r.id", "?3")+")"+
		inForce("r", "?6", "?7")+afterClause("r.created_at", "r.id", "?4", "?5")+" LIMIT ?8", filter.ID, filter.Root,
		filter.Short, filter.After.Micros(), filter.After.ID,
		boolToInt(filter.Ended || !filter.ID.IsZero() || filter.Short != ""), now.UnixMicro(), limitOf(filter.Limit))
}

// ruleEvent is the body of a rule event, in the log of the rule's workspace (decision 15).
type ruleEvent struct {
	RuleID regie.ID        `json:"rule_id"`
	State  regie.RuleState `json:"state"`
	Rule   *regie.Rule     `json:"rule,omitempty"` // where it was made
	By     string          `json:"by,omitempty"`   // who revoked it
}

// makeRules stores the rules of a decision, and logs them in their workspace's log.
func (t waitTx) makeRules(a *approvalRow, rules []regie.Rule, now time.Time) {
	if len(rules) == 0 {
		return
	}
	var workspace regie.ID
	t.fail(t.row("SELECT workspace_id FROM sessions WHERE n = ?", a.chain).Scan(&workspace))
	b := batch{fence: store.Fence{SessionID: workspace, Chain: t.sessions.ownChain("workspace", workspace, now)}, now: now}
	for _, rule := range rules { // copies: this may run more than once
		var session any
		if !rule.SessionID.IsZero() {
			session, rule.SessionID = a.chain, a.session
		}
		rule.WorkspaceID, rule.CreatedAt = workspace, fromMicros(now.UnixMicro())
		if !rule.ExpiresAt.IsZero() {
			rule.ExpiresAt = fromMicros(rule.ExpiresAt.UnixMicro())
		}
		t.exec(
			`INSERT INTO rules (id, workspace_id, session, verdict, tool, scope, author, from_call, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			rule.ID, workspace, session, string(rule.Verdict), rule.Scope.Tool, asJSON{rule.Scope}, rule.Author,
			rule.FromCall, now.UnixMicro(), toMicros(rule.ExpiresAt))
		b.addEvent(regie.EventRule, ruleEvent{RuleID: rule.ID, State: regie.RuleActive, Rule: &rule})
	}
	b.writeBatch(t.tx)
}

// ownChain returns the log of a workspace or a user, which begins with its first event.
func (t sessionTx) ownChain(kind string, owner regie.ID, now time.Time) (chain int64) {
	t.holdRow(ByOwner, owner)
	err := t.row("SELECT n FROM chains WHERE owner_id = ?", owner).Scan(&chain)
	if errors.Is(err, sql.ErrNoRows) {
		t.fail(t.row("SELECT coalesce(max(n), 0) + 1 FROM chains").Scan(&chain))
		t.makeChain(chain, kind, owner, now)
		return chain
	}
	t.fail(err)
	return chain
}

func (t sessionTx) makeChain(chain int64, kind string, owner regie.ID, now time.Time) {
	mac := t.w.key.genesisMAC(owner)
	t.exec("INSERT INTO chains (n, kind, owner_id, mac, head_at) VALUES (?, ?, ?, ?, ?)", chain, kind,
		owner, mac[:], now.UnixMicro())
	t.heads[chain] = head{mac: mac}
}

// RevokeRules revokes rules, all of them or none (spec 4.4). Once it returns, Rules does not list
// them and they allow nothing. Revoking again changes nothing; a missing rule is CodeNotFound.
func (s approvalStore) RevokeRules(ctx context.Context, in store.RevokeRules) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		for _, id := range in.RuleIDs {
			t.waits.revokeRule(id, in.By, now)
		}
		return nil
	})
}

// revokeRule revokes one rule and logs it in its workspace's log.
func (t waitTx) revokeRule(id regie.ID, by string, now time.Time) {
	t.holdRow(ByRule, id)
	var workspace regie.ID
	var revoked time.Time
	err := t.row("SELECT workspace_id, revoked_at FROM rules WHERE id = ?", id).Scan(&workspace, &revoked)
	if t.fail(unlessFound(err, notFound("rule", id))) || !revoked.IsZero() {
		return
	}
	t.one(errRevoked, "UPDATE rules SET revoked_at = ?, revoked_by = ? WHERE id = ? AND revoked_at IS NULL",
		now.UnixMicro(), by, id)
	t.appendEvent(workspace, t.sessions.ownChain("workspace", workspace, now), now, regie.EventRule,
		ruleEvent{RuleID: id, State: regie.RuleRevoked, By: by})
}

var errRevoked = regie.Errorf(regie.CodeConflict, "the rule was already revoked")
