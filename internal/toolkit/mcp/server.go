package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

const (
	// freshness is how long a list of tools is believed without being read again before a call: a server behind a URL may be replaced
	// without any sign of it here.
	freshness = time.Minute
	// steady is how long a session must have lasted for its end not to count against the server.
	steady = time.Minute
)

// pauses are the least times from one restart to the next; the last one stands for all later ones.
var pauses = []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Minute}

// Server is a connected MCP server (spec 4.2). Its methods, and its tools, may be used from many goroutines. Close it.
type Server struct {
	config    Config
	secrets   []string
	transport *http.Transport // nil for a command
	alone     *http.Transport // the same, with a new connection for each request
	life      context.Context // ends with Close
	end       context.CancelFunc
	changes   chan struct{}
	log       *slog.Logger

	// For tests.
	now       func() time.Time
	grace     time.Duration
	freshness time.Duration

	// turn is held by whoever opens, lists or ends the session, and guards what follows.
	turn     chan struct{}
	session  *session
	restarts int
	next     time.Time // no restart before it

	mu      sync.Mutex // guards what follows, and nothing is waited for under it
	offered []offer
	left    []string
	known   bool // there was a list
}

// Connect starts or reaches a server, introduces itself and reads the list of its tools, all within the configuration's StartTimeout.
// It returns CodeBadRequest for a configuration that Validate refuses, CodeServerDown with the server's last words where it does not
// answer, CodeNoPermission where it asks for a key, and the context's error.
func Connect(ctx context.Context, c Config) (*Server, error) {
	return connect(ctx, c, func(*Server) {})
}

// connect is Connect; set may change what tests change.
func connect(ctx context.Context, c Config, set func(*Server)) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		config: c, secrets: c.secrets(), log: c.Log, changes: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		now: time.Now, grace: defaultGrace, freshness: freshness,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	set(s)
	if c.URL != "" {
		s.transport = newTransport(c)
		s.alone = s.transport.Clone()
		s.alone.DisableKeepAlives = true
	}
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.Refresh(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Tools returns the server's tools as it described them last, by name (spec 4.2). Each runs only as long as the server describes it so;
// after Changes there are new ones to ask for, with new hashes.
func (s *Server) Tools() []tool.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]tool.Tool, len(s.offered))
	for i, o := range s.offered {
		out[i] = &remote{offer: o, server: s}
	}
	return out
}

// Warnings names the tools that were left out of the last list, each with its reason, in English.
func (s *Server) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.left)
}

// Changes receives a value after the server said that its tools have changed, or after they were found changed: call Refresh, then
// Tools. Values that nobody waits for become one.
func (s *Server) Changes() <-chan struct{} { return s.changes }

// Refresh reads the list of tools again, over a new connection if the old one has ended: at once, whatever the bounds of restarts say,
// and the count of them begins anew. Its errors are those of Connect.
func (s *Server) Refresh(ctx context.Context) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	s.restarts, s.next = 0, time.Time{}
	if s.session == nil || s.session.isOver() {
		return s.open(ctx)
	}
	return s.list(ctx, s.session)
}

// Close ends the server: running calls end at once, with the outcome UNKNOWN where they were sent; its input is closed, then it and
// what it started are signalled and killed. It returns when all of it is gone, after a few seconds at the worst, and may be called twice.
func (s *Server) Close() {
	s.end()
	s.turn <- struct{}{} // whoever holds it is bound to life
	defer s.give()
	if s.session != nil {
		s.session.close()
		s.session = nil
	}
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
}

// Origin tells of a tool which MCP server it is of, and whether that server is trusted; ok is false for any other tool. What a server
// without trust returns taints the session, and whatever is sent to one leaves the machine (decision 34).
func Origin(t tool.Tool) (server string, trusted, ok bool) {
	if t, is := t.(*remote); is {
		return t.server.config.Name, t.server.config.TrustHints, true
	}
	return "", false, false
}

// within bounds a context by the server's life.
func (s *Server) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(s.life, cancel)
	return ctx, func() { release(); cancel() }
}

