package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// handed is what of a stream is handed on, and what is answered at once.
func handed(in string) (messages, answers string, err error) {
	var out bytes.Buffer
	f := &frames{in: bufio.NewReader(strings.NewReader(in)), out: &out}
	data, err := io.ReadAll(f)
	return string(data), out.String(), err
}

// TestFrames: what is no message is answered, and does not end the connection.
func TestFrames(t *testing.T) {
	for in, code := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`: "", `{"jsonrpc":"2.0","method":"x","params":{}}`: "", `{"jsonrpc":"2.0","id":"a","result":{}}`: "",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`: "", ``: "",
		`garbage`: "-32700", `{"jsonrpc":"2.0"`: "-32700", "\xff": "-32700",
		`{"a":1,"a":2}`: "-32700",
		`[]`:            "-32600", `{}`: "-32600", `7`: "-32600", `null`: "-32600", `{"jsonrpc":"1.0","id":1,"method":"x"}`: "-32600", `{"jsonrpc":"2.0","id":{},"method":"x"}`: "-32600",
		`{"jsonrpc":"2.0","method":7}`: "-32600", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`: "-32600",
	} {
		messages, answers, err := handed(in + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n")
		if err != nil || !strings.HasSuffix(messages, `{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n") {
			t.Errorf("%q: %q, %v", in, messages, err)
		}
		if strings.Contains(answers, code) != (code != "") && code != "" || code == "" && answers != "" {
			t.Errorf("%q is answered %q, want %s", in, answers, code)
		}
		if passed := strings.HasPrefix(messages, in+"\n"); passed != (code == "" && in != "") && in != "" {
			t.Errorf("%q: handed on is %q", in, messages)
		}
	}
	if _, _, err := handed(strings.Repeat("x", maxLine+1)); err == nil {
		t.Error("an endless line is read")
	}
	if messages, _, err := handed(`{"jsonrpc":"2.0","id":2,"method":"ping"}`); err != nil || messages == "" {
		t.Errorf("a last line without an end: %q, %v", messages, err)
	}
}

// FuzzFrames: whatever comes, what is handed on are messages that the SDK reads, and what is
// answered is JSON.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "garbage\n[]\n", `{"jsonrpc":"2.0","id":1.5,"result":{}}`, `{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"x"}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		messages, answers, err := handed(in)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(messages) {
			if _, err := jsonrpc.DecodeMessage([]byte(strings.TrimSpace(line))); err != nil {
				t.Errorf("handed on is %q, which nobody reads: %v", line, err)
			}
		}
		for line := range strings.Lines(answers) {
			if !json.Valid([]byte(line)) {
				t.Errorf("answered is %q", line)
			}
		}
	})
}
