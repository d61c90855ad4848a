package mcpserver

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

// TestFrames: a line that is no JSON value in which each key stands once ends the stream.
func TestFrames(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for in, want := range map[string]string{
		"":                             "",
		ping:                           ping,
		ping + "\n\n" + ping + "\n":    ping + "\n\n" + ping + "\n",
		ping + "\n" + `{"a":1,"a":2}`:  ping + "\n",
		ping + "\ngarbage\n" + ping:    ping + "\n",
		"\xff":                         "",
		strings.Repeat("x", maxLine+1): "",
	} {
		data, err := io.ReadAll(&frames{in: bufio.NewReader(strings.NewReader(in))})
		if string(data) != want || (err == nil) != (in == want) {
			t.Errorf("%.60q: handed on is %.60q, %v", in, data, err)
		}
	}
}
