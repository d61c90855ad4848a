package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// Undos take changes of files back, as control.Undos.
type Undos struct{ client *Client }

// Plan says what an undo would do now, with its conflicts; it changes nothing.
func (u *Undos) Plan(ctx context.Context, in dispatch.UndoRequest) (regie.UndoPlan, error) {
	return ask[regie.UndoPlan](ctx, u.client, http.MethodPost, "/api/v1/undos/plan", in)
}

// Undo undoes. With a conflict nothing happens.
func (u *Undos) Undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error) {
	if in.UndoID.IsZero() { // a repetition is the same undo
		in.UndoID = regie.NewID()
	}
	return ask[regie.Undo](ctx, u.client, http.MethodPost, "/api/v1/undos", in)
}
