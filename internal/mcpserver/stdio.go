package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxLine bounds one message in bytes.
const maxLine = 16 << 20

// What answers a line that is no message.
const (
	noJSON = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":` +
		`"Parse error: a message is one JSON value in UTF-8 in which each key stands once"}}` + "\n"
	noMessage = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}` + "\n"
)

// frames hands on what of a stream of lines are messages. A line that is none is answered with an
// error, as JSON-RPC wants it, and the connection goes on: the SDK's transport would end it.
type frames struct {
	in   *bufio.Reader
	out  io.Writer
	left []byte // of the line that is being handed on
}

func (f *frames) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		line, err := f.line()
		if err != nil {
			return 0, err
		}
		switch _, broken := jsonrpc.DecodeMessage(line); {
		case len(line) == 0:
		case !jsontext.Value(line).IsValid():
			_, err = io.WriteString(f.out, noJSON)
		case broken != nil:
			_, err = io.WriteString(f.out, noMessage)
		default:
			f.left = append(slices.Clip(line), '\n')
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// Close does nothing: whoever gave the stream closes it.
func (f *frames) Close() error { return nil }

var errLongLine = errors.New("a message has more than 16 MiB")

// line reads the next line, without its end and the white space around it.
func (f *frames) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := f.in.ReadSlice('\n')
		if len(line)+len(piece) > maxLine {
			return nil, errLongLine
		}
		line = append(line, piece...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return bytes.TrimSpace(line), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// together lets several write whole messages to one stream.
type together struct {
	mu sync.Mutex
	io.Writer
}

// Write implements io.Writer.
func (t *together) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Writer.Write(p)
}

// Close does nothing: whoever gave the stream closes it.
func (t *together) Close() error { return nil }
