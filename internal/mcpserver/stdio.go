package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/regie-run/regie/internal/text"
)

// maxLine bounds one message in bytes.
const maxLine = 16 << 20

// frames hands on what of a stream of lines are messages. A line that is none is answered with an
// error, as JSON-RPC wants it, and the connection goes on: the SDK's transport would end it. ended
// is called once, when there is no more.
type frames struct {
	in    *bufio.Reader
	out   io.Writer
	text  *text.Printer
	ended func()
	left  []byte // of the line that is being handed on
	begun bool   // the client has said initialize, or needs not
	ready bool   // and has said that it knows the answer
}

func (f *frames) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		line, err := f.line()
		if err != nil {
			f.ended()
			return 0, err
		}
		answer, handed := f.answer(line)
		switch {
		case answer != "":
			_, err = io.WriteString(f.out, answer+"\n")
		case handed:
			line = append(line, '\n')
			f.left = line
		}
		if err != nil {
			f.ended()
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

// answer is what answers a line at once, "" for one that is handed on or empty; a line to which
// JSON-RPC has no answer, and which nobody is to have, is taken as empty.
func (f *frames) answer(line []byte) (answer string, handed bool) {
	if len(line) == 0 {
		return "", false
	}
	if why := unclear(line); why != nil {
		return string(why.answer(f.text)), false
	}
	if !jsontext.Value(line).IsValid() {
		return `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, false
	}
	said, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`, false
	}
	call, is := said.(*jsonrpc.Request)
	if !is {
		return "", true
	}
	why := misfit(call)
	if why == nil {
		why = untimely(call, f.begun)
	}
	if why != nil {
		return string(why.answer(f.text)), false
	}
	switch {
	case call.Method == initialized && !call.IsCall():
		timely := f.begun && !f.ready
		f.ready = f.begun
		return "", timely
	case call.IsCall() && (call.Method == initialize || handshakeless(call)):
		f.begun = true
	}
	return "", true
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
