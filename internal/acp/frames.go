package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// maxLine bounds one message in bytes: the SDK ends the connection over a longer one.
const maxLine = 10<<20 - 1

// frames hands on what of a stream of lines are messages. A line that is none is answered with an error, as JSON-RPC wants it: the SDK would say nothing.
type frames struct {
	in   *bufio.Reader
	out  io.Writer
	left []byte // of the line that is being handed on
}

func (f *frames) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		line, long, err := f.line()
		if err != nil {
			return 0, err
		}
		refused := `{"code":-32600,"message":"Invalid Request: the message is larger than 10 MiB"}`
		if !long {
			refused = judged(line)
		}
		if refused != "" {
			if _, err := io.WriteString(f.out, `{"jsonrpc":"2.0","id":null,"error":`+refused+"}\n"); err != nil {
				return 0, err
			}
			continue
		}
		if len(line) > 0 {
			line = append(line, '\n')
			f.left = line
		}
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// line reads the next line, without its end and the white space around it; of one that is too long nothing is kept.
func (f *frames) line() (line []byte, long bool, err error) {
	for {
		piece, err := f.in.ReadSlice('\n')
		if long = long || len(line)+len(piece) > maxLine; long {
			line = nil
		} else {
			line = append(line, piece...)
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && (long || len(line) > 0):
			return bytes.TrimSpace(line), long, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// judged is the error that answers a line, "" for one that is a message or empty.
func judged(line []byte) string {
	if len(line) == 0 {
		return ""
	}
	if !jsontext.Value(line).IsValid() {
		return `{"code":-32700,"message":"Parse error"}`
	}
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  *string         `json:"method"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	err := json.Unmarshal(line, &m)
	id := jsontext.Value(m.ID)
	identified := len(id) > 0 && (id.Kind() == '"' || id.Kind() == '0')
	switch {
	case err != nil, m.Version != "2.0", len(id) > 0 && !identified && id.Kind() != 'n':
	case m.Method != nil && *m.Method != "":
		return ""
	case m.Method == nil && identified && (m.Result == nil) != (m.Error == nil):
		return ""
	}
	return `{"code":-32600,"message":"Invalid Request"}`
}

// together lets the SDK and frames write whole messages to one stream.
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
