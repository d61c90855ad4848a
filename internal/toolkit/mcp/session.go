package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

const (
	// settledVersion is the first protocol to try with a server. Newer ones begin with a question
	// that older servers do not know, and some never answer.
	settledVersion = "2025-11-25"
	maxPages       = 100   // of a list
	maxListed      = 5_000 // tools in it, before the filters
	maxAsked       = 1_000 // requests and notices of a server's in a minute
	goodbye        = 5 * time.Second
)

// session is one connection to a server, with the process behind it where it is a command.
type session struct {
	client  *sdk.ClientSession
	process *process // nil over HTTP
	cancel  context.CancelFunc
	log     *tail
	hello   *flight       // of the first request
	over    chan struct{} // closed by watch: the connection has ended, the process is gone

	changed atomic.Bool  // the server said that its tools have changed
	listed  atomic.Int64 // when its list was read, in nanoseconds since 1970
	began   time.Time
	ended   time.Time // set before over

	// Guarded by the server's turn.
	pins map[string]regie.Hash // by the server's name for the tool
}

// dialServer opens a connection, in a newer protocol where the server does not speak the settled
// one.
func (s *Server) dialServer(ctx context.Context) (*session, error) {
	session, err := s.dialIn(ctx, settledVersion)
	said, answered := errors.AsType[*jsonrpc.Error](err)
	if answered && (said.Code == jsonrpc.CodeMethodNotFound || said.Code == sdk.CodeUnsupportedProtocolVersion) {
		session, err = s.dialIn(ctx, "") // the newest
	}
	switch coded, ok := errors.AsType[*regie.Error](err); {
	case err == nil:
		return session, nil
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, s.contextEnd(ctx)
	case ok && coded.Code == regie.CodeServerDown && session == nil: // it says it all
		return nil, coded
	}
	defer session.abandonSession()
	return nil, s.unansweredError(session, err)
}

// dialIn opens a connection in one version of the protocol. Where the server was reached and does
// not answer well, the session is returned with the error, for what it said: it has ended.
func (s *Server) dialIn(ctx context.Context, version string) (*session, error) {
	life, cancel := context.WithCancel(context.Background())
	out := &session{cancel: cancel, log: &tail{}, over: make(chan struct{}), began: s.now()}
	var transport sdk.Transport
	if s.transport != nil {
		w := &wire{inner: s.transport, alone: s.alone, life: life, c: s.config}
		transport = &sdk.StreamableClientTransport{
			Endpoint: s.config.URL, HTTPClient: w.httpClient(),
			MaxRetries: 3, MaxEventSize: maxMessage,
		}
	} else {
		var err error
		if out.process, err = startProcess(s.config, out.log, s.grace); err != nil {
			cancel()
			return nil, err
		}
		transport = stdio{out.process}
	}
	ctx, out.hello = withFlight(ctx, false)
	client := sdk.NewClient(&sdk.Implementation{Name: "regie", Title: "Regie", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, // no sampling, no questions, no roots
		// A call that asks for input would be sent again by the SDK, with the answers: a once must
		// not be.
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { out.changed.Store(true) },
	})
	client.AddReceivingMiddleware(out.limitRequests(s.now))
	client.AddSendingMiddleware(bypassCache)
	connected, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		if out.process != nil {
			out.process.stranger.Store(true)
		}
		out.requestEnd()
		if out.process != nil {
			<-out.process.done
		}
		close(out.over)
		return out, err
	}
	out.client = connected
	go out.watchConnection(s.now)
	return out, nil
}

// watchConnection waits for the end of the connection, and then brings about the end of the rest.
func (s *session) watchConnection(now func() time.Time) {
	defer close(s.over)
	_ = s.client.Wait() // why it ended is in the log, or in the error of the call that met it
	s.ended = now()
	s.requestEnd()
	if s.process != nil {
		<-s.process.done
	}
}

// requestEnd asks everything of the session to end.
func (s *session) requestEnd() {
	s.cancel()
	if s.process != nil {
		s.process.requestEnd()
	}
}

// close ends the session in good order and waits for its end. Its calls must have ended, or be
// about to.
func (s *session) close() {
	if s.process != nil {
		s.process.requestEnd() // its input is closed first, as the protocol asks
	}
	// The SDK waits for answers to the server's own requests to be taken, and over HTTP for the
	// server to note the end.
	timer := time.AfterFunc(goodbye, s.requestEnd)
	defer timer.Stop()
	_ = s.client.Close()
	<-s.over
}

// abandonSession is close for a session that never came to be.
func (s *session) abandonSession() {
	if s != nil {
		s.requestEnd()
	}
}

func (s *session) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// limitRequests ends the session of a server that asks without end: the SDK answers each of its
// requests from a goroutine.
func (s *session) limitRequests(now func() time.Time) sdk.Middleware {
	asked := rate.NewLimiter(rate.Limit(maxAsked)/60, maxAsked)
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
			if !asked.AllowN(now(), 1) {
				_, _ = fmt.Fprintf(s.log, "it asked for %s and the like more than %d times in a minute\n",
					sanitize.Clip(method, 60), maxAsked)
				s.requestEnd()
				return nil, errEnded
			}
			return next(ctx, method, request)
		}
	}
}

// bypassCache keeps the SDK from answering a request for the list of tools from its cache.
func bypassCache(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, request sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, request)
		if list, ok := result.(*sdk.ListToolsResult); ok && err == nil && list != nil {
			list.TTLMs = 0
		}
		return result, err
	}
}

// listTools reads the whole list, within bounds.
func (s *session) listTools(ctx context.Context) ([]*sdk.Tool, error) {
	var out []*sdk.Tool
	cursor := ""
	for range maxPages {
		page, err := s.client.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		if out = append(out, page.Tools...); len(out) > maxListed {
			return nil, fmt.Errorf("it lists more than %d tools", maxListed)
		}
		if page.NextCursor == "" {
			return out, nil
		}
		cursor = page.NextCursor
	}
	return nil, fmt.Errorf("its list has more than %d pages", maxPages)
}
