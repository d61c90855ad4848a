package app

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/mcpserver"
)

// attachTimeout bounds how long a command waits for an engine that is starting or ending. What it
// does itself, as an engine, takes the time that it takes: a migration that were cut off would
// begin anew each time, and never be done. A variable for the tests.
var attachTimeout = 15 * time.Second

// Conn is the client of a command (decision 1). It talks to the engine of this process or to the
// one that holds the data directory. When that engine goes, Conn takes over and repeats the
// request: requests are idempotent.
type Conn struct {
	*client.Client
	options Options

	mu      sync.Mutex
	engine  *Engine        // of this process; nil where another one serves
	current *client.Client // of the engine that serves now; nil where none is known
	away    bool           // Options.Away was told so
}

// Connect attaches to the data directory.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	c := &Conn{options: o}
	c.Client = client.Attach(c.sendToEngine)
	_, err := c.attachEngine(ctx)
	return c, err
}

// IsEngine reports whether this process is the engine.
func (c *Conn) IsEngine() bool { return c.ownEngine() != nil }

// ownEngine returns the engine of this process; nil where another one serves.
func (c *Conn) ownEngine() *Engine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine
}

// Close detaches. It ends an engine of this process; the next engine resumes its other runs.
func (c *Conn) Close() error {
	c.mu.Lock()
	engine, current := c.engine, c.current
	c.mu.Unlock() // who asks meanwhile is told that the engine has gone, and not kept waiting
	if current != nil {
		current.Close()
	}
	if engine != nil {
		return engine.Close()
	}
	return nil
}

// drainTime bounds how long an engine that is no longer needed here waits for the model calls of
// other processes' runs.
const drainTime = time.Minute

// Drain waits before Close until the model calls and actions that this engine runs for other
// processes have ended: an interrupted call would be paid for twice (decision 29). Each run stops
// at its next stored step, and the next engine resumes it. Drain returns when all have stopped,
// when ctx ends, or after a minute; it calls busy after one second.
func (c *Conn) Drain(ctx context.Context, busy func()) {
	engine := c.ownEngine()
	if engine == nil || engine.dispatcher == nil || engine.readOnly {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	telling := time.AfterFunc(time.Second, busy)
	defer telling.Stop()
	engine.dispatcher.Drain(ctx)
}

// attachRemote attaches to the server that the settings name. It returns CodeServerDown where that
// does not answer.
func (c *Conn) attachRemote(ctx context.Context) (*client.Client, error) {
	settings := &c.options.Config
	token := settings.Token
	if token == "" && isLocal(settings.Server) {
		token, _ = ReadToken(settings.DataDir) // the owner's own, for nobody else's server
	}
	remote, err := client.New(settings.Server, token, i18n.New(settings.Language).Language())
	if err == nil && token == "" {
		err = regie.Errorf(regie.CodeNoToken,
			"there is no token for %s: set REGIE_TOKEN to one of that server (regie token add there); this machine's own token is valid only for its own address",
			settings.Server)
	}
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, attachTimeout, errAway)
	defer cancel()
	if err := remote.Alive(waiting); err != nil {
		remote.Close()
		return nil, regie.Errorf(regie.CodeServerDown, "no Regie answers at %s: is regie serve running there? (%v)",
			settings.Server, err)
	}
	c.current = remote
	return remote, nil
}

var errAway = regie.Errorf(regie.CodeServerDown, "the server does not answer")

