package httpapi

import (
	_ "embed" // for openapi.json
	"net/http"
	"runtime"

	"github.com/regie-run/regie"
)

// document is the OpenAPI document, made from the operations by make openapi; a test compares them.
//
//go:embed openapi.json
var document []byte

// docsPage shows the document without a line of script: it is read by people, and by whatever they use.
//
//go:embed docs.html
var docsPage []byte

// about serves what tells of the server itself.
func (s *server) about(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, http.StatusOK, map[string]string{"version": s.Version, "go": runtime.Version(), "api": "v1"}, nil)
	})
	mux.HandleFunc("GET /openapi.json", s.requires(anybody, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) // the client has gone if this fails
	}))
	mux.HandleFunc("GET /docs", s.requires(anybody, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		_, _ = w.Write(docsPage) // the client has gone if this fails
	}))
	if s.Metrics != nil {
		mux.HandleFunc("GET /metrics", s.requires(regie.ScopeMetrics, s.whole(s.Metrics.ServeHTTP)))
	}
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
}

// ready says whether the server can do its work, and what keeps it from that (spec 10.2).
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	out := readiness{Ready: true, Checks: []Check{}}
	if s.Ready != nil {
		out.Checks = s.Ready(r.Context())
	}
	status := http.StatusOK
	for i := range out.Checks {
		if out.Checks[i].Problem != "" {
			out.Ready, status = false, http.StatusServiceUnavailable
		}
	}
	s.answer(w, r, status, out, nil)
}
