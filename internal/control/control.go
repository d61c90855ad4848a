// Package control is Regie's service: what every surface can do, in one type per noun
// (docs/design.md). The caller is in the context. Each method begins with authorize, and a table
// there says who may do what. The nouns that are not here yet are in dispatch.Control.
package control

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Store is what the service needs of the database.
type Store interface {
	CreateToken(ctx context.Context, in store.NewToken) (regie.Token, error)
	RevokeTokens(ctx context.Context, in store.RevokeTokens) error
	Tokens(ctx context.Context, filter store.TokenFilter, now time.Time) ([]regie.Token, error)
	UserName(ctx context.Context, id regie.ID) (string, error)
	Workspaces(ctx context.Context) ([]regie.Workspace, error)
}

// Config is what a Service works with. Every field is required.
type Config struct {
	Store Store
	// Owner returns the user of this installation.
	Owner func(ctx context.Context) (regie.User, error)
	// Writable returns why this process must not change what is stored; nil if it may.
	Writable func() error
	// Present returns what is known of people being there.
	Present func() *dispatch.Present
}

// Service is the service of one engine. Its methods may be called from any goroutine.
type Service struct {
	Users    *Users
	Tokens   *Tokens
	Presence *PresenceService
}

// New returns a service.
func New(c Config) *Service {
	return &Service{Users: &Users{c}, Tokens: &Tokens{Config: c}, Presence: &PresenceService{c}}
}
