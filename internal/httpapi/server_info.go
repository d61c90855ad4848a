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

// beside is an address outside this interface that describes the server itself.
type beside struct {
	path, summary string
	scope         regie.TokenScope // empty: whoever reaches the server may ask
	status        int
	kind          string // of what is answered; empty for nothing
	serve         http.HandlerFunc
}

// plainRoutes returns the addresses that are served and documented in addition to the operations.
func (s *server) plainRoutes() []beside {
	const ok, plain = http.StatusOK, "application/json"
	return []beside{
		{"/healthz", "Whether the process answers", "", http.StatusNoContent, "", serveAlive},
		{"/readyz", "Whether the server can do its work, by named checks; 503 where it cannot", "", ok, plain, s.serveReady},
		{"/version", "The version of the program", "", ok, plain, s.serveVersion},
		{"/openapi.json", "This interface as an OpenAPI document", control.EveryCaller, ok, plain, openAPI},
		{"/docs", "This interface as a page", control.EveryCaller, ok, "text/html", serveDocs},
		{"/metrics", "What is measured, for Prometheus", regie.ScopeMetrics, ok, "text/plain", s.serveMetrics},
	}
}

// serveAbout serves what tells of the server itself.
func (s *server) serveAbout(mux *http.ServeMux) {
	for _, b := range s.plainRoutes() {
		serve := b.serve
		if b.scope != "" {
			serve = s.requireScope(b.scope, serve)
		}
		mux.HandleFunc("GET "+b.path, serve)
	}
}

func serveAlive(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

func (s *server) serveVersion(w http.ResponseWriter, r *http.Request) {
	said := map[string]string{"version": s.Version, "go": runtime.Version(), "api": "v1"}
	s.writeAnswer(w, r, http.StatusOK, said, nil)
}

// openAPI serves the document.
func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document) // the client has gone if this fails
}

// serveMetrics serves what is measured of all workspaces, where the server counts.
func (s *server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if s.Metrics == nil {
		s.writeError(w, r, regie.Errorf(regie.CodeNotFound, "there is nothing at %s %s", r.Method, r.URL.Path))
		return
	}
	s.requireOwner(s.Metrics.ServeHTTP)(w, r)
}

// serveDocs serves the page.
func serveDocs(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	_, _ = w.Write(docsPage) // the client has gone if this fails
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
}

// serveReady says whether the server can do its work, and what keeps it from that (spec 10.2).
func (s *server) serveReady(w http.ResponseWriter, r *http.Request) {
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
	s.writeAnswer(w, r, status, out, nil)
}
