package httpapi

import (
	"net"
	"net/http"
	"sync"
)

// arrivals are the connections on which no request has begun: browsers open some in advance, and
// who sends half a header has one. net/http waits seconds for them when it stops.
type arrivals struct {
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	stopping bool
}

// ConnState is for the server's hook of that name.
func (g *Guard) ConnState(conn net.Conn, state http.ConnState) {
	a := &g.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(a.conns, conn)
	case a.stopping:
		_ = conn.Close() // nothing was said on it
	default:
		if a.conns == nil {
			a.conns = map[net.Conn]struct{}{}
		}
		a.conns[conn] = struct{}{}
	}
}

// stop closes them.
func (a *arrivals) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopping = true
	for conn := range a.conns {
		_ = conn.Close() // nothing was said on it
	}
}
