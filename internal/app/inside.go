package app

import (
	"context"
	"net"
	"sync"
)

// insideListener is a listener in memory: the commands of this process reach its engine through it,
// by the same server and middleware as everyone else.
type insideListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newInsideListener() *insideListener {
	return &insideListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// dial connects to the listener. It returns net.ErrClosed once the listener is closed.
func (l *insideListener) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (l *insideListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *insideListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (*insideListener) Addr() net.Addr { return &net.UnixAddr{Name: "inside", Net: "pipe"} }
