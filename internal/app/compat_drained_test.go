package app_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestProxyDrained: what is answered while a server stops is in the log of what was passed on, as
// all is.
func TestProxyDrained(t *testing.T) {
	t.Parallel()
	asked, free := make(chan struct{}), make(chan struct{})
	h := passingHouse(t, newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-free
		answersWhole(w, r)
	}), nil)
	answered, closed := make(chan string, 1), make(chan error, 1)
	go func() {
		response := h.ask(http.MethodPost, passChat, `{"model":"far/x","messages":[]}`)
		defer response.Body.Close()
		said, _ := io.ReadAll(response.Body)
		answered <- string(said)
	}()
	<-asked
	go func() { closed <- h.engine.Close() }()
	var dialer net.Dialer
	for address := strings.TrimPrefix(h.served.URL, "http://"); ; time.Sleep(time.Millisecond) { // between two looks
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			break // nothing new is accepted: it stops
		}
		_ = conn.Close()
	}
	close(free)
	if said := <-answered; said != wholeReply {
		t.Errorf("answered %q", said)
	}
	fatal(t, <-closed)
	conn := h.connect()
	if calls, err := conn.Proxied(t.Context(), 1); err != nil || len(calls) != 1 || calls[0].Usage.Input != 4000 {
		t.Errorf("%+v, %v", calls, err)
	}
}
