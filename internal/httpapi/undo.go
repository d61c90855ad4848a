package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

func (s *server) undoRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/v1/undos/plan", asked(s, s.control.PlanUndo))
	mux.HandleFunc("POST /api/v1/undos", asked(s, s.control.Undo))
	mux.HandleFunc("POST /api/v1/sessions/{id}/undo", s.undoIn)
}

// asked answers a request that says in its body what it wants.
func asked[In, Out any](s *server, do func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		var out Out
		err := decode(w, r, &in)
		if err == nil {
			out, err = do(r.Context(), in)
		}
		s.answer(w, r, http.StatusOK, out, err)
	}
}

// undoIn undoes in the session of the address (spec 10.2).
func (s *server) undoIn(w http.ResponseWriter, r *http.Request) {
	var in dispatch.UndoRequest
	var out regie.Undo
	err := addressed(w, r, &in, &in.SessionID)
	if err == nil {
		out, err = s.control.Undo(r.Context(), in)
	}
	s.answer(w, r, http.StatusOK, out, err)
}

// PlanUndo implements dispatch.Undoing.
func (c *Client) PlanUndo(ctx context.Context, in dispatch.UndoRequest) (out regie.UndoPlan, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/undos/plan", in, &out)
	return out, err
}

// Undo implements dispatch.Undoing.
func (c *Client) Undo(ctx context.Context, in dispatch.UndoRequest) (out regie.Undo, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/undos", in, &out)
	return out, err
}
