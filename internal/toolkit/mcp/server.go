package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

const (
	// freshness is how long a list of tools is believed without being read again before a call: a
	// server behind a URL may be replaced without any sign of it here.
	freshness = time.Minute
	// steady is how long a session must have lasted for its end not to count against the server.
	steady = time.Minute
)

// pauses are the minimum delays between restarts; the last one is for all later ones.
var pauses = []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Minute}

// patience is the longest pause between tries of a server behind a URL: asking for it starts
// nothing.
const patience = time.Minute

// Server is a configured MCP server, connected or not (spec 4.2). Its methods, and its tools, may
// be used from many goroutines. Close it.
type Server struct {
	config    Config
	secrets   []string
	transport *http.Transport // nil for a command
	alone     *http.Transport // the same, with a new connection for each request
	life      context.Context // ends with Close
	end       context.CancelFunc
	log       *slog.Logger

	// For tests.
	now       func() time.Time
	grace     time.Duration
	freshness time.Duration

	// turn is held to open, list or end the session, and guards what follows.
	turn     chan struct{}
	session  *session
	restarts int
	next     time.Time // no restart before it
	tried    bool      // to open a session
	failure  error     // of the last try to; nil where it was opened

	live    atomic.Pointer[session] // the session, for who only looks
	version atomic.Uint64           // rises with each list that is another one

	mu      sync.Mutex // guards what follows, and nothing is waited for under it
	offered []offer
	left    []string
	known   bool // there was a list
}

// New returns a server that nothing has been asked of yet: Ensure connects it. It returns
// CodeBadRequest for a configuration that Validate refuses.
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &Server{
		config: c, secrets: c.secretValues(), log: c.Log, turn: make(chan struct{}, 1), now: time.Now,
		grace: defaultGrace, freshness: freshness,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if c.URL != "" {
		s.transport = newTransport(c)
		s.alone = s.transport.Clone()
		s.alone.DisableKeepAlives = true
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Ensure has the server there, with the list of its tools as it now is: it starts or reaches one
// that is not, within the bounds of restarts and the configuration's StartTimeout, and reads the
// list again where the server said that it has changed, or where it is older than the freshness. It
// returns CodeServerDown with the server's last words where it does not answer, CodeNoPermission
// where it asks for a key, and the context's error.
func (s *Server) Ensure(ctx context.Context) error {
	ctx, cancel := s.boundContext(ctx)
	defer cancel()
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer s.giveTurn()
	return s.ensureSession(ctx)
}

// ensureSession is Ensure for who holds the turn.
func (s *Server) ensureSession(ctx context.Context) error {
	switch {
	case s.session == nil || s.session.isOver():
		return s.restartSession(ctx)
	case s.session.changed.Swap(false) || s.isStale(s.session):
		if err := s.listTools(ctx, s.session); err != nil {
			s.session.changed.Store(true)
			return err
		}
	}
	return nil
}

func (s *Server) isStale(session *session) bool {
	return s.now().Sub(time.Unix(0, session.listed.Load())) >= s.freshness
}

// standing is how a server is, as far as one can tell without asking it.
type standing int

const (
	gone    standing = iota // there is no connection
	changed                 // it said that its tools have changed
	stale                   // its list is older than the freshness
	fine
)

// currentStanding tells how the server is. It waits for nothing.
func (s *Server) currentStanding() standing {
	switch session := s.live.Load(); {
	case session == nil || session.isOver():
		return gone
	case session.changed.Load():
		return changed
	case s.isStale(session):
		return stale
	default:
		return fine
	}
}

// Tools returns the server's tools as it described them last, by name (spec 4.2), none before it
// has. Each runs only as long as the server describes it so.
func (s *Server) Tools() []tool.Tool {
	tools, _ := s.listedTools()
	return tools
}

// listedTools returns the tools with the version of their list.
func (s *Server) listedTools() ([]tool.Tool, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]tool.Tool, len(s.offered))
	for i, o := range s.offered {
		out[i] = &remote{offer: o, server: s}
	}
	return out, s.version.Load()
}

// Warnings names the tools that were left out of the last list, each with its reason, in English.
func (s *Server) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.left)
}

// Close ends the server: running calls end at once, with the outcome UNKNOWN where they were sent;
// its input is closed, then it and what it started are signalled and killed. It returns when all of
// it is gone, after a few seconds at the worst, and may be called twice.
func (s *Server) Close() {
	s.end()
	s.turn <- struct{}{} // whoever holds it is bound to life
	defer s.giveTurn()
	if s.session != nil {
		s.session.close()
		s.holdSession(nil)
	}
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
}

// boundContext bounds a context by the server's life.
func (s *Server) boundContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(s.life, cancel)
	return ctx, func() { release(); cancel() }
}

