package acp_test

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/acp"
	catalogue "github.com/regie-run/regie/internal/text"
)

// TestNoMessages: a line that is no JSON, or no JSON-RPC, is answered as that, and the connection
// goes on.
func TestNoMessages(t *testing.T) {
	const asks = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1}}`
	in, editorOut := io.Pipe()
	editorIn, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- acp.Serve(t.Context(), acp.Config{Text: catalogue.New("en"), Version: "test"}, in, out)
	}()
	answers := bufio.NewScanner(editorIn)
	next := func() (answer struct {
		ID    any
		Error *struct{ Code int }
	},
	) {
		t.Helper()
		if !answers.Scan() {
			t.Fatalf("it said nothing more: %v", answers.Err())
		}
		if err := json.Unmarshal(answers.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	for _, c := range []struct {
		line string
		code int
	}{
		{"garbage", -32700},
		{`{"jsonrpc":"2.0"`, -32700},
		{"\xff", -32700},
		{`[` + asks + `]`, -32600},
		{`{}`, -32600},
		{`null`, -32600},
		{`{"jsonrpc":"1.0","id":1,"method":"initialize"}`, -32600},
		{`{"jsonrpc":"2.0","id":{},"method":"initialize"}`, -32600},
		{`{"jsonrpc":"2.0","id":1,"method":7}`, -32600},
		{`{"jsonrpc":"2.0","id":1}`, -32600},
		{`{"jsonrpc":"2.0","x":"` + strings.Repeat("y", 11<<20) + `"}`, -32600},
	} {
		if _, err := io.WriteString(editorOut, c.line+"\n\n"+asks+"\n"); err != nil {
			t.Fatal(err)
		}
		if got := next(); got.ID != nil || got.Error == nil || got.Error.Code != c.code {
			t.Errorf("%.60q is answered %+v, want %d", c.line, got, c.code)
		}
		if got := next(); got.ID != 7.0 || got.Error != nil {
			t.Errorf("after %.60q the answer is %+v", c.line, got)
		}
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`,
		`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`,
		`{"id":1,"error":7}`,
		`{"jsonrpc":"2.0","id":1,"error":null}`,
	} {
		if _, err := io.WriteString(editorOut, line+"\n"+asks+"\n"); err != nil {
			t.Fatal(err)
		}
		if got := next(); got.ID != 7.0 || got.Error != nil {
			t.Errorf("%s is answered %+v", line, got)
		}
	}
	_ = editorOut.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
