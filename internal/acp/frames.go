package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/go-json-experiment/json/jsontext"
)

// maxLine bounds one message in bytes: the SDK ends the connection over a longer one.
const maxLine = 10<<20 - 1

// frames hands on what of a stream of lines are messages. A line that is none is answered with an
// error, as JSON-RPC wants it: the SDK would say nothing.
type frames struct {
	in    *bufio.Reader
	out   io.Writer
	early func(method string) *sdk.RequestError // what a request before initialize is answered
	begun bool                                  // the editor has said initialize
	left  []byte                                // of the line that is being handed on
}

func (f *frames) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		line, long, err := f.line()
		if err != nil {
			return 0, err
		}
		refused := `{"code":-32600,"message":"Invalid Request: the message is larger than 10 MiB"}`
		if !long {
			var taken bool
			if refused, taken = judged(line); !taken && refused == "" {
				continue
			}
		}
		if taken := refused == "" && len(line) > 0; taken && !f.begun {
			answer, err := f.begins(line)
			if err == nil && answer != nil {
				_, err = f.out.Write(append(answer, '\n'))
			}
			if err != nil {
				return 0, err
			}
			if answer != nil {
				continue
			}
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

// begins answers a request that comes before initialize, which the protocol wants first; nil is for
// what is handed on. It is looked at here, where messages have their order: the SDK takes each by
// itself.
func (f *frames) begins(line []byte) (answer []byte, err error) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, err // it was judged
	}
	if m.Method == "" || len(m.ID) == 0 || string(m.ID) == "null" {
		return nil, nil // a notification, or an answer
	}
	if m.Method != sdk.AgentMethodInitialize {
		return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": f.early(m.Method)})
	}
	var in sdk.InitializeRequest
	f.begun = json.Unmarshal(m.Params, &in) == nil && in.Validate() == nil // the SDK refuses any other
	return nil, nil
}

// line reads the next line, without its end and the white space around it; of one that is too long
// nothing is kept.
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

// judged says whether a line is a message, or empty, and with what error one that is neither is
// answered: an error of the other side is not, whatever is wrong with it.
func judged(line []byte) (refused string, taken bool) {
	if len(line) == 0 {
		return "", true
	}
	if !jsontext.Value(line).IsValid() {
		return `{"code":-32700,"message":"Parse error"}`, false
	}
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  json.RawMessage `json:"method"`
		Result  json.RawMessage `json:"result"`
		Error   json.RawMessage `json:"error"`
	}
	err := json.Unmarshal(line, &m)
	id, method := jsontext.Value(m.ID), jsontext.Value(m.Method)
	identified := len(id) > 0 && (id.Kind() == '"' || id.Kind() == '0')
	switch {
	case err != nil, m.Version != "2.0", len(id) > 0 && !identified && id.Kind() != 'n':
	case len(method) > 2 && method.Kind() == '"': // and not ""
		return "", true
	case m.Method == nil && identified && answers(m.Result, m.Error):
		return "", true
	}
	if m.Error != nil && m.Method == nil {
		return "", false
	}
	return `{"code":-32600,"message":"Invalid Request"}`, false
}

// answers reports whether a response has either a result or an error. Some write both, one of them
// null.
func answers(result, failed json.RawMessage) bool {
	switch {
	case result == nil:
		return failed != nil && jsontext.Value(failed).Kind() != 'n'
	case failed == nil:
		return true
	}
	return jsontext.Value(result).Kind() == 'n' || jsontext.Value(failed).Kind() == 'n'
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
