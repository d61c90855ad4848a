package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie/internal/mcpserver"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// TestCancelledCall: the answer to a call that its client took back names the session whose run
// goes on, in the language of the server.
func TestCancelledCall(t *testing.T) {
	b := newBed(t, providertest.Scene{Text: []string{"I think"}, Silent: true})
	b.config.Text = text.New("fr")
	in, ours := io.Pipe()
	theirs, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- mcpserver.Serve(t.Context(), b.config, in, out) }()
	answers := json.NewDecoder(theirs)
	say := func(line string) {
		t.Helper()
		if _, err := io.WriteString(ours, `{"jsonrpc":"2.0",`+line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	hear := func() (said struct {
		ID     int
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	},
	) {
		t.Helper()
		if err := answers.Decode(&said); err != nil {
			t.Fatal(err)
		}
		return said
	}
	say(`"id":1,` + shakes)
	hear()
	say(`"id":4,"method":"tools/call","params":{"name":"start_session","arguments":{"prompt":"think","wait":600}}}`)
	var sessions []store.SessionSummary
	for len(sessions) == 0 {
		var err error
		if sessions, err = b.conn.Sessions(t.Context(), store.SessionFilter{Root: b.root, Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	say(`"method":"notifications/cancelled","params":{"requestId":4}}`)
	said := hear()
	if whole := fmt.Sprint(said.Result.Content); said.ID != 4 || !said.Result.IsError || !strings.Contains(whole, sessions[0].ID.String()) || !strings.Contains(whole, "continue") ||
		!strings.Contains(whole, "(STOP_REQUESTED)") {
		t.Errorf("answered is %+v", said)
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestProgressInWords: who waits is told what happens in words of the server's language, not in
// names of events.
func TestProgressInWords(t *testing.T) {
	const tries = 20 // a run may stand before its call looks at it: then there is no progress to tell
	b := newBed(t, slices.Repeat([]providertest.Scene{writes()}, tries)...)
	b.config.Text = text.New("fr")
	told := make(chan string, 100)
	session := old(t, b, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
		told <- request.Params.Message
	}})
	heard := map[string]bool{}
	for range tries {
		params := &mcp.CallToolParams{Name: "start_session", Arguments: object{"prompt": "write it", "wait": 600}}
		params.SetProgressToken("p")
		if _, err := session.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		for len(told) > 0 {
			said := <-told
			heard[said] = true
			if said == "" || said == "message" || said == "round" || strings.Contains(said, "_state") || strings.ToUpper(said) == said {
				t.Errorf("told is %q", said)
			}
		}
		if heard["le modèle a répondu"] && heard["attend une personne"] {
			return
		}
	}
	t.Errorf("told are %v", heard)
}
