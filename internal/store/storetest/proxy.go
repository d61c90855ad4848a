package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy relays a store's connections to a PostgreSQL server, and cuts them: all of them, or one at
// a COMMIT.
type Proxy struct {
	listener net.Listener
	server   string
	// At says where the next COMMIT is cut: before it reaches the server, or before its answer.
	At   atomic.Int32
	more atomic.Int32 // how many after it
	// Trips counts the batches that the store sent and waited for.
	Trips  atomic.Int64
	down   atomic.Bool
	refuse atomic.Int32 // so many connections more
	mu     sync.Mutex
	open   []*link
}

// link is one connection, from the store to the server.
type link struct {
	client, server net.Conn
	frozen         atomic.Bool // data is dropped, either way, and neither end notices
}

func (l *link) end() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// endUnlessFrozen ends the connection because one of its ends has closed. With a frozen link the
// other end does not notice.
func (l *link) endUnlessFrozen() {
	if !l.frozen.Load() {
		l.end()
	}
}

// The ways to cut a COMMIT.
const (
	Pass      int32 = iota
	CutBefore       // it does not reach the server
	CutAnswer       // it does, and its answer does not come back
	FreezeIn        // from there on nothing passes, and both ends stay open: earlier statements of its batch run
)

// NewProxy returns a proxy and the URL that leads through it.
func NewProxy(t *testing.T, text string) (*Proxy, string) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: u.Host}
	t.Cleanup(func() { _ = listener.Close(); p.Cut() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			if p.down.Load() || p.refuse.Add(-1) >= 0 {
				_ = client.Close()
				continue
			}
			go p.serve(client)
		}
	}()
	query := u.Query()
	query.Set("sslmode", "disable")
	u.Host, u.RawQuery = listener.Addr().String(), query.Encode()
	return p, u.String()
}

// Next cuts the next n COMMITs.
func (p *Proxy) Next(n, at int32) {
	p.more.Store(n - 1)
	p.At.Store(at)
}

func (p *Proxy) meets(at int32) bool {
	if p.At.Load() != at {
		return false
	}
	if p.more.Add(-1) < 0 {
		p.At.Store(Pass)
	}
	return true
}

// Down takes the server away until Up.
func (p *Proxy) Down() {
	p.down.Store(true)
	p.Cut()
}

// Up brings it back.
func (p *Proxy) Up() { p.down.Store(false) }

// Cut ends all connections; new ones pass.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.open {
		l.end()
	}
	p.open = nil
}

// Refuse ends all connections, and the next n ones.
func (p *Proxy) Refuse(n int32) {
	p.refuse.Store(n)
	p.Cut()
}

// Freeze keeps all connections open but drops their data, as a router does that has lost its state;
// new ones pass.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.open {
		l.frozen.Store(true)
	}
}

func (p *Proxy) serve(client net.Conn) {
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.server)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server}
	p.mu.Lock()
	p.open = append(p.open, l)
	p.mu.Unlock()
	var mute atomic.Bool // the answers of this connection go nowhere: the first one ends it
	go func() {
		defer l.endUnlessFrozen()
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			if err != nil || mute.Load() {
				return
			}
			if l.frozen.Load() {
				continue
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	defer l.endUnlessFrozen()
	if !copyStartup(client, server) {
		return
	}
	commits := map[string]bool{} // names of prepared statements
	for {
		kind, message, err := readMessage(client)
		if err != nil {
			return
		}
		switch kind {
		case 'P':
			if parts := bytes.SplitN(message[5:], []byte{0}, 3); len(parts) == 3 && string(parts[1]) == "COMMIT" {
				commits[string(parts[0])] = true
			}
		case 'B':
			if parts := bytes.SplitN(message[5:], []byte{0}, 3); len(parts) == 3 && commits[string(parts[1])] {
				if p.meets(CutBefore) {
					return
				}
				if p.meets(CutAnswer) {
					mute.Store(true)
				}
				if p.meets(FreezeIn) {
					l.frozen.Store(true)
				}
			}
		case 'S':
			p.Trips.Add(1)
		}
		if l.frozen.Load() {
			continue
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

// copyStartup forwards the first message, which has no kind.
func copyStartup(client io.Reader, server io.Writer) bool {
	head := make([]byte, 4)
	if _, err := io.ReadFull(client, head); err != nil {
		return false
	}
	body := make([]byte, binary.BigEndian.Uint32(head)-4)
	if _, err := io.ReadFull(client, body); err != nil {
		return false
	}
	_, err := server.Write(slices.Concat(head, body))
	return err == nil
}

func readMessage(client io.Reader) (kind byte, message []byte, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(client, head); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	_, err = io.ReadFull(client, body)
	return head[0], slices.Concat(head, body), err
}
