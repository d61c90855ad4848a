package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/store"
)

func (s *server) listTokens(ctx context.Context, filter store.TokenFilter) (Page[regie.Token], error) {
	limit := nextPage(&filter.Limit)
	found, err := s.Service.Tokens.List(ctx, filter)
	return cutPage("tokens", found, limit, func(t *regie.Token) store.Mark {
		return store.Mark{At: t.CreatedAt, ID: t.ID}
	}), err
}

// identityOperations returns about who may ask (spec 11.2).
func (s *server) identityOperations() []operation {
	logout := describeOperation[none, none, none](http.MethodPost, "/logout", "logout",
		"End the login of this browser: its cookie opens nothing any more", http.StatusOK)
	logout.serve = s.serveLogout
	return []operation{
		listAll(s, "/users", "list_users", "The users: of a single-user installation its one", s.Service.Users.List),
		newOperation(s, http.MethodGet, "/users/me", "show_me", "Who you are here, and what your token opens",
			http.StatusOK,
			withoutInput(s.Service.Users.Me)),
		getByQuery(s, "/tokens", "list_tokens", "API tokens, and the logins of browsers; secrets are never shown again",
			s.listTokens),
		newOperation(s, http.MethodPost, "/tokens", "add_token", "Make an API token; its secret is shown this once",
			http.StatusCreated,
			func(ctx context.Context, in *request[none, control.TokenRequest]) (control.MadeToken, error) {
				setKeyedID(in.Key, &in.Body.TokenID)
				return s.Service.Tokens.Add(ctx, in.Body)
			}),
		getByID(s, http.MethodDelete, "/tokens/{id}", "revoke_token",
			"End a token, or the login of a browser: it opens nothing any more",
			withoutAnswer(func(ctx context.Context, id regie.ID) error {
				return s.Service.Tokens.Revoke(ctx, control.RevokeTokensRequest{TokenIDs: []regie.ID{id}})
			})),
		postBody(s, "/tokens/revoke", "revoke_tokens", "End tokens, all of them or none",
			withoutAnswer(s.Service.Tokens.Revoke)),
		newOperation(s, http.MethodPost, "/setup-links", "make_setup_link",
			"A link that lets one browser in, once, within a quarter of an hour; no token makes one",
			http.StatusCreated, withoutInput(s.Service.Tokens.LinkBrowser)),
		logout,
	}
}

// serveLogout ends a browser's login: the row behind its cookie, which is what it is known by, and
// the cookie.
func (s *server) serveLogout(w http.ResponseWriter, r *http.Request) {
	caller := access.From(r.Context())
	if caller == nil || caller.Via != access.ViaBrowser {
		s.writeError(w, r, regie.Errorf(regie.CodeConflict, "this is no browser: a token ends when it is revoked"))
		return
	}
	err := s.Service.Tokens.Revoke(r.Context(), control.RevokeTokensRequest{TokenIDs: []regie.ID{caller.Token.ID}})
	if err == nil {
		http.SetCookie(w, sessionCookie(r, "", time.Unix(1, 0)))
	}
	s.writeAnswer(w, r, http.StatusOK, none{}, err)
}
