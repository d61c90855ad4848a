package mcpserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestElicitationInFrench: what a person at the client's end reads is in their language: what is
// put to them, and what went wrong.
func TestElicitationInFrench(t *testing.T) {
	b := newHarness(t, writes(), providertest.Scene{Text: []string{"Written."}})
	b.config.Elicit, b.config.Text = true, i18n.New("fr")
	var asked string
	session := old(t, b, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		schema, err := json.Marshal(request.Params.RequestedSchema)
		asked = request.Params.Message + " " + string(schema)
		return &mcp.ElicitResult{Action: "accept", Content: object{"decision": "allow"}}, err
	}})
	if said, _, failed := call(t, session, "start_session", object{"prompt": "write it", "wait": 30}); failed {
		t.Fatal(said)
	}
	for _, want := range []string{"L'agent main demande votre autorisation.", "(appel ", "pourquoi : les actions", "Autoriser une fois", "Refuser", `"title":"Décision"`, `"title":"Raison"`, "écrire 1 ligne"} {
		if !strings.Contains(asked, want) {
			t.Errorf("%q is not in %s", want, asked)
		}
	}
	for _, english := range []string{"asks for", "why", "Allow", "Deny", "Reason"} {
		if strings.Contains(asked, english) {
			t.Errorf("%q is in %s", english, asked)
		}
	}
}
