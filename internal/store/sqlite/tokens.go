package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// tokenColumns are those of a token t.
//
//nolint:gosec // names of columns
const tokenColumns = `t.id, t.user_id, t.kind, t.name, t.hash, t.scopes, t.workspaces, t.on_approval, t.created_at, t.created_by, t.expires_at, t.last_used_at,
	t.revoked_at, t.revoked_by`

func scanToken(row scanner, token *regie.Token) error {
	return scanTokenAnd(row, token, new(regie.Hash))
}

func scanTokenAnd(row scanner, token *regie.Token, hash *regie.Hash, more ...any) error {
	var restricted json.RawMessage
	if err := row.Scan(append([]any{
		&token.ID, &token.UserID, &token.Kind, &token.Name, hash,
		asJSON{&token.Scopes},
		&restricted, &token.OnApproval,
		&token.CreatedAt, &token.CreatedBy, &token.ExpiresAt, &token.LastUsedAt, &token.RevokedAt, &token.RevokedBy,
	}, more...)...); err != nil || restricted == nil {
		return err
	}
	if json.Unmarshal(restricted, &token.Workspaces) != nil || len(token.Workspaces) == 0 {
		return regie.Errorf(regie.CodeCorrupt, "the workspaces of token %s cannot be read", token.ID) // it opens nothing
	}
	return nil
}

// tokenEvent is the body of a token event, in the log of the token's user.
type tokenEvent struct {
	TokenID regie.ID         `json:"token_id"`
	State   regie.TokenState `json:"state"`
	Token   *regie.Token     `json:"token,omitempty"` // where it was made
	Hash    regie.Hash       `json:"hash,omitzero"`   // of its secret, with Token
	By      string           `json:"by,omitempty"`    // who revoked it
}

