package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// cacheStats says what is in the response cache.
func (s *server) cacheStats(w http.ResponseWriter, r *http.Request) {
	stats, err := s.control.CacheStats(r.Context(), r.URL.Query().Get("root"))
	s.answer(w, r, http.StatusOK, stats, err)
}

func (s *server) clearCache(w http.ResponseWriter, r *http.Request) {
	var in dispatch.ClearRequest
	var out dispatch.Cleared
	err := decode(w, r, &in)
	if err == nil {
		out, err = s.control.ClearCache(r.Context(), in)
	}
	s.answer(w, r, http.StatusOK, out, err)
}

// CacheStats implements dispatch.Caching.
func (c *Client) CacheStats(ctx context.Context, root string) (store.CacheStats, error) {
	var out store.CacheStats
	err := c.call(ctx, http.MethodGet, "/api/v1/cache?"+url.Values{"root": {root}}.Encode(), nil, &out)
	return out, err
}

// ClearCache implements dispatch.Caching.
func (c *Client) ClearCache(ctx context.Context, in dispatch.ClearRequest) (dispatch.Cleared, error) {
	var out dispatch.Cleared
	err := c.call(ctx, http.MethodPost, "/api/v1/cache/clear", in, &out)
	return out, err
}
