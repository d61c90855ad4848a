package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
)

// problems makes of what the SDK says in plain text, where a request does not come as far as JSON-RPC, what all of a server's errors are: a problem with a
// stable code. MCP's clients go by the status.
func problems(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &problemWriter{ResponseWriter: w}
		next.ServeHTTP(out, r)
		out.end()
	})
}

// maxSaid bounds what is kept of a plain text.
const maxSaid = 4 << 10

// noSession is what a client is told that names a session which is not there for it.
var noSession = regie.Errorf(regie.CodeNotFound, "there is no such MCP session here: begin one by initialize")

type problemWriter struct {
	http.ResponseWriter
	status int  // of what is a plain text, else 0
	named  bool // the request names a session, and nothing but the SDK answers it any more
	begun  bool
	said   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (p *problemWriter) WriteHeader(status int) {
	if p.begun || p.status != 0 {
		return
	}
	if status >= http.StatusBadRequest && strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		if p.status = status; p.named && status == http.StatusForbidden {
			p.status = http.StatusNotFound // a session that is not its caller's is as one that is nowhere (spec 2.1)
		}
		return
	}
	p.begun = status >= http.StatusOK
	p.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (p *problemWriter) Write(data []byte) (int, error) {
	if p.status == 0 {
		p.begun = true
		return p.ResponseWriter.Write(data)
	}
	p.said.Write(data[:min(len(data), maxSaid-min(maxSaid, p.said.Len()))])
	return len(data), nil
}

// Flush implements http.Flusher, for who looks for nothing else.
func (p *problemWriter) Flush() {
	if p.status == 0 {
		_ = http.NewResponseController(p.ResponseWriter).Flush() // the next write says what is wrong
	}
}

// Unwrap is for http.ResponseController.
func (p *problemWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// end writes the problem, where there is one.
func (p *problemWriter) end() {
	if p.status == 0 {
		return
	}
	why := plain.Strip(strings.TrimSpace(p.said.String()))
	if p.named && p.status == http.StatusNotFound {
		why = noSession.Format
	}
	p.Header().Set("Content-Type", "application/problem+json")
	p.Header().Del("Content-Length")
	p.ResponseWriter.WriteHeader(p.status)
	_ = json.NewEncoder(p.ResponseWriter).Encode(map[string]any{ // the client has gone
		"type": "about:blank", "title": http.StatusText(p.status), "status": p.status, "code": codeOf(p.status), "detail": why,
	})
}

// codeOf is the stable code of a status that the SDK answers with.
func codeOf(status int) regie.Code {
	switch status {
	case http.StatusForbidden:
		return regie.CodeForbidden
	case http.StatusUnauthorized:
		return regie.CodeNoToken
	case http.StatusNotFound:
		return regie.CodeNotFound
	case http.StatusMethodNotAllowed:
		return regie.CodeNoMethod
	case http.StatusConflict:
		return regie.CodeConflict
	case http.StatusRequestEntityTooLarge:
		return regie.CodeTooLarge
	case http.StatusTooManyRequests:
		return regie.CodeTooManyRequests
	}
	if status >= http.StatusInternalServerError {
		return regie.CodeInternal
	}
	return regie.CodeBadRequest
}

// badArguments begins what the SDK says of arguments that do not fit the schema of a tool.
const badArguments = `validating "arguments": `

// coded gives errors of arguments, which the SDK finds before a tool is called, the code that those of tools have.
func coded(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, request)
		called, is := result.(*mcp.CallToolResult)
		if err != nil || !is || called == nil || !called.IsError || len(called.Content) != 1 {
			return result, err
		}
		text, is := called.Content[0].(*mcp.TextContent)
		if !is {
			return result, err
		}
		if why, is := strings.CutPrefix(text.Text, badArguments); is {
			wrong := failed(regie.Errorf(regie.CodeBadArguments, "the arguments do not fit the tool: %s", why))
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: wrong.Error()}}}, nil
		}
		return result, err
	}
}
