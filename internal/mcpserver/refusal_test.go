package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/mcpserver"
)

// shakes is how a client begins.
const shakes = `"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// unclears are messages that are refused by themselves, with the error of JSON-RPC.
var unclears = map[string]string{
	`{"jsonrpc":"2.0","id":1,"id":9,` + shakes: `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the request does not fit at /id: the key stands there twice (BAD_REQUEST)"}}`,
	`{"jsonrpc":"2.0","id":"<a>","method":"initialize","params":{"protocolVersion":"2025-06-18","protocolVersion":"2024-11-05"}}`: `{"jsonrpc":"2.0","id":"<a>","error":{"code":-32602,` +
		`"message":"the request does not fit at /params/protocolVersion: the key stands there twice (BAD_REQUEST)"}}`,
	`{"jsonrpc":"2.0","id":3,"method":"ping","method":"initialize"}`: `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"the request does not fit at /method: the key stands there twice (BAD_REQUEST)"}}`,
	`{"jsonrpc":"2.0","id":3,"result":{"a":1,"a":1}}`:                `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the request does not fit at /result/a: the key stands there twice (BAD_REQUEST)"}}`,
	`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                     `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the id of a message is a text or a whole number, not 1.5 (BAD_REQUEST)"}}`,
	`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`:        `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the id of a message is a text or a whole number, not 9007199254740993 (BAD_REQUEST)"}}`,
	`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`:                 `{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"initialize comes before tools/list (BAD_REQUEST)"}}`,
}

// TestUnclearMessages: what may be read in two ways, what could not be answered under its id, and
// what comes before the handshake is refused over HTTP and over stdio, in our words; none of it is
// an error of the server's.
func TestUnclearMessages(t *testing.T) {
	b := newBed(t)
	var log bytes.Buffer
	b.config.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	address := b.serve()
	var lines strings.Builder
	for body, want := range unclears {
		status := http.StatusOK
		if strings.Contains(want, `"id":null`) {
			status = http.StatusBadRequest
		}
		if got, kind, said := post(t, address, body); got != status || kind != "application/json" || said != want {
			t.Errorf("%s over HTTP: %d %s %s, want %s", body, got, kind, said, want)
		}
		lines.Reset()
		if err := mcpserver.Serve(t.Context(), b.config, strings.NewReader(body+"\n"), &lines); err != nil || lines.String() != want+"\n" {
			t.Errorf("%s over stdio: %s (%v), want %s", body, lines.String(), err, want)
		}
	}
	if status, _, said := post(t, address, `[{"jsonrpc":"2.0","id":1.5,"method":"ping"}]`); status != http.StatusBadRequest || !strings.Contains(said, "not 1.5 (BAD_REQUEST)") {
		t.Errorf("one of several: %d %s", status, said)
	}
	if status, _, said := post(t, address, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusBadRequest || !strings.Contains(said, "Mcp-Session-Id") {
		t.Errorf("initialized of no session: %d %s", status, said)
	}
	if log.Len() > 0 {
		t.Errorf("the server's log has %s", log.String())
	}
}

// TestHandshakeOnce: a session begins once; more of it is refused, or passed over, and the session
// goes on.
func TestHandshakeOnce(t *testing.T) {
	b := newBed(t)
	var log bytes.Buffer
	b.config.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	in, ours := io.Pipe()
	theirs, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- mcpserver.Serve(t.Context(), b.config, in, out) }()
	answers := json.NewDecoder(theirs)
	const ready = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for _, row := range []struct {
		says string
		code int
	}{
		{ready + `{"jsonrpc":"2.0","id":7,` + shakes, 0},
		{`{"jsonrpc":"2.0","id":7,` + shakes, -32600},
		{ready + ready + `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, 0},
	} {
		if _, err := io.WriteString(ours, row.says+"\n"); err != nil {
			t.Fatal(err)
		}
		var said rpc
		if err := answers.Decode(&said); err != nil || said.ID != 7 || said.Error.Code != row.code {
			t.Errorf("%s is answered %+v (%v)", row.says, said, err)
		}
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil || log.Len() > 0 {
		t.Errorf("%v, the log has %s", err, log.String())
	}
}
