package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// conn is a connection that copies a request from buffers which are used again: the standard
// library's would make one of 32 KiB for each request that is longer than the transport's buffer.
type conn struct {
	net.Conn
	read    bool        // something was; the transport reads on one goroutine
	alerted atomic.Bool // what came first was an alert of TLS
}

// errAlert is why the rest of a request could not be written where the server had said by an alert
// of TLS that it wants none.
var errAlert = errors.New("the server answered with an alert of TLS")

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.read {
		c.read = true
		c.alerted.Store(bytes.HasPrefix(p[:n], []byte("\x15\x03")))
	}
	return n, err
}

// Write implements net.Conn. The transport closes a connection when it cannot read the answer, and
// of a request that is still being written says only that.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.because(err)
}

func (c *conn) because(err error) error {
	if err != nil && c.alerted.Load() {
		return fmt.Errorf("%w: %w", errAlert, err)
	}
	return err
}

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// ReadFrom implements io.ReaderFrom.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	buffer, ok := buffers.Get().(*[32 << 10]byte)
	if !ok {
		buffer = new([32 << 10]byte)
	}
	defer buffers.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{r}, buffer[:])
}

// dialing wraps what dial connects.
func dialing(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context,
	network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c}, nil
	}
}
