package access

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Store is what a Gate needs of the database.
type Store interface {
	CreateToken(ctx context.Context, in store.NewToken) (regie.Token, error)
	RevokeTokens(ctx context.Context, in store.RevokeTokens) error
	TokenBySecret(ctx context.Context, secret regie.Hash) (regie.Token, regie.User, error)
	TokenUsed(ctx context.Context, id regie.ID, at time.Time, while time.Duration) error
	Tokens(ctx context.Context, filter store.TokenFilter, now time.Time) ([]regie.Token, error)
	VisitorBySecret(ctx context.Context, secret regie.Hash) (store.Visitor, error)
}

// Gate lets callers in, and knows what each has open. Its methods may be called from any goroutine.
type Gate struct {
	// Store and Owner are required. Owner is the token of the data directory; User is its user.
	Store Store
	Owner string
	User  regie.User
	// Limits are those of each token.
	Limits Limits
	Log    *slog.Logger // nil discards

	once  sync.Once
	owner *Caller // one for all of the owner's streams, each of which holds it

	mu    sync.Mutex
	open  map[*visit]struct{} // of tokens, until they end
	loads map[regie.ID]*load  // by token
}

const (
	// usedEvery is how coarse the last use of a token is known.
	usedEvery = 10 * time.Minute
	// lookEvery is how often what is open is looked at again.
	lookEvery = 2 * time.Second
	// browserTime is how long a browser stays known.
	browserTime = 30 * 24 * time.Hour
)

// Admit finds who shows a secret: as bearer, or as a browser's cookie. It returns CodeNoToken for
// what is no secret or none that is known, CodeTokenEnded for one that is expired or revoked, and
// the store's codes.
func (g *Gate) Admit(ctx context.Context, secret string, kind regie.TokenKind) (*Caller, error) {
	if kind == regie.TokenAPI && Same(secret, g.Owner) {
		g.once.Do(func() { g.owner = &Caller{User: g.User, Via: ViaFile} })
		return g.owner, nil
	}
	if !Whole(secret) {
		return nil, regie.Errorf(regie.CodeNoToken,
			"the token of the request is not one of Regie's: was it copied completely?")
	}
	token, user, err := g.Store.TokenBySecret(ctx, HashOf(secret))
	now := time.Now()
	switch {
	case regie.CodeOf(err) == regie.CodeNotFound || err == nil && token.Kind != kind:
		return nil, regie.Errorf(regie.CodeNoToken,
			"the token is unknown here: regie token list shows the known ones")
	case err != nil:
		return nil, err
	case kind == regie.TokenBrowser && token.StateAt(now) != regie.TokenActive:
		return nil, regie.Errorf(regie.CodeTokenEnded,
			"this browser is logged out, or its login has expired: regie web creates a new link")
	case token.StateAt(now) == regie.TokenRevoked:
		return nil, regie.Errorf(regie.CodeTokenEnded,
			"the token %s was revoked: create another one with regie token add", token.Name)
	case token.StateAt(now) == regie.TokenExpired:
		return nil, regie.Errorf(regie.CodeTokenEnded,
			"the token %s has expired: create another one with regie token add", token.Name)
	}
	g.note(ctx, token.ID, token.LastUsedAt, now)
	via := ViaToken
	if kind == regie.TokenBrowser {
		via = ViaBrowser
	}
	return &Caller{User: user, Via: via, Token: token}, nil
}

// AdmitVisitor finds who shows the secret of a visitor of a widget; without a secret it returns one
// who has no session yet. It returns CodeNoToken for an unknown secret, CodeTokenEnded for one that
// is expired, and the store's codes. No other secret opens a widget, and this one opens nothing
// else.
func (g *Gate) AdmitVisitor(ctx context.Context, widget, secret string) (*Caller, error) {
	caller := &Caller{
		Via: ViaVisitor, Visitor: &Visitor{Widget: widget}, Token: regie.Token{ID: regie.NewID(), Name: widget},
	}
	if secret == "" {
		return caller, nil
	}
	unknown := regie.Errorf(regie.CodeNoToken, "this chat is unknown here: send a message to begin a new one")
	if !Whole(secret) {
		return nil, unknown
	}
	found, err := g.Store.VisitorBySecret(ctx, HashOf(secret))
	switch {
	case regie.CodeOf(err) == regie.CodeNotFound || err == nil && found.Widget != widget:
		return nil, unknown
	case err != nil:
		return nil, err
	case !time.Now().Before(found.ExpiresAt):
		return nil, regie.Errorf(regie.CodeTokenEnded, "this chat has ended: send a message to begin a new one")
	}
	caller.Visitor.Session, caller.Token.ID = found.SessionID, found.SessionID
	caller.Token.ExpiresAt = found.ExpiresAt
	return caller, nil
}

// note writes down that a token is used, seldom. That it cannot be written is no reason to refuse
// who uses it.
func (g *Gate) note(ctx context.Context, id regie.ID, last, now time.Time) {
	if now.Sub(last) < usedEvery {
		return
	}
	if err := g.Store.TokenUsed(ctx, id, now, usedEvery); err != nil && ctx.Err() == nil {
		g.log().Warn("when a token was used could not be noted", "token", id.String(), "code",
			string(regie.CodeOf(err)), "error", err)
	}
}

func (g *Gate) log() *slog.Logger { return cmp.Or(g.Log, slog.New(slog.DiscardHandler)) }

// Login makes a browser known for thirty days, and returns its secret with when that ends.
func (g *Gate) Login(ctx context.Context, name string) (secret string, until time.Time, err error) {
	secret, until = NewSecret(), time.Now().Add(browserTime)
	_, err = g.Store.CreateToken(ctx, store.NewToken{Hash: HashOf(secret), Token: regie.Token{
		ID: regie.NewID(), UserID: g.User.ID, Kind: regie.TokenBrowser, Name: name, Scopes: regie.TokenScopes(),
		CreatedBy: "setup link", ExpiresAt: until,
	}})
	return secret, until, err
}

// ErrEnded is why what a token has open ends with it.
var ErrEnded = regie.Errorf(regie.CodeTokenEnded, "the token was revoked, or has expired")

// Watch closes the streams of tokens that expired or were revoked on any node, until ctx ends.
func (g *Gate) Watch(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			g.Look(ctx)
		}
	}
}

// Look ends what is open of tokens that are active no more, at once. While the store does not
// answer, everything stays as it is.
func (g *Gate) Look(ctx context.Context) {
	g.tidy(time.Now())
	g.mu.Lock()
	idle := len(g.open) == 0
	g.mu.Unlock()
	if idle {
		return
	}
	active, err := g.Store.Tokens(ctx, store.TokenFilter{}, time.Now())
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			g.log().Warn("whether tokens were revoked could not be seen", "code",
				string(regie.CodeOf(err)), "error", err)
		}
		return
	}
	known := map[regie.ID]bool{}
	for i := range active {
		known[active[i].ID] = true
	}
	var ended []*visit
	g.mu.Lock()
	for v := range g.open {
		if v.caller.Visitor != nil && time.Now().Before(v.caller.Token.ExpiresAt) {
			continue
		}
		if !known[v.caller.Token.ID] {
			ended = append(ended, v)
		}
	}
	g.mu.Unlock()
	for _, v := range ended {
		v.cancel(ErrEnded)
	}
}
