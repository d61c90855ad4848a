package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/text"
)

// parameters are those of the methods, and whether these may do without.
var parameters = map[string]struct {
	shape   func() any
	without bool
}{
	"initialize":               {func() any { return &mcp.InitializeParams{} }, false},
	"ping":                     {func() any { return &mcp.PingParams{} }, true},
	"tools/list":               {func() any { return &mcp.ListToolsParams{} }, true},
	"tools/call":               {func() any { return &mcp.CallToolParamsRaw{} }, false},
	"resources/list":           {func() any { return &mcp.ListResourcesParams{} }, true},
	"resources/templates/list": {func() any { return &mcp.ListResourceTemplatesParams{} }, true},
	"resources/read":           {func() any { return &mcp.ReadResourceParams{} }, false},
	"resources/subscribe":      {func() any { return &mcp.SubscribeParams{} }, false},
	"resources/unsubscribe":    {func() any { return &mcp.UnsubscribeParams{} }, false},
	"prompts/list":             {func() any { return &mcp.ListPromptsParams{} }, true},
	"prompts/get":              {func() any { return &mcp.GetPromptParams{} }, false},
	"completion/complete":      {func() any { return &mcp.CompleteParams{} }, false},
	"server/discover":          {func() any { return &mcp.DiscoverParams{} }, true},
	"subscriptions/listen":     {func() any { return &mcp.SubscriptionsListenParams{} }, false},
	"logging/setLevel":         {func() any { return &levelParams{} }, false},
}

// levelParams are those of a method that MCP is about to leave, and the SDK with it.
type levelParams struct {
	Meta  map[string]any `json:"_meta"`
	Level string         `json:"level"`
}

// misfit is what is wrong with the parameters of a call, nil where they fit or the SDK has a word
// on it: of these it would tell types of programs, with whatever code. A message that is no call is
// none's.
func misfit(call *jsonrpc.Request) *refusal {
	if call == nil || !call.IsCall() || len(call.Params) == 0 {
		return nil
	}
	known, is := parameters[call.Method]
	said := bytes.TrimSpace(call.Params)
	null := string(said) == "null"
	switch {
	case !is, null && known.without:
		return nil
	case null || said[0] != '{':
		return refused(call, jsonrpc.CodeInvalidParams, regie.Errorf(regie.CodeBadRequest,
			"the parameters of %s must be an object", call.Method))
	}
	err := json.Unmarshal(said, known.shape())
	if err == nil {
		return nil
	}
	why := regie.Errorf(regie.CodeBadRequest, "the parameters of %s do not fit", call.Method)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		why = regie.Errorf(regie.CodeBadRequest, "the parameters of %s do not fit: another type is expected at %s",
			call.Method, "/"+strings.ReplaceAll(wrong.Field, ".", "/"))
	}
	return refused(call, jsonrpc.CodeInvalidParams, why)
}

// checkMessages answers messages that do not fit in place of the SDK, as over stdio: by themselves,
// in their parameters, or where they stand in a session.
func checkMessages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		body, err := httpread.Body(w, r, maxBody)
		if err != nil {
			refuse(w, r, err)
			return
		}
		var call *jsonrpc.Request
		why := unclear(body)
		if why == nil {
			if said, err := jsonrpc.DecodeMessage(body); err == nil {
				call, _ = said.(*jsonrpc.Request)
			}
			why = misfit(call)
		}
		if begun := r.Header.Get(sessionHeader) != ""; why == nil && call != nil {
			if _, known := parameters[call.Method]; known {
				why = untimely(call, begun)
			}
			if call.Method == initialized && !call.IsCall() && !begun {
				refuse(w, r, regie.Errorf(regie.CodeBadRequest,
					"say which MCP session is meant, in %s: initialize begins one", sessionHeader))
				return
			}
		}
		if why == nil {
			r = r.WithContext(r.Context())
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if why.id == nil { // the client cannot tell by an id which of its messages is meant
			w.WriteHeader(http.StatusBadRequest)
		}
		answer := why.answer(text.New(r.Header.Get("Accept-Language")))
		_, _ = w.Write(answer) //nolint:gosec // JSON by its type; the client has gone if this fails
	})
}
