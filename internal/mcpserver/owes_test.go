package mcpserver

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// script is a connection on which so many calls come and then the end; what is written goes
// nowhere, or fails.
type script struct {
	mcp.Connection
	calls  int64
	broken error
}

func (s *script) Read(context.Context) (jsonrpc.Message, error) {
	if s.calls == 0 {
		return nil, io.EOF
	}
	id, err := jsonrpc.MakeID(float64(s.calls))
	s.calls--
	return &jsonrpc.Request{ID: id, Method: "ping"}, err
}

func (s *script) Write(context.Context, jsonrpc.Message) error { return s.broken }

// TestLastAnswersAreBounded: the end of the input is told when all is answered, nobody reads, the
// server ends or the time for it is over.
func TestLastAnswersAreBounded(t *testing.T) {
	for name, row := range map[string]struct {
		answers int // of two calls, one second apart
		broken  error
		closing time.Duration
		want    time.Duration
	}{
		"all answered":       {2, nil, time.Hour, 2 * time.Second},
		"one is not":         {1, nil, time.Hour, lastAnswers},
		"nobody reads":       {1, io.ErrClosedPipe, time.Hour, time.Second},
		"the server closing": {0, nil, 3 * time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closing, cancel := context.WithTimeout(t.Context(), row.closing)
				defer cancel()
				conn, err := (&lasting{Transport: &transport{&script{calls: 2, broken: row.broken}}, closing: closing}).Connect(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var ids []jsonrpc.ID
				for range 2 {
					call, err := conn.Read(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if request, is := call.(*jsonrpc.Request); is {
						ids = append(ids, request.ID)
					}
				}
				for i := range row.answers {
					time.AfterFunc(time.Duration(i+1)*time.Second, func() { _ = conn.Write(t.Context(), &jsonrpc.Response{ID: ids[i]}) })
				}
				began := time.Now()
				if _, err := conn.Read(t.Context()); !errors.Is(err, io.EOF) || time.Since(began) != row.want {
					t.Errorf("%v after %s, want %s", err, time.Since(began), row.want)
				}
			})
		})
	}
}

// transport connects to what stands already.
type transport struct{ conn mcp.Connection }

func (t *transport) Connect(context.Context) (mcp.Connection, error) { return t.conn, nil }
