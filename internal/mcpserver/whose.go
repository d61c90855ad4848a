package mcpserver

import (
	"io"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
)

// whose answers for the SDK where a session is not its caller's: as where there is none (spec 2.1), with our own code.
type whose struct {
	http.ResponseWriter
	told bool // the answer is ours; what the SDK says is dropped
}

// WriteHeader implements http.ResponseWriter.
func (w *whose) WriteHeader(status int) {
	plain := strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain")
	if w.told || !plain || status != http.StatusForbidden && status != http.StatusNotFound {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.told = true
	w.Header().Set("Content-Type", "application/json")
	w.ResponseWriter.WriteHeader(http.StatusNotFound)
	why := failed(regie.Errorf(regie.CodeNotFound, "there is no such MCP session here: begin one by initialize"))
	_, _ = io.WriteString(w.ResponseWriter, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"`+why.Error()+`"}}`+"\n") // the client has gone
}

// Write implements io.Writer.
func (w *whose) Write(p []byte) (int, error) {
	if w.told {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap has http.ResponseController find the connection.
func (w *whose) Unwrap() http.ResponseWriter { return w.ResponseWriter }
