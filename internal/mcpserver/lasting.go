package mcpserver

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lastAnswers bounds how long what came before the end of the input is still answered.
const lastAnswers = 5 * time.Second

// lasting is a transport on which what came before the end of the input is answered: the SDK takes
// the end for the client's, drops what it has not begun, and writes nothing more. closing ends the
// wait for it.
type lasting struct {
	mcp.Transport
	closing context.Context
}

// Connect implements mcp.Transport.
func (l *lasting) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := l.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lastingConn{
		Connection: inner, closing: l.closing, open: map[jsonrpc.ID]bool{},
		settled: make(chan struct{}, 1),
	}, nil
}

type lastingConn struct {
	mcp.Connection
	closing context.Context
	settled chan struct{} // has room for one: a call was answered, or nobody listens

	mu   sync.Mutex
	open map[jsonrpc.ID]bool // calls that are not answered
	gone bool                // nobody reads the answers
}

// Read implements mcp.Connection.
func (l *lastingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := l.Connection.Read(ctx)
	if err != nil {
		l.last()
		return message, err
	}
	// which lasts as long as its client
	if call, is := message.(*jsonrpc.Request); is && call.IsCall() && call.Method != "subscriptions/listen" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open[call.ID] = true
	}
	return message, nil
}

// Write implements mcp.Connection.
func (l *lastingConn) Write(ctx context.Context, message jsonrpc.Message) error {
	err := l.Connection.Write(ctx, message)
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer, is := message.(*jsonrpc.Response); is {
		delete(l.open, answer.ID)
	}
	l.gone = l.gone || err != nil
	select {
	case l.settled <- struct{}{}:
	default:
	}
	return err
}

// last waits until every call is answered.
func (l *lastingConn) last() {
	late := time.NewTimer(lastAnswers)
	defer late.Stop()
	for l.owes() {
		select {
		case <-l.settled:
		case <-l.closing.Done():
			return
		case <-late.C:
			return
		}
	}
}

func (l *lastingConn) owes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open) > 0 && !l.gone
}