// takeTurn waits for the turn.
func (s *Server) takeTurn(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return s.contextEnd(ctx)
	}
	if s.life.Err() != nil {
		s.giveTurn()
		return s.closedError()
	}
	return nil
}

func (s *Server) giveTurn() { <-s.turn }

func (s *Server) closedError() error {
	return regie.Errorf(regie.CodeServerDown, "the MCP server %s is closed", s.config.Name)
}

// readySession returns a session for calling a tool: it is alive, and still describes the tool as
// when it was handed out. With any error, the tool was not called.
func (s *Server) readySession(ctx context.Context, t *remote) (*session, error) {
	if err := s.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer s.giveTurn()
	if err := s.ensureSession(ctx); err != nil {
		return nil, err
	}
	switch pin, ok := s.session.pins[t.remote]; {
	case !ok:
		return nil, regie.Errorf(regie.CodeToolChanged, "the MCP server %s no longer offers %s: nothing was run",
			s.config.Name, t.definition.Name)
	case pin != t.pin:
		return nil, regie.Errorf(regie.CodeToolChanged,
			"the MCP server %s has changed the definition of %s since it was listed: nothing was run",
			s.config.Name, t.definition.Name)
	}
	return s.session, nil
}

// restartSession opens the first session, or a new one after the end of the last, unless it is too
// soon.
func (s *Server) restartSession(ctx context.Context) error {
	now := s.now()
	last := s.session
	if last != nil && last.ended.Sub(last.began) >= steady {
		s.restarts = 0
	}
	if wait := s.next.Sub(now); wait > 0 && s.restarts > 0 {
		return regie.Errorf(regie.CodeServerDown,
			"the MCP server %s failed %d times and is tried again in %s: %s",
			s.config.Name, s.restarts, wait.Round(time.Second), s.describeEnd(last, s.failure))
	}
	if last != nil {
		s.log.Warn("MCP server restarts", "server", s.config.Name, "restart", s.restarts+1,
			"last", s.describeEnd(last, nil))
	}
	err := s.openSession(ctx)
	if s.tried || err != nil { // a first start that succeeds is no restart
		s.restarts++
		s.next = now.Add(s.retryDelay(s.restarts))
	}
	if s.tried, s.failure = true, err; err != nil {
		s.holdSession(nil) // how long the last one lasted was counted
	}
	return err
}

// retryDelay returns the least time from one try to the next.
func (s *Server) retryDelay(tries int) time.Duration {
	pause := pauses[min(tries, len(pauses)-1)]
	if s.config.URL != "" {
		pause = min(pause, patience)
	}
	return pause
}

// holdSession makes a session the server's.
func (s *Server) holdSession(session *session) {
	s.session = session
	s.live.Store(session)
}

// openSession connects and lists. On failure there is no session.
func (s *Server) openSession(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.startTimeout())
	defer cancel()
	fresh, err := s.dialServer(ctx)
	if err != nil {
		return err
	}
	if err := s.listTools(ctx, fresh); err != nil {
		fresh.close()
		return err
	}
	s.holdSession(fresh)
	return nil
}

// listTools reads the tools of a session and pins what they are now.
func (s *Server) listTools(ctx context.Context, session *session) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.startTimeout())
	defer cancel()
	session.changed.Store(false) // before the list is asked for: a change that is told from now on is a new one
	listed, err := session.listTools(ctx)
	if err != nil {
		return s.listError(ctx, session, err)
	}
	session.listed.Store(s.now().UnixNano())
	offered, left := makeOffers(s.config, listed)
	session.pins = map[string]regie.Hash{}
	for _, o := range offered {
		session.pins[o.remote] = o.pin
	}
	s.mu.Lock()
	same := slices.EqualFunc(s.offered, offered, func(a, b offer) bool { return a.pin == b.pin })
	first, sameLeft := !s.known, slices.Equal(s.left, left)
	if s.offered, s.left, s.known = offered, left, true; first || !same {
		s.version.Add(1)
	}
	s.mu.Unlock()
	if len(left) > 0 && !sameLeft {
		s.log.Warn("MCP tools left out", "server", s.config.Name, "tools", strings.Join(left, "; "))
	}
	if !same && !first {
		s.log.Warn("MCP tools changed", "server", s.config.Name)
	}
	return nil
}

// listError is the error of a list that could not be read.
func (s *Server) listError(ctx context.Context, session *session, err error) error {
	if ctx.Err() != nil && s.life.Err() == nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	down := regie.Errorf(regie.CodeServerDown, "the MCP server %s does not list its tools: %s",
		s.config.Name, s.describeEnd(session, err))
	down.Err = ctx.Err() // a list that is late says nothing about the connection
	return down
}
