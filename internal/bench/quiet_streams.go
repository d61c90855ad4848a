package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/regie-run/regie"
)

// quietStreams is how many are open at once on one server.
const quietStreams = 10_000

// quiet opens idle streams from this process to a server in another one, and prints the server's
// memory for each.
func (r *remote) quiet(what string, open func(r *remote, session string) (net.Conn, error)) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < quietStreams+500 {
		return fmt.Errorf("this process may have %d files open, %d streams need more: raise it (ulimit -n), %w",
			limit.Cur, quietStreams, err)
	}
	var made regie.Session
	if err := r.post("/api/v1/sessions", map[string]any{"workspace_id": r.workspace}, &made); err != nil {
		return err
	}
	before, err := r.memory()
	if err != nil {
		return err
	}
	all := make([]net.Conn, 0, quietStreams)
	defer func() {
		for _, c := range all {
			_ = c.Close() // nothing is on its way
		}
	}()
	for len(all) < quietStreams {
		c, err := open(r, made.ID.String())
		if err != nil {
			return fmt.Errorf("stream %d: %w", len(all)+1, err)
		}
		all = append(all, c)
	}
	after, err := r.memory()
	fmt.Printf("| P5 %s that is quiet, KiB, of %d | %.1f | | | ≤ 12 |\n", what, quietStreams,
		float64(after-before)/quietStreams)
	return err
}

func (r *remote) dial() (net.Conn, error) {
	return net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
}

// openStream opens server-sent events.
func openStream(r *remote, session string) (net.Conn, error) {
	return r.asks(fmt.Sprintf("GET /api/v1/sessions/%s/events?after=1 HTTP/1.1\r\n", session), "200")
}

// openSocket opens a WebSocket and follows a session, by hand: a client library would use more
// memory than the server.
func openSocket(r *remote, session string) (net.Conn, error) {
	c, err := r.asks("GET /api/v1/ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "101")
	if err != nil {
		return nil, err
	}
	word := fmt.Sprintf(`{"type":"subscribe","session_id":%q,"after":1}`, session)
	frame := binary.BigEndian.AppendUint16([]byte{0x81, 0x80 | 126}, uint16(len(word)))
	frame = append(append(frame, 0, 0, 0, 0), word...) // masked by nothing
	if _, err := c.Write(frame); err != nil {
		return nil, err
	}
	answer := make([]byte, 2)
	for said := ""; !strings.Contains(said, "subscribed"); {
		if _, err := c.Read(answer[:1]); err != nil {
			return nil, err
		}
		if said += string(answer[:1]); len(said) > 4096 {
			return nil, fmt.Errorf("the server said %q", said)
		}
	}
	return c, nil
}

// asks sends a request and reads the head of its response.
func (r *remote) asks(request, status string) (net.Conn, error) {
	c, err := r.dial()
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "%sHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", request,
		strings.TrimPrefix(r.url, "http://"), r.token); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(oneByOne{c}, 16)
	for n := 0; ; n++ {
		line, err := in.ReadString('\n')
		if err != nil || n == 0 && !strings.Contains(line, status) {
			return nil, fmt.Errorf("%q, %w", line, err)
		}
		if line == "\r\n" {
			return c, nil
		}
	}
}

// oneByOne reads one byte at a time: bytes behind the head belong to another reader.
type oneByOne struct{ net.Conn }

// Read implements io.Reader.
func (c oneByOne) Read(p []byte) (int, error) { return c.Conn.Read(p[:1]) }
