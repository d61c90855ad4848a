package compat

import (
	"context"
	"net/http"
	"strings"
)

// Proxy passes requests for provider/model on to configured providers.
type Proxy interface {
	// Models lists what can be named, as provider/model.
	Models(ctx context.Context) []string
	// Has reports whether a provider is configured.
	Has(provider string) bool
}

// proxies reports whether a model is one of a provider: provider/name.
func (s *server) proxies(model string) bool {
	provider, name, ok := strings.Cut(model, "/")
	return ok && name != "" && s.Proxy != nil && s.Proxy.Has(provider)
}

func (s *server) proxyChat(w http.ResponseWriter, r *http.Request, model string, data []byte) {
	s.fail(w, r, noModel(model))
}

func (s *server) proxyResponses(w http.ResponseWriter, r *http.Request, model string, data []byte) {
	s.fail(w, r, noModel(model))
}
