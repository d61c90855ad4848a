package mcpserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/mcpserver"
)

// misfits are calls whose parameters do not fit, with what is said of them.
var misfits = map[string]string{
	`{"jsonrpc":"2.0","id":7,"method":"initialize","params":5}`:                                       "the parameters of initialize must be an object (BAD_REQUEST)",
	`{"jsonrpc":"2.0","id":7,"method":"initialize","params":null}`:                                    "the parameters of initialize must be an object (BAD_REQUEST)",
	`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":5}}`:                   "the parameters of initialize do not fit: another type is expected at /protocolVersion (BAD_REQUEST)",
	`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"capabilities":{"roots":7}}}`:            "the parameters of initialize do not fit: another type is expected at /capabilities/roots (BAD_REQUEST)",
	`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}`:                                      "the parameters of tools/call must be an object (BAD_REQUEST)",
	`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":["x"]}}`:                          "the parameters of tools/call do not fit: another type is expected at /name (BAD_REQUEST)",
	`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":"x"}`:                                     "the parameters of tools/list must be an object (BAD_REQUEST)",
	`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":7}}`:                                   "the parameters of ping do not fit: another type is expected at /_meta (BAD_REQUEST)",
	`{"jsonrpc":"2.0","id":7,"method":"completion/complete","params":{"ref":{"type":"ref/nothing"}}}`: "the parameters of completion/complete do not fit (BAD_REQUEST)",
}

// rpc is an answer of JSON-RPC.
type rpc struct {
	ID    int
	Error struct {
		Code    int
		Message string
	}
}

// TestParametersThatDoNotFit: they are the client's error, told in our words, over HTTP and over
// stdio; a call that fits is answered behind them.
func TestParametersThatDoNotFit(t *testing.T) {
	b := newBed(t)
	address := b.serve()
	in, ours := io.Pipe()
	theirs, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- mcpserver.Serve(t.Context(), b.config, in, out) }()
	lines := bufio.NewReader(theirs)
	for body, want := range misfits {
		_, _, posted := post(t, address, body)
		if _, err := io.WriteString(ours, body+"\n"); err != nil {
			t.Fatal(err)
		}
		written, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		_, event, streamed := strings.Cut(posted, "data: ")
		if !streamed {
			event = posted
		}
		for over, text := range map[string]string{"HTTP": event, "stdio": written} {
			var said rpc
			if err := json.Unmarshal([]byte(text), &said); err != nil || said.ID != 7 || said.Error.Code != -32602 || said.Error.Message != want {
				t.Errorf("%s over %s: %s (%v)", body, over, text, err)
			}
		}
	}
	if _, err := io.WriteString(ours, `{"jsonrpc":"2.0","id":8,"method":"ping","params":null}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if said, err := lines.ReadString('\n'); err != nil || said != `{"jsonrpc":"2.0","id":8,"result":{}}`+"\n" {
		t.Errorf("a call that fits: %s (%v)", said, err)
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
