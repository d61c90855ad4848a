package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
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

// misfit returns what is wrong with the parameters of a call, nil where they fit or the SDK has a word on it: of these it would tell types of programs, with
// whatever code. A message that is no call is none's.
func misfit(call *jsonrpc.Request) error {
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
		return regie.Errorf(regie.CodeBadRequest, "the parameters of %s must be an object", call.Method)
	}
	err := json.Unmarshal(said, known.shape())
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return regie.Errorf(regie.CodeBadRequest, "the parameters of %s do not fit: another type is expected at %s", call.Method, "/"+strings.ReplaceAll(wrong.Field, ".", "/"))
	}
	if err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the parameters of %s do not fit", call.Method)
	}
	return nil
}

// misfitted is the answer of JSON-RPC to a call whose parameters do not fit.
func misfitted(call *jsonrpc.Request, why error, t *text.Printer) ([]byte, error) {
	said := plain.Strip(t.Error(why)) + " (" + string(regie.CodeOf(why)) + ")"
	return jsonrpc.EncodeMessage(&jsonrpc.Response{ID: call.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: said}})
}

// fitting answers calls whose parameters do not fit in place of the SDK, as over stdio.
func fitting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if out, is := w.(*problemWriter); is {
			if why := misfit(out.call); why != nil {
				if answer, err := misfitted(out.call, why, out.text); err == nil {
					out.answered(answer)
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}
