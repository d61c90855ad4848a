package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
)

type payArgs struct {
	Amount int `json:"amount"`
}

// payments is an MCP server over HTTP whose one tool notes the keys that it was called with.
func payments(t *testing.T) (url string, keys func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	server := sdk.NewServer(&sdk.Implementation{Name: "payments", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "pay", Description: "pays"}, func(_ context.Context, r *sdk.CallToolRequest, _ payArgs) (*sdk.CallToolResult, any, error) {
		mu.Lock()
		defer mu.Unlock()
		key, _ := r.Params.Meta["io.github.regie-run/idempotency-key"].(string)
		seen = append(seen, key)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "paid"}}}, nil, nil
	})
	endpoint := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(endpoint.Close)
	return endpoint.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// TestMCPTool calls a tool of an MCP server: it asks, runs once under the call's id, and its result
// reaches the model (spec 4.2, 13).
func TestMCPTool(t *testing.T) {
	t.Parallel()
	url, keys := payments(t)
	m := newModel(t, says("", call{"a", "bank__pay", `{"amount":7}`}), says("Paid."))
	b := newBed(t, m)
	b.settings.File.MCPServers = map[string]config.MCPServer{"bank": {URL: url}}
	conn := b.connect()
	defer conn.Close()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	asked := b.parked(conn, run.SessionID).Approvals[0]
	if review := asked.Reviews[0]; review.Tool != "bank.pay" || !strings.Contains(review.Preview.Diff, "7") {
		t.Errorf("the person sees %+v", review)
	}
	if _, err := conn.Decide(t.Context(), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED")
	if got := keys(); len(got) != 1 || got[0] != asked.Reviews[0].CallID.String() || !strings.Contains(m.last(), "paid") {
		t.Errorf("the server was called under %v", got)
	}
}