// attachEngine returns a client of the engine at hand, or becomes the engine, or finds the one that
// runs.
func (c *Conn) attachEngine(ctx context.Context) (*client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		return c.current, nil
	}
	if c.options.Config.Server != "" {
		return c.attachRemote(ctx)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, attachTimeout, silentHolder(c.options.Config.DataDir))
	defer cancel()
	dial := dialSocket(c.options.Config.DataDir)
	if c.options.ReadOnly {
		if done, err := c.findEngine(waiting, dial); done {
			return c.current, err
		}
	}
	for {
		engine, err := OpenEngine(ctx, c.options)
		if err == nil {
			c.useOwnEngine(engine)
			return c.current, nil
		}
		if !errors.Is(err, errHeld) {
			return nil, err
		}
		if c.becomeClient(waiting, dial) {
			return c.current, c.checkRules()
		}
		// The holder is between taking the lock and listening, or between closing and letting go.
		if err := sleepFor(waiting, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// silentHolder says who holds a data directory and does not answer.
func silentHolder(dir string) error {
	pid := describeHolder(dir) // a name, not a number that a language would write with commas
	return regie.Errorf(regie.CodeLocked,
		"process %s holds %s and does not answer: wait for it, wake it if it was stopped (kill -CONT %s), or end it", pid, dir, pid)
}

// becomeClient makes this process a client where an engine answers.
func (c *Conn) becomeClient(ctx context.Context, dial func(context.Context) (net.Conn, error)) bool {
	found := client.Local(dial, i18n.New(c.options.Config.Language).Language())
	if found.Alive(ctx) != nil {
		found.Close()
		return false
	}
	c.current = found
	if own, ok := c.options.Config.ClientProvider(); ok && !c.options.ReadOnly {
		// where the engine does not take it, it says so to the run that needs it
		_ = client.AddProvider(ctx, found, own)
	}
	return true
}

// useOwnEngine talks to the engine of this process from now on.
func (c *Conn) useOwnEngine(engine *Engine) {
	c.engine = engine
	c.current = engine.Client(i18n.New(c.options.Config.Language).Language())
}

// findEngine finds a running engine, or opens the store read-only. It reports whether that is
// enough: only an engine migrates an older schema, and a reader does not migrate a shared database.
func (c *Conn) findEngine(ctx context.Context, dial func(context.Context) (net.Conn, error)) (bool, error) {
	if c.becomeClient(ctx, dial) {
		return true, nil
	}
	reader, err := openReader(ctx, c.options)
	if regie.CodeOf(err) == regie.CodeConflict && c.options.Config.Database == "" {
		return false, err
	}
	if err == nil {
		c.useOwnEngine(reader)
	}
	return true, err
}

// goneFor bounds how long a request is repeated after its engine has gone. An ending engine still
// answers, with its state, until other clients' work has drained (Drain) and its actions have
// finished or were cut (decision 6).
const goneFor = drainTime + 30*time.Second

// sendToEngine sends a request to the engine at hand, and again to the next one where that has gone
// meanwhile.
func (c *Conn) sendToEngine(ctx context.Context, send func(*client.Client) error) error {
	var since time.Time // the engine has gone
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		engine, err := c.attachEngine(ctx)
		if regie.CodeOf(err) == regie.CodeServerDown && !since.IsZero() &&
			time.Since(since) < goneFor && sleepFor(ctx, pause) == nil {
			c.tellAway(time.Since(since) > awayAfter)
			continue // it is being started again
		}
		if err != nil {
			return err
		}
		c.tellAway(false)
		asked := time.Now()
		err = send(engine)
		if regie.CodeOf(err) == regie.CodeNoToken && c.options.Config.Server != "" {
			return regie.Errorf(regie.CodeNoToken,
				"the Regie at %s takes another token: set REGIE_TOKEN to the one in its data directory (api.token)",
				c.options.Config.Server)
		}
		if regie.CodeOf(err) == regie.CodeLocked && !c.isOwnEngine(engine) && c.options.Config.Server == "" {
			return silentHolder(c.options.Config.DataDir)
		}
		if regie.CodeOf(err) != regie.CodeEngineGone || !c.dropClient(engine) {
			return err
		}
		// a follower that was served for a while has a fresh allowance
		if since.IsZero() || time.Since(asked) > time.Second {
			since, pause = time.Now(), 5*time.Millisecond
		}
		if time.Since(since) > goneFor {
			return err
		}
		if err := sleepFor(ctx, pause); err != nil {
			return err
		}
	}
}

// awayAfter is how long an engine may be gone before the user gets a message.
const awayAfter = 500 * time.Millisecond

// tellAway says that no engine answers, or that one does again, where that is news.
func (c *Conn) tellAway(away bool) {
	c.mu.Lock()
	news := away != c.away
	c.away = away
	c.mu.Unlock()
	if news && c.options.Away != nil {
		c.options.Away(away)
	}
}

func sleepFor(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isOwnEngine reports whether a client is that of this process's engine.
func (c *Conn) isOwnEngine(engine *client.Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine != nil && engine == c.current
}

// dropClient drops the client of an engine that has gone, and reports whether another one can be
// asked. An engine of this process that has ended was closed by the owner of this Conn.
func (c *Conn) dropClient(engine *client.Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine != nil {
		return engine != c.current
	}
	if engine == c.current {
		engine.Close()
		c.current = nil
	}
	return true
}

// ForMCP returns what an MCP server on standard input and output asks.
func (c *Conn) ForMCP() mcpserver.Control {
	return mcpserver.Control{
		Submit: c.Submit, Stop: c.Stop, Events: c.Events, Sessions: c.Sessions, Session: c.Session,
		Inbox: c.Inbox, Decide: c.Decide, Answer: c.Answer, Workspaces: c.Workspaces.List,
		OpenWorkspace: c.Workspaces.Open, Tools: c.Catalog.Tools, Query: c.Workspaces.Query,
	}
}

// checkRules refuses an engine that decides by other rules than those of the file that was named.
func (c *Conn) checkRules() error {
	settings := &c.options.Config
	if !otherRules(settings) {
		return nil
	}
	c.current.Close()
	c.current = nil
	return regie.Errorf(regie.CodeConflict,
		"process %s is the engine of %s and uses other settings (rules, sandbox, limits) than the file you named: stop it, use another data directory, or use its settings",
		describeHolder(settings.DataDir), settings.DataDir)
}

// Wait returns when a round no longer runs in this process, as dispatch.Dispatcher.Wait; at once
// where it runs in another one.
func (c *Conn) Wait(ctx context.Context, round regie.ID) error {
	if engine := c.ownEngine(); engine != nil {
		return engine.Wait(ctx, round)
	}
	return nil
}