// take waits for the turn.
func (s *Server) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return s.ended(ctx)
	}
	if s.life.Err() != nil {
		s.give()
		return s.closed()
	}
	return nil
}

func (s *Server) give() { <-s.turn }

func (s *Server) closed() error {
	return regie.Errorf(regie.CodeServerDown, "the MCP server %s is closed", s.config.Name)
}

// ready returns a session that a tool can be called in: one that is alive, and whose list says of the tool what it said when it was
// handed out. Whatever it returns as an error, the tool was not called.
func (s *Server) ready(ctx context.Context, t *remote) (*session, error) {
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	switch {
	case s.session == nil || s.session.isOver():
		if err := s.restart(ctx); err != nil {
			return nil, err
		}
	case s.session.changed.Swap(false) || s.now().Sub(s.session.listed) >= s.freshness:
		if err := s.list(ctx, s.session); err != nil {
			s.session.changed.Store(true)
			return nil, err
		}
	}
	switch pin, ok := s.session.pins[t.remote]; {
	case !ok:
		return nil, regie.Errorf(regie.CodeToolChanged, "the MCP server %s no longer offers %s: nothing was run", s.config.Name, t.definition.Name)
	case pin != t.pin:
		return nil, regie.Errorf(regie.CodeToolChanged,
			"the MCP server %s has changed the definition of %s since it was shown: nothing was run", s.config.Name, t.definition.Name)
	}
	return s.session, nil
}

// restart opens a session in place of one that has ended, unless it is too soon for that.
func (s *Server) restart(ctx context.Context) error {
	now := s.now()
	last := s.session
	if last != nil && last.ended.Sub(last.began) >= steady {
		s.restarts = 0
	}
	if wait := s.next.Sub(now); wait > 0 && s.restarts > 0 {
		return regie.Errorf(regie.CodeServerDown, "the MCP server %s is down after %d restarts and is left alone for %s: %s",
			s.config.Name, s.restarts, wait.Round(time.Second), s.epitaph(last, nil))
	}
	s.restarts++
	s.next = now.Add(pauses[min(s.restarts, len(pauses)-1)])
	s.log.Warn("MCP server restarts", "server", s.config.Name, "restart", s.restarts, "last", s.epitaph(last, nil))
	return s.open(ctx)
}

// open connects and lists. On failure there is no session.
func (s *Server) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.start())
	defer cancel()
	fresh, err := s.dial(ctx)
	if err != nil {
		return err
	}
	if err := s.list(ctx, fresh); err != nil {
		fresh.close()
		return err
	}
	s.session = fresh
	return nil
}

// list reads the tools of a session and pins what they are now.
func (s *Server) list(ctx context.Context, session *session) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.start())
	defer cancel()
	session.changed.Store(false) // before the list is asked for: a change that is told from now on is a new one
	listed, err := session.tools(ctx)
	if err != nil {
		return s.unlisted(ctx, session, err)
	}
	session.listed = s.now()
	offered, left := offers(s.config, listed)
	session.pins = map[string]regie.Hash{}
	for _, o := range offered {
		session.pins[o.remote] = o.pin
	}
	s.mu.Lock()
	same := slices.EqualFunc(s.offered, offered, func(a, b offer) bool { return a.pin == b.pin })
	first, sameLeft := !s.known, slices.Equal(s.left, left)
	s.offered, s.left, s.known = offered, left, true
	s.mu.Unlock()
	if len(left) > 0 && !sameLeft {
		s.log.Warn("MCP tools left out", "server", s.config.Name, "tools", strings.Join(left, "; "))
	}
	if !same && !first {
		s.log.Warn("MCP tools changed", "server", s.config.Name)
		s.tell()
	}
	return nil
}

// tell says that the tools have changed, or may have.
func (s *Server) tell() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// unlisted is the error of a list that could not be read.
func (s *Server) unlisted(ctx context.Context, session *session, err error) error {
	if ctx.Err() != nil && s.life.Err() == nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return regie.Errorf(regie.CodeServerDown, "the MCP server %s does not list its tools: %s", s.config.Name, s.epitaph(session, err))
}
