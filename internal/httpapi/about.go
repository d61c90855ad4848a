package httpapi

import (
	_ "embed" // for openapi.json
	"net/http"
	"runtime"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
)

// document is the OpenAPI document, made from the operations by make openapi; a test compares them.
//
//go:embed openapi.json
var document []byte

// docsPage shows the document without a line of script: it is read by people, and by whatever they
// use.
//
//go:embed docs.html
var docsPage []byte

// Route is an address beside this interface, with what is to be said of it.
type Route struct{ Method, Path, Summary string }

// beside is a Route that tells of the server itself: what serves it, and what it answers with.
type beside struct {
	Route
	scope  regie.TokenScope // empty: whoever reaches the server may ask
	status int
	kind   string // of what is answered; empty for nothing
	serve  http.HandlerFunc
}

// besides are served, and documented, beside the operations.
func (s *server) besides() []beside {
	get := func(path, summary string, scope regie.TokenScope, status int, kind string, serve http.HandlerFunc) beside {
		return beside{Route{http.MethodGet, path, summary}, scope, status, kind, serve}
	}
	out := []beside{
		get("/healthz", "Whether the process answers", "", http.StatusNoContent, "",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
		get("/readyz", "Whether the server can do its work, by named checks; 503 where it cannot", "", http.StatusOK,
			"application/json", s.ready),
		get("/version", "The version of the program", "", http.StatusOK, "application/json",
			func(w http.ResponseWriter, r *http.Request) {
				said := map[string]string{"version": s.Version, "go": runtime.Version(), "api": "v1"}
				s.answer(w, r, http.StatusOK, said, nil)
			}),
		get("/openapi.json", "This interface as an OpenAPI document", control.EveryCaller, http.StatusOK,
			"application/json", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(document) // the client has gone if this fails
			}),
		get("/docs", "This interface as a page", control.EveryCaller, http.StatusOK, "text/html", docs),
		get("/metrics", "What is measured, for Prometheus", regie.ScopeMetrics, http.StatusOK, "text/plain", nil),
	}
	if s.Metrics != nil {
		out[len(out)-1].serve = s.whole(s.Metrics.ServeHTTP)
	}
	return out
}

// about serves what tells of the server itself.
func (s *server) about(mux *http.ServeMux) {
	for _, b := range s.besides() {
		switch {
		case b.serve == nil:
		case b.scope == "":
			mux.HandleFunc(b.Method+" "+b.Path, b.serve)
		default:
			mux.HandleFunc(b.Method+" "+b.Path, s.requires(b.scope, b.serve))
		}
	}
}

// docs serves the page.
func docs(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	_, _ = w.Write(docsPage) // the client has gone if this fails
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
