package app

import (
	"context"
	"errors"
	"os/user"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/workspace"
)

// ensureUser returns the one user of this installation (spec 11.2), made the first time.
func (e *Engine) ensureUser(ctx context.Context) (regie.User, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.owner.ID.IsZero() {
		return e.owner, nil
	}
	owner, err := e.store.EnsureUser(ctx, userName())
	if err == nil {
		e.owner = owner
	}
	return owner, err
}

func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "local"
}

// checkServes says why a stored round cannot go on with this engine, or nil: its settings are
// others, or, where several share a database, its files are not here. It stays as it is for an
// engine that can.
func (e *Engine) checkServes(round regie.Round) error {
	if e.providers.settingsOf(round.Provider, round.Pin) == nil {
		return dispatch.ErrNoProvider
	}
	if _, err := e.providers.modelOf(round.Provider, round.Pin); err != nil {
		return errors.Join(dispatch.ErrNoProvider, err)
	}
	if e.config.Database == "" {
		return nil
	}
	_, place, err := e.store.Session(context.Background(), round.SessionID)
	if err != nil {
		return err
	}
	root, err := workspace.Open(place.Root)
	if err != nil {
		return regie.Errorf(regie.CodeOf(err), "the run's directory is not on this machine; it continues where it is: %v",
			err)
	}
	return root.Close()
}
