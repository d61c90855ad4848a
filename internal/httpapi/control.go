package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// controlRoutes are requestSessionControl and its end (spec 5.1, decision 43).
func (s *server) controlRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/v1/sessions/{id}/control", func(w http.ResponseWriter, r *http.Request) {
		var out store.Controlled
		id, err := regie.ParseID(r.PathValue("id"))
		if err == nil {
			out, err = s.control.Control(r.Context(), id)
		}
		s.answer(w, r, http.StatusOK, out, err)
	})
	mux.HandleFunc("DELETE /api/v1/sessions/{id}/control", func(w http.ResponseWriter, r *http.Request) {
		id, err := regie.ParseID(r.PathValue("id"))
		if err == nil {
			err = s.control.ReleaseControl(r.Context(), id)
		}
		s.answer(w, r, http.StatusOK, struct{}{}, err)
	})
}

// Control implements dispatch.Control.
func (c *Client) Control(ctx context.Context, session regie.ID) (store.Controlled, error) {
	var out store.Controlled
	err := c.call(ctx, http.MethodPost, "/api/v1/sessions/"+session.String()+"/control", nil, &out)
	return out, err
}

// ReleaseControl implements dispatch.Control.
func (c *Client) ReleaseControl(ctx context.Context, session regie.ID) error {
	return c.call(ctx, http.MethodDelete, "/api/v1/sessions/"+session.String()+"/control", nil, nil)
}
