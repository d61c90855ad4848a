package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie/internal/sanitize"
)

const (
	maxMessage = 16 << 20 // bytes of one message
	maxStray   = 10_000   // lines of output that are no messages
	maxOpen    = 64       // requests of a server's that wait for our answers, because it does not read them
)

var errEnded = errors.New("the server has ended")

// stdio is the SDK's transport over a process's pipes. It is ours, and not the SDK's, because real
// servers print banners, because a write must end with its context, and because the outcome of a
// call depends on what of it was written.
type stdio struct{ p *process }

// Connect implements the SDK's Transport.
func (t stdio) Connect(context.Context) (sdk.Connection, error) {
	c := &stdioConn{p: t.p, lines: make(chan line), writing: make(chan struct{}, 1)}
	go c.pumpMessages()
	return c, nil
}

// line is a message, or the reason why there are no more.
type line struct {
	message jsonrpc.Message
	err     error
}

type stdioConn struct {
	p       *process
	lines   chan line
	writing chan struct{} // held while a message is written
	broken  bool          // a message was written in part; guarded by writing
	open    atomic.Int64  // requests of the server's that have not been answered
}

// pumpMessages reads messages until the output ends. Once the process is to end it reads on, so
// that a server that still writes is not stopped by a full pipe from ending in good order.
func (c *stdioConn) pumpMessages() {
	defer close(c.p.drained)
	in, stray := bufio.NewReaderSize(c.p.out, 64<<10), 0
	for {
		data, err := readLine(in)
		var message jsonrpc.Message
		if err == nil {
			if message, err = jsonrpc.DecodeMessage(data); err != nil {
				_, _ = fmt.Fprintf(c.p.log, "(on standard output) %s\n", sanitize.Clip(string(data), 500))
				if stray++; stray <= maxStray {
					continue
				}
				err = fmt.Errorf("it writes something else than messages: %d lines", stray)
			}
		}
		select {
		case c.lines <- line{message, err}:
		case <-c.p.stop:
		}
		if err != nil {
			_, _ = io.Copy(io.Discard, c.p.out)
			return
		}
	}
}

// readLine returns the next line that is not empty, within bounds. The end of the output is io.EOF,
// also after half a line.
func readLine(in *bufio.Reader) ([]byte, error) {
	for {
		var whole []byte
		for {
			part, err := in.ReadSlice('\n')
			if len(whole)+len(part) > maxMessage {
				return nil, fmt.Errorf("it sent a message of more than %d bytes", maxMessage)
			}
			whole = append(whole, part...)
			if err == nil {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return nil, io.EOF
			}
		}
		if whole = bytes.TrimSpace(whole); len(whole) > 0 {
			return whole, nil
		}
	}
}

// Read implements the SDK's Connection.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case next := <-c.lines:
		if next.err != nil && !errors.Is(next.err, io.EOF) {
			_, _ = fmt.Fprintln(c.p.log, next.err)
		}
		if request, ok := next.message.(*jsonrpc.Request); ok && request.IsCall() && c.open.Add(1) > maxOpen {
			return nil, fmt.Errorf("it has %d requests open", maxOpen)
		}
		return next.message, next.err
	case <-c.p.stop:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements the SDK's Connection. It ends with its context even where the server does not
// read: what was written in part then cannot be taken back, and the server is ended.
func (c *stdioConn) Write(ctx context.Context, message jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	select {
	case c.writing <- struct{}{}:
	case <-c.p.stop:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.writing }()
	if c.broken {
		return errEnded
	}
	n, err := c.writeData(ctx, append(data, '\n'))
	if request, ok := message.(*jsonrpc.Request); ok && request.IsCall() && n > 0 {
		flightOf(ctx).sent.Store(true)
	}
	if _, ok := message.(*jsonrpc.Response); ok {
		c.open.Add(-1)
	}
	switch {
	case err == nil:
		return nil
	case n > 0:
		c.broken = true
		c.p.requestEnd()
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

func (c *stdioConn) writeData(ctx context.Context, data []byte) (int, error) {
	interrupted := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = c.p.in.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := c.p.in.Write(data)
	if !release() {
		<-interrupted
		_ = c.p.in.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// Close implements the SDK's Connection. The SDK calls it under a lock, so it only asks; supervise
// does it.
func (c *stdioConn) Close() error {
	c.p.requestEnd()
	return nil
}

// SessionID implements the SDK's Connection: there are no sessions over pipes.
func (*stdioConn) SessionID() string { return "" }
