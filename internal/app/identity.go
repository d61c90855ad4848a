package app

import (
	"context"

	"github.com/regie-run/regie"
)

// user is the one user of this installation (spec 11.2).
func (l *local) user(ctx context.Context) (regie.User, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.own(ctx)
	return l.owner, err
}
