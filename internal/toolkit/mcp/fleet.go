package mcp

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// defaultWait is how long a round that begins waits for a server that is just being tried, counted
// from the beginning of the try.
const defaultWait = 5 * time.Second

// Fleet is the configured servers of an engine, and the registry that its rounds begin with: the
// tools of the house and those of the servers that are there. A server that is down, slow or broken
// keeps nothing from starting: its tools are away until it is there.
//
// It polls nothing. Servers are looked at when a round begins (Tools); one that is away, or that
// said that its tools have changed, is then tried in the background, within the bounds of its
// restarts, and the round waits for it until the configured Wait has passed since the try began.
// What comes later is there for the next round. Its methods may be used from many goroutines.
type Fleet struct {
	registry atomic.Pointer[tool.Registry]
	members  []*member
	log      *slog.Logger

	mu     sync.Mutex // guards what the members say, and the making of a registry; nothing is waited for under it
	closed bool
	tries  sync.WaitGroup
}

// member is a server of a fleet.
type member struct {
	server *Server
	wait   time.Duration
	shown  atomic.Uint64 // the version of the list that is in the registry; 0 while the server is away

	// Guarded by the fleet's mu.
	try      *try // nil while none goes on
	failures int  // tries in a row
	next     time.Time
}

// try is one attempt at having a server there.
type try struct {
	done   chan struct{}
	began  time.Time
	awaits bool // rounds that begin wait for it
}

// NewFleet returns the fleet of the configured servers, with the built-in tools. It starts nothing
// yet. It returns CodeBadRequest for an invalid configuration.
func NewFleet(house *tool.Registry, log *slog.Logger, configs ...Config) (*Fleet, error) {
	f := &Fleet{log: log}
	f.registry.Store(house)
	for _, c := range configs {
		server, err := New(c)
		if err != nil {
			return nil, err
		}
		m := &member{server: server, wait: c.Wait}
		if m.wait == 0 {
			m.wait = defaultWait
		}
		f.members = append(f.members, m)
		f.publishTools(m, nil, 0, regie.Errorf(regie.CodeServerDown, "the MCP server %s has not answered yet", c.Name))
	}
	return f, nil
}

// Start begins to connect all servers and returns at once.
func (f *Fleet) Start() {
	for _, m := range f.members {
		f.syncRegistry(m)
	}
}

// Registry returns the tools as they now are.
func (f *Fleet) Registry() *tool.Registry { return f.registry.Load() }

// Tools returns the tools that a round which begins now works with. It waits for servers that are
// just being tried, at most until their Wait has passed since then, or until ctx ends. Where all
// are there it costs a look at each.
func (f *Fleet) Tools(ctx context.Context) *tool.Registry {
	for _, m := range f.members { // all of them first: they are tried side by side
		f.syncRegistry(m)
	}
	for _, m := range f.members {
		f.awaitTry(ctx, m)
	}
	return f.registry.Load()
}

// Close ends all servers and what tries to reach them, and waits for that.
func (f *Fleet) Close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	var group sync.WaitGroup
	for _, m := range f.members {
		group.Go(m.server.Close)
	}
	group.Wait()
	f.tries.Wait()
}

// syncRegistry brings the registry in line with what a server has listed, and begins a try where
// that is not what it offers now.
func (f *Fleet) syncRegistry(m *member) {
	if m.server.currentStanding() == fine && m.shown.Load() == m.server.version.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	stands, shown := m.server.currentStanding(), m.shown.Load()
	// A call has read a new list, or has brought the server back. What a server said that is away
	// counts only once it is there again.
	if shown != m.server.version.Load() && (stands == fine || stands != gone && shown != 0) {
		f.showListed(m)
	}
	if stands == fine || f.closed || m.try != nil || m.server.now().Before(m.next) {
		return
	}
	// A list that is merely old is believed for this round: each call compares what it runs with a
	// fresh one.
	t := &try{done: make(chan struct{}), began: time.Now(), awaits: stands != stale}
	m.try = t
	f.tries.Go(func() {
		err := m.server.Ensure(context.Background()) // it ends with the server's life
		f.handleTry(m, err)
		close(t.done)
	})
}

// awaitTry waits for the try that goes on with a server.
func (f *Fleet) awaitTry(ctx context.Context, m *member) {
	f.mu.Lock()
	t := m.try
	f.mu.Unlock()
	if t == nil || !t.awaits || ctx.Err() != nil {
		return
	}
	timer := time.NewTimer(time.Until(t.began.Add(m.wait)))
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// handleTry takes what came of a try.
func (f *Fleet) handleTry(m *member, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.try = nil
	if err == nil {
		m.failures, m.next = 0, time.Time{}
		f.showListed(m)
		return
	}
	m.failures++
	m.next = m.server.now().Add(m.server.retryDelay(m.failures))
	if f.closed {
		return
	}
	if m.server.currentStanding() != gone && m.shown.Load() != 0 && errors.Is(err, context.DeadlineExceeded) {
		// it may be at work: its tools stay
		f.log.Info("MCP server is slow", "server", m.server.config.Name, "error", err)
		return
	}
	f.log.Info("MCP server is away", "server", m.server.config.Name, "try", m.failures, "error", err)
	f.publishTools(m, nil, 0, err)
}

// showListed puts a server's tools into the registry, as it listed them last.
func (f *Fleet) showListed(m *member) {
	tools, version := m.server.listedTools()
	f.publishTools(m, tools, version, nil)
}

// publishTools puts a server's tools into the registry, or why they are away.
func (f *Fleet) publishTools(m *member, tools []tool.Tool, version uint64, away error) {
	registry, err := f.registry.Load().With(m.server.config.Name, tools, away)
	if err != nil { // each of the tools was tried alone before it was offered
		f.log.Error("tools of an MCP server cannot be used", "server", m.server.config.Name, "error", err)
		if registry, err = f.registry.Load().With(m.server.config.Name, nil, err); err != nil {
			return
		}
	}
	m.shown.Store(version)
	f.registry.Store(registry)
}
