package storetest

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

var tokenCases = map[string]func(*World){
	"Tokens":        tokens,
	"TokensRefused": tokensRefused,
	"WorkspaceOf":   workspaceOf,
	"Visitors":      visitors,
}

func createToken(w *World, of regie.Token) (regie.Token, regie.Hash) {
	w.T.Helper()
	of.ID, of.UserID, of.CreatedBy = regie.NewID(), w.User, "ada"
	if of.Kind == "" {
		of.Kind = regie.TokenAPI
	}
	if of.Scopes == nil {
		of.Scopes = []regie.TokenScope{regie.ScopeRead}
	}
	hash := regie.HashOf([]byte(of.ID.String()))
	made := resultOf(w.Store.CreateToken(w.Ctx, store.NewToken{Token: of, Hash: hash}))(w)
	return made, hash
}

func (w *World) tokenIDs(filter store.TokenFilter, at time.Time) (out []regie.ID) {
	list := resultOf(w.Store.Tokens(w.Ctx, filter, at))(w)
	for i := range list {
		out = append(out, list[i].ID)
	}
	return out
}

// tokens are made, found by their secret, used, listed and revoked, and their user's log has it
// (spec 11.2, decision 15).
func tokens(w *World) {
	end := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	first, secret := createToken(w, regie.Token{
		Name: "deploy \x1b ü", Scopes: []regie.TokenScope{regie.ScopeChat, regie.ScopeRead},
		Workspaces: []regie.ID{w.Workspace.ID}, OnApproval: "park", ExpiresAt: end,
	})
	second, _ := createToken(w, regie.Token{Name: "firefox", Kind: regie.TokenBrowser})
	found, user, err := w.Store.TokenBySecret(w.Ctx, secret)
	w.must(err)
	w.equal("the token", found, first)
	w.equal("its user", user.ID, w.User)
	w.equal("its state", []regie.TokenState{found.StateAt(end.Add(-1)), found.StateAt(end)},
		[]regie.TokenState{regie.TokenActive, regie.TokenExpired})
	_, _, err = w.Store.TokenBySecret(w.Ctx, regie.HashOf([]byte("another")))
	w.refused(regie.CodeNotFound, err)

	used := time.Now().Truncate(time.Microsecond).UTC()
	for _, at := range []time.Time{used, used.Add(9 * time.Minute)} { // the second is too soon
		w.must(w.Store.TokenUsed(w.Ctx, first.ID, at, 10*time.Minute))
		found, _, err = w.Store.TokenBySecret(w.Ctx, secret)
		w.must(err)
		w.equal("last used", found.LastUsedAt, used)
	}

	ids := w.tokenIDs
	digits := first.ID.String()
	w.equal("active", ids(store.TokenFilter{}, used), []regie.ID{first.ID, second.ID})
	w.equal("active later", ids(store.TokenFilter{UserID: w.User}, end), []regie.ID{second.ID})
	w.equal("all", ids(store.TokenFilter{Ended: true}, end), []regie.ID{first.ID, second.ID})
	w.equal("the first that opens something then", ids(store.TokenFilter{Limit: 1}, end), []regie.ID{second.ID})
	w.equal("behind the first", ids(store.TokenFilter{After: store.Mark{At: first.CreatedAt, ID: first.ID}, Limit: 5},
		used), []regie.ID{second.ID})
	w.equal("behind the last",
		len(ids(store.TokenFilter{After: store.Mark{At: second.CreatedAt, ID: second.ID}, Ended: true}, used)), 0)
	w.equal("browsers", ids(store.TokenFilter{Kind: regie.TokenBrowser}, used), []regie.ID{second.ID})
	w.equal("by its end", ids(store.TokenFilter{Short: digits[len(digits)-8:]}, end), []regie.ID{first.ID})
	w.equal("nobody's", len(ids(store.TokenFilter{UserID: regie.NewID(), Ended: true}, used)), 0)
	_, err = w.Store.Tokens(w.Ctx, store.TokenFilter{Short: "%"}, used)
	w.refused(regie.CodeBadID, err)

	before := w.head(w.User)
	w.equal("events of two tokens", before, int64(2))
	w.refused(regie.CodeNotFound, w.Store.RevokeTokens(w.Ctx, store.RevokeTokens{
		TokenIDs: []regie.ID{first.ID, regie.NewID()}, By: "bob",
	}))
	w.equal("all or none", ids(store.TokenFilter{}, used), []regie.ID{first.ID, second.ID})
	for range 2 {
		w.must(w.Store.RevokeTokens(w.Ctx, store.RevokeTokens{TokenIDs: []regie.ID{first.ID}, By: "bob"}))
		w.equal("the log of the user", w.head(w.User), before+1)
	}
	found, _, err = w.Store.TokenBySecret(w.Ctx, secret)
	w.must(err)
	w.equal("revoked", []any{found.StateAt(used), found.RevokedBy}, []any{regie.TokenRevoked, "bob"})
	w.must(w.Store.TokenUsed(w.Ctx, first.ID, used.Add(time.Hour), time.Minute))
	again, _, err := w.Store.TokenBySecret(w.Ctx, secret)
	w.must(err)
	w.equal("what is revoked is not used", again, found)

	events := resultOf(w.Store.Events(w.Ctx, w.User, before, 10))(w)
	var told struct {
		TokenID regie.ID         `json:"token_id"`
		State   regie.TokenState `json:"state"`
		By      string           `json:"by"`
	}
	w.must(json.Unmarshal(events[0].Body, &told))
	w.equal("the event", []any{len(events), events[0].Type, told.TokenID, told.State, told.By},
		[]any{1, regie.EventToken, first.ID, regie.TokenRevoked, "bob"})
	report := resultOf(w.Store.Verify(w.Ctx, w.User))(w)
	w.equal("verified", report.Events, int64(3))
	logs := resultOf(w.Store.Logs(w.Ctx, store.LogFilter{ID: w.User}))(w)
	w.equal("logs", []any{len(logs), logs[0].Kind}, []any{1, "user"})
}

