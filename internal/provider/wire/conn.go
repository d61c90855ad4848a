package wire

import (
	"context"
	"io"
	"net"
	"sync"
)

// conn is a connection that copies a request from buffers which are used again: the standard
// library's would make one of 32 KiB for each request that is longer than the transport's buffer.
type conn struct{ net.Conn }

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
		return &conn{c}, nil
	}
}
