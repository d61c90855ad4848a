package mcpserver

import (
	"encoding/json"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
)

// refuse answers a request before the SDK sees it, as a problem with a stable code.
func refuse(w http.ResponseWriter, r *http.Request, why error) {
	code := regie.CodeOf(why)
	status := httpread.Status(code)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Del("Content-Length")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client has gone if this fails
		"type": "about:blank", "title": http.StatusText(status), "status": status, "code": code,
		"detail": sanitize.Strip(i18n.New(r.Header.Get("Accept-Language")).Error(why)),
	})
}

// sessionWriter answers a request that names an MCP session. A session of another caller is
// answered as one that is not there (spec 2.1).
type sessionWriter struct {
	http.ResponseWriter
	request *http.Request
	refused bool
}

// WriteHeader implements http.ResponseWriter.
func (s *sessionWriter) WriteHeader(status int) {
	if s.refused = status == http.StatusForbidden || status == http.StatusNotFound; !s.refused {
		s.ResponseWriter.WriteHeader(status)
		return
	}
	refuse(s.ResponseWriter, s.request, regie.Errorf(regie.CodeNotFound,
		"there is no such MCP session here: start one with initialize"))
}

// Write implements http.ResponseWriter.
func (s *sessionWriter) Write(data []byte) (int, error) {
	if s.refused {
		return len(data), nil
	}
	return s.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (s *sessionWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
