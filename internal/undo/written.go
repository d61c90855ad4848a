package undo

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Written returns the files of a workspace that calls and undos have changed since a moment, each
// as the last one left it. busy reports a call that has not ended: its changes are unknown.
func (u *Undoer) Written(ctx context.Context, place regie.Workspace, since time.Time) (
	after map[string]regie.FileState, busy bool, err error,
) {
	later, err := u.Store.Later(ctx, place.ID, since)
	if err != nil {
		return nil, false, err
	}
	after = map[string]regie.FileState{}
	b := &builder{Undoer: u, source: store.UndoSource{Workspace: place}}
	for i := range later.Calls {
		busy = busy || later.Calls[i].State == regie.CallStarted
		changes, err := b.changesOf(ctx, &later.Calls[i])
		if err != nil { // a tool that changes no files
			continue
		}
		for _, c := range changes {
			after[c.Path] = c.After
		}
	}
	for i := range later.Undos {
		for _, c := range regie.ChangesOf(&later.Undos[i]) {
			after[c.Path] = c.After
		}
	}
	return after, busy, nil
}
