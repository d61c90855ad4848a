package httpapi_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/regie-run/regie/internal/httpapi"
)

// TestArrivals: a server that stops closes the connections on which no request has begun, and no
// others.
func TestArrivals(t *testing.T) {
	guard := &httpapi.Guard{}
	arrives := func(states ...http.ConnState) (client net.Conn) {
		client, server := net.Pipe()
		t.Cleanup(func() { _, _ = client.Close(), server.Close() })
		for _, state := range states {
			guard.ConnState(server, state)
		}
		return client
	}
	closed := func(client net.Conn) bool {
		_ = client.SetReadDeadline(time.Now()) // that the other end is closed goes before it
		_, err := client.Read(make([]byte, 1))
		return errors.Is(err, io.EOF)
	}
	waits, works, idles := arrives(http.StateNew), arrives(http.StateNew, http.StateActive), arrives(http.StateNew, http.StateActive, http.StateIdle)
	guard.Stop()
	late := arrives(http.StateNew)
	for name, row := range map[string]struct {
		conn net.Conn
		want bool
	}{"new": {waits, true}, "of a request": {works, false}, "between two": {idles, false}, "after that": {late, true}} {
		if got := closed(row.conn); got != row.want {
			t.Errorf("%s: closed %v", name, got)
		}
	}
}