// CreateToken stores a token, and logs it in its user's log. It returns CodeConflict where its id
// is taken, or its user has MaxTokens active ones, and CodeNotFound for a missing user or
// workspace.
func (s tokenStore) CreateToken(ctx context.Context, in store.NewToken) (regie.Token, error) {
	token, now := in.Token, time.Now().UTC()
	token.CreatedAt = fromMicros(now.UnixMicro())
	if !token.ExpiresAt.IsZero() {
		token.ExpiresAt = fromMicros(token.ExpiresAt.UnixMicro())
	}
	var workspaces any
	if len(token.Workspaces) > 0 {
		workspaces = asJSON{token.Workspaces}
	}
	err := s.writer.do(ctx, func(t *tx) error {
		chain := t.sessions.ownChain("user", token.UserID, now)
		if err := t.tokens.tokenFits(&token, now); err != nil {
			return err
		}
		t.exec(`INSERT INTO tokens (id, user_id, kind, name, hash, scopes, workspaces, on_approval, created_at, created_by, expires_at)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			token.ID, token.UserID, string(token.Kind), token.Name, in.Hash, asJSON{token.Scopes}, workspaces,
			nullIfEmpty(token.OnApproval), now.UnixMicro(), token.CreatedBy,
			toMicros(token.ExpiresAt))
		t.appendEvent(token.UserID, chain, now, regie.EventToken, tokenEvent{
			TokenID: token.ID, State: regie.TokenActive, Token: &token, Hash: in.Hash,
		})
		return nil
	})
	return token, err
}

// tokenFits returns the error of a token that cannot be made.
func (t tokenTx) tokenFits(token *regie.Token, now time.Time) error {
	var user, taken bool
	var active int
	if err := t.row(`SELECT EXISTS (SELECT 1 FROM users WHERE id = ?1 AND disabled_at IS NULL), EXISTS (SELECT 1 FROM tokens WHERE id = ?2),
			(SELECT count(*) FROM tokens WHERE user_id = ?1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > CAST(?3 AS BIGINT)))`,
		token.UserID, token.ID, now.UnixMicro()).Scan(&user, &taken, &active); err != nil {
		return err
	}
	switch {
	case !user:
		return notFound("user", token.UserID)
	case taken:
		return regie.Errorf(regie.CodeConflict,
			"the token %s was already created, and its secret is shown only once: revoke it, and create another one", token.ID)
	case active >= store.MaxTokens:
		return regie.Errorf(regie.CodeConflict, "there are %d tokens already: revoke unused ones", active)
	}
	for _, id := range token.Workspaces {
		var there bool
		if err := t.row("SELECT EXISTS (SELECT 1 FROM workspaces WHERE id = ? AND deleted_at IS NULL)",
			id).Scan(&there); err != nil {
			return err
		}
		if !there {
			return notFound("workspace", id)
		}
	}
	return nil
}

// RevokeTokens ends tokens, all of them or none. Revoking again changes nothing; a missing token is
// CodeNotFound.
func (s tokenStore) RevokeTokens(ctx context.Context, in store.RevokeTokens) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		for _, id := range in.TokenIDs {
			t.tokens.revokeToken(id, in.By, now)
		}
		return nil
	})
}

func (t tokenTx) revokeToken(id regie.ID, by string, now time.Time) {
	t.holdRow(ByToken, id)
	var user regie.ID
	var revoked time.Time
	err := t.row("SELECT user_id, revoked_at FROM tokens WHERE id = ?", id).Scan(&user, &revoked)
	if t.fail(unlessFound(err, notFound("token", id))) || !revoked.IsZero() {
		return
	}
	t.one(errTokenRevoked,
		"UPDATE tokens SET revoked_at = ?, revoked_by = ? WHERE id = ? AND revoked_at IS NULL",
		now.UnixMicro(), by, id)
	t.appendEvent(user, t.sessions.ownChain("user", user, now), now, regie.EventToken,
		tokenEvent{TokenID: id, State: regie.TokenRevoked, By: by})
}

var errTokenRevoked = regie.Errorf(regie.CodeConflict, "the token was already revoked")

// TokenBySecret returns the token with the hash of a secret, in any state, with its user. It
// returns CodeNotFound for an unknown secret or a disabled user. It caches nothing: a revocation on
// any node counts at once.
func (s tokenStore) TokenBySecret(ctx context.Context, secret regie.Hash) (token regie.Token, user regie.User,
	err error,
) {
	err = scanTokenAnd(s.read.QueryRowContext(ctx, "SELECT "+tokenColumns+`, u.name, u.created_at FROM tokens t JOIN users u ON u.id = t.user_id
		WHERE t.hash = ? AND u.disabled_at IS NULL`, secret), &token, new(regie.Hash), &user.Name, &user.CreatedAt)
	user.ID = token.UserID
	return token, user, unlessFound(err, regie.Errorf(regie.CodeNotFound, "there is no such token here"))
}

// TokenUsed stores when a token was used, where the stored time is older than while.
func (s tokenStore) TokenUsed(ctx context.Context, id regie.ID, at time.Time, while time.Duration) error {
	return s.writer.do(ctx, func(t *tx) error {
		t.holdRow(ByToken, id)
		t.exec(`UPDATE tokens SET last_used_at = CAST(?1 AS BIGINT) WHERE id = ?2 AND revoked_at IS NULL
			AND (last_used_at IS NULL OR last_used_at < CAST(?3 AS BIGINT))`, at.UnixMicro(), id, at.Add(-while).UnixMicro())
		return nil
	})
}

// Tokens lists the tokens that a filter selects, the oldest first. It returns CodeBadID for a part
// that is not hexadecimal.
func (s tokenStore) Tokens(ctx context.Context, filter store.TokenFilter, now time.Time) ([]regie.Token, error) {
	if err := checkPart(filter.Short); err != nil {
		return nil, err
	}
	return queryList(ctx, s.read, scanToken, "SELECT "+tokenColumns+` FROM tokens t WHERE (t.user_id = ?1 OR ?1 IS NULL) AND (t.id = ?2 OR ?2 IS NULL)
		AND (t.kind = ?3 OR ?3 = '') AND (?4 = '' OR `+hasPart("t.id", "?4")+`)`+inForce("t", "?7", "?8")+afterClause("t.created_at", "t.id", "?5", "?6")+" LIMIT ?9",
		filter.UserID, filter.ID, string(filter.Kind), filter.Short, filter.After.Micros(), filter.After.ID,
		boolToInt(filter.Ended || !filter.ID.IsZero() || filter.Short != ""), now.UnixMicro(), limitOf(filter.Limit))
}

// WorkspaceOf returns the workspace that a session, round, message, call, approval, question, rule
// or undo belongs to, a removed one too. It returns CodeNotFound for an id of none of these.
func (s tokenStore) WorkspaceOf(ctx context.Context, id regie.ID) (out regie.ID, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT workspace_id FROM sessions WHERE id = ?1
		UNION ALL SELECT workspace_id FROM rules WHERE id = ?1
		UNION ALL SELECT workspace_id FROM undos WHERE id = ?1
		UNION ALL SELECT workspace_id FROM automations WHERE id = ?1
		UNION ALL SELECT s.workspace_id FROM rounds x JOIN sessions s ON s.n = x.session WHERE x.id = ?1
		UNION ALL SELECT s.workspace_id FROM calls x JOIN sessions s ON s.n = x.session WHERE x.id = ?1
		UNION ALL SELECT s.workspace_id FROM approvals x JOIN sessions s ON s.n = x.session WHERE x.id = ?1
		UNION ALL SELECT s.workspace_id FROM messages x JOIN sessions s ON s.n = x.session WHERE x.id = ?1
		UNION ALL SELECT s.workspace_id FROM waits x JOIN sessions s ON s.n = x.session WHERE x.id = ?1`, id).Scan(&out)
	return out, unlessFound(err, regie.Errorf(regie.CodeNotFound, "there is nothing %s here", id))
}
