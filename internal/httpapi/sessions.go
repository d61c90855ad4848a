package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

func (s *server) sessionRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/sessions", s.sessions)
	mux.HandleFunc("GET /api/v1/sessions/{id}", about(s, s.control.Session))
	mux.HandleFunc("PATCH /api/v1/sessions/{id}", s.rename)
	mux.HandleFunc("DELETE /api/v1/sessions/{id}", s.remove)
	mux.HandleFunc("POST /api/v1/sessions/{id}/fork", s.fork)
	mux.HandleFunc("PUT /api/v1/sessions/{id}/read", s.read)
	mux.HandleFunc("GET /api/v1/sessions/{id}/export", about(s, s.control.Export))
	mux.HandleFunc("GET /api/v1/rounds/{id}/replay", about(s, s.control.Replay))
	mux.HandleFunc("GET /api/v1/verify", s.verify)
}

// about answers a request about one thing that its address names.
func about[T any](s *server, ask func(context.Context, regie.ID) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := regie.ParseID(r.PathValue("id"))
		if err != nil {
			s.fail(w, r, err)
			return
		}
		out, err := ask(r.Context(), id)
		s.answer(w, r, http.StatusOK, out, err)
	}
}

// selection is what lists are selected by.
func selection(query url.Values) (root, short string, id regie.ID, limit int, err error) {
	root, short = query.Get("root"), query.Get("short")
	if text := query.Get("id"); text != "" {
		id, err = regie.ParseID(text)
	}
	if text := query.Get("limit"); err == nil && text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 1000 {
			err = regie.Errorf(regie.CodeBadRequest, "limit must be a number from 1 to 1000")
		}
	}
	return root, short, id, limit, err
}

func (s *server) sessions(w http.ResponseWriter, r *http.Request) {
	var filter store.SessionFilter
	var err error
	var out []store.SessionSummary
	filter.Root, filter.Short, filter.ID, filter.Limit, err = selection(r.URL.Query())
	if err == nil {
		out, err = s.control.Sessions(r.Context(), filter)
	}
	s.answer(w, r, http.StatusOK, out, err)
}

func (s *server) verify(w http.ResponseWriter, r *http.Request) {
	var filter store.LogFilter
	var err error
	var out []store.LogReport
	filter.Root, filter.Short, filter.ID, _, err = selection(r.URL.Query())
	if err == nil {
		out, err = s.control.Verify(r.Context(), filter)
	}
	s.answer(w, r, http.StatusOK, out, err)
}

// addressed reads a request whose address says which session it is about; named is the same in its body.
func addressed(w http.ResponseWriter, r *http.Request, in any, named *regie.ID) error {
	id, err := regie.ParseID(r.PathValue("id"))
	if err == nil {
		err = decode(w, r, in)
	}
	if err == nil && !named.IsZero() && *named != id {
		err = regie.Errorf(regie.CodeBadRequest, "the request is about another session than its address")
	}
	*named = id
	return err
}

func (s *server) fork(w http.ResponseWriter, r *http.Request) {
	var in dispatch.ForkRequest
	var out store.Forked
	err := addressed(w, r, &in, &in.From)
	if err == nil {
		out, err = s.control.Fork(r.Context(), in)
	}
	s.answer(w, r, http.StatusCreated, out, err)
}

func (s *server) rename(w http.ResponseWriter, r *http.Request) {
	var in dispatch.RenameRequest
	err := addressed(w, r, &in, &in.SessionID)
	if err == nil {
		err = s.control.Rename(r.Context(), in)
	}
	s.answer(w, r, http.StatusOK, struct{}{}, err)
}

func (s *server) read(w http.ResponseWriter, r *http.Request) {
	var in dispatch.ReadRequest
	err := addressed(w, r, &in, &in.SessionID)
	if err == nil {
		err = s.control.MarkRead(r.Context(), in)
	}
	s.answer(w, r, http.StatusOK, struct{}{}, err)
}

func (s *server) remove(w http.ResponseWriter, r *http.Request) {
	var out store.Removed
	id, err := regie.ParseID(r.PathValue("id"))
	if err == nil {
		out, err = s.control.Remove(r.Context(), dispatch.RemoveRequest{SessionID: id, By: r.URL.Query().Get("by")})
	}
	s.answer(w, r, http.StatusOK, out, err)
}

func selected(root, short string, id regie.ID, limit int) string {
	query := url.Values{"root": {root}, "short": {short}}
	if !id.IsZero() {
		query.Set("id", id.String())
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	return "?" + query.Encode()
}

// Sessions implements dispatch.Sessions.
func (c *Client) Sessions(ctx context.Context, f store.SessionFilter) (out []store.SessionSummary, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/sessions"+selected(f.Root, f.Short, f.ID, f.Limit), nil, &out)
	return out, err
}

// Session implements dispatch.Sessions.
func (c *Client) Session(ctx context.Context, session regie.ID) (out store.SessionView, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/sessions/"+session.String(), nil, &out)
	return out, err
}

// Fork implements dispatch.Sessions.
func (c *Client) Fork(ctx context.Context, in dispatch.ForkRequest) (out store.Forked, err error) {
	err = c.call(ctx, http.MethodPost, "/api/v1/sessions/"+in.From.String()+"/fork", in, &out)
	return out, err
}

// Remove implements dispatch.Sessions.
func (c *Client) Remove(ctx context.Context, in dispatch.RemoveRequest) (out store.Removed, err error) {
	err = c.call(ctx, http.MethodDelete, "/api/v1/sessions/"+in.SessionID.String()+"?"+url.Values{"by": {in.By}}.Encode(), nil, &out)
	return out, err
}

// Rename implements dispatch.Sessions.
func (c *Client) Rename(ctx context.Context, in dispatch.RenameRequest) error {
	return c.call(ctx, http.MethodPatch, "/api/v1/sessions/"+in.SessionID.String(), in, nil)
}

// MarkRead implements dispatch.Sessions.
func (c *Client) MarkRead(ctx context.Context, in dispatch.ReadRequest) error {
	return c.call(ctx, http.MethodPut, "/api/v1/sessions/"+in.SessionID.String()+"/read", in, nil)
}

// Export implements dispatch.Sessions.
func (c *Client) Export(ctx context.Context, session regie.ID) (out store.SessionExport, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/sessions/"+session.String()+"/export", nil, &out)
	return out, err
}

// Verify implements dispatch.Sessions.
func (c *Client) Verify(ctx context.Context, f store.LogFilter) (out []store.LogReport, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/verify"+selected(f.Root, f.Short, f.ID, 0), nil, &out)
	return out, err
}

// Replay implements dispatch.Sessions.
func (c *Client) Replay(ctx context.Context, round regie.ID) (out dispatch.Replay, err error) {
	err = c.call(ctx, http.MethodGet, "/api/v1/rounds/"+round.String()+"/replay", nil, &out)
	return out, err
}