// tokensRefused: an id is used once, and only for an existing user and existing workspaces.
func tokensRefused(w *World) {
	first, _ := createToken(w, regie.Token{Name: "one"})
	head := w.head(w.User)
	try := func(change func(*regie.Token)) error {
		token := first
		token.ID = regie.NewID()
		change(&token)
		_, err := w.Store.CreateToken(w.Ctx, store.NewToken{
			Token: token,
			Hash:  regie.HashOf([]byte(regie.NewID().String())),
		})
		return err
	}
	w.refused(regie.CodeConflict, try(func(t *regie.Token) { t.ID = first.ID }))
	w.refused(regie.CodeNotFound, try(func(t *regie.Token) { t.UserID = regie.NewID() }))
	w.refused(regie.CodeNotFound, try(func(t *regie.Token) {
		t.Workspaces = []regie.ID{
			w.Workspace.ID, regie.NewID(),
		}
	}))
	w.equal("nothing was told", w.head(w.User), head)
}

// workspaceOf finds the workspace of every kind of id that a request can name.
func workspaceOf(w *World) {
	fence, reply, asked := w.Ask(1)
	rule := w.Standing(time.Time{})
	for what, id := range map[string]regie.ID{
		"session": fence.SessionID, "round": fence.RoundID, "call": reply.Calls[0].ID,
		"approval": asked.ID, "rule": rule.ID,
	} {
		got := resultOf(w.Store.WorkspaceOf(w.Ctx, id))(w)
		w.equal("the workspace of the "+what, got, w.Workspace.ID)
	}
	_, err := w.Store.WorkspaceOf(w.Ctx, regie.NewID())
	w.refused(regie.CodeNotFound, err)
}
