package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// refuse answers a request in place of the SDK, as a problem with a stable code.
func refuse(w http.ResponseWriter, r *http.Request, why error) {
	code := regie.CodeOf(why)
	status := httpread.Status(code)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Del("Content-Length")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client has gone if this fails
		"type": "about:blank", "title": http.StatusText(status), "status": status, "code": code,
		"detail": plain.Strip(text.New(r.Header.Get("Accept-Language")).Error(why)),
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
		"there is no such MCP session here: begin one by initialize"))
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

// badArguments begins what the SDK says of arguments that do not fit the schema of a tool.
const badArguments = `validating "arguments": `

// coded gives errors of arguments, which the SDK finds before a tool is called, the code that those
// of tools have.
func (s *server) coded(next mcp.MethodHandler) mcp.MethodHandler {
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
			wrong := s.failed(regie.Errorf(regie.CodeBadArguments, "the arguments do not fit the tool: %s", why))
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: wrong.Error()}}},
				nil
		}
		return result, err
	}
}
