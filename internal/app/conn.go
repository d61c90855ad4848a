package app

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider/wire"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// attachTimeout bounds how long a command waits for an engine that is starting or ending. What it
// does itself, as an engine, takes the time that it takes: a migration that were cut off would
// begin anew each time, and never be done. A variable for the tests.
var attachTimeout = 15 * time.Second

// Conn is the Control of a command (decision 1): the engine of this process, or a client of the one
// that holds the data directory. When that one goes, Conn takes over, and what was asked of it is
// asked again: requests are idempotent.
type Conn struct {
	options Options

	mu     sync.Mutex
	engine *Engine
	client *client.Client
	away   bool // Options.Away was told so
}

// Connect attaches to the data directory.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	c := &Conn{options: o}
	_, err := c.attach(ctx)
	return c, err
}

// IsEngine reports whether this process is the engine.
func (c *Conn) IsEngine() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine != nil
}

// Close detaches; an engine of this process ends, its other runs go on with whoever comes next.
func (c *Conn) Close() error {
	c.mu.Lock()
	engine, client := c.engine, c.client
	c.mu.Unlock() // who asks meanwhile is told that the engine has gone, and not kept waiting
	if client != nil {
		client.Close()
	}
	if engine != nil {
		return engine.Close()
	}
	return nil
}

// drainTime bounds how long an engine that is no longer needed here waits for the model calls of
// other processes' runs.
const drainTime = time.Minute

// Drain waits before Close, in the engine, until the model calls and actions of other processes'
// runs that are under way here have ended: one that is cut would be paid for twice (decision 29).
// Each run stops at its next stored step, for whoever holds the data directory next. It returns
// when all have, when ctx ends, or after a minute; busy is called where that takes more than a
// second.
func (c *Conn) Drain(ctx context.Context, busy func()) {
	c.mu.Lock()
	engine := c.engine
	c.mu.Unlock()
	if engine == nil || engine.local == nil || engine.dispatcher == nil || engine.readOnly {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	telling := time.AfterFunc(time.Second, busy)
	defer telling.Stop()
	engine.dispatcher.Drain(ctx)
}

// remote attaches to the server that the settings name. It returns CodeServerDown where that does
// not answer.
func (c *Conn) remote(ctx context.Context) (dispatch.Control, error) {
	token, language := c.options.Config.Token, text.New(c.options.Config.Language).Language()
	remote, err := client.New(c.options.Config.Server, token, language)
	if err != nil { // what is no address has no token either
		return nil, err
	}
	if token == "" {
		// the owner's own, for nobody else's server
		if u, err := url.Parse(c.options.Config.Server); err != nil || !wire.IsLoopback(u.Hostname()) {
			return nil, regie.Errorf(regie.CodeNoToken,
				"there is no token for %s: set REGIE_TOKEN to one of that server (regie token add there); this machine's own is for no other address than its own",
				c.options.Config.Server)
		}
		if token, err = ReadToken(c.options.Config.DataDir); err != nil {
			return nil, regie.Errorf(regie.CodeNoToken,
				"there is no token for %s: set REGIE_TOKEN to that of its data directory (%v)",
				c.options.Config.Server, err)
		}
		if remote, err = client.New(c.options.Config.Server, token, language); err != nil {
			return nil, err
		}
	}
	waiting, cancel := context.WithTimeoutCause(ctx, attachTimeout, errAway)
	defer cancel()
	if err := remote.Alive(waiting); err != nil {
		remote.Close()
		return nil, regie.Errorf(regie.CodeServerDown, "no Regie answers at %s: is regie serve running there? (%v)",
			c.options.Config.Server, err)
	}
	c.client = remote
	return remote, nil
}

var errAway = regie.Errorf(regie.CodeServerDown, "the server does not answer")

// ServerVersion is that of a server.
type ServerVersion = client.Version

// ServerVersion is the version of the server that the settings name.
func (c *Conn) ServerVersion(ctx context.Context) (ServerVersion, error) {
	c.mu.Lock()
	remote := c.client
	c.mu.Unlock()
	return remote.Version(ctx)
}

// attach returns the Control at hand, or becomes the engine, or finds the one that runs.
func (c *Conn) attach(ctx context.Context) (dispatch.Control, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine != nil {
		return c.engine, nil
	}
	if c.client != nil {
		return c.client, nil
	}
	if c.options.Config.Server != "" {
		return c.remote(ctx)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, attachTimeout, silent(c.options.Config.DataDir))
	defer cancel()
	dial := dialer(c.options.Config.DataDir)
	if c.options.ReadOnly {
		if done, err := c.look(waiting, dial); done {
			return c.control(), err
		}
	}
	for {
		engine, err := OpenEngine(ctx, c.options)
		if err == nil {
			c.engine = engine
			if c.options.Engine != nil {
				c.options.Engine()
			}
			return engine, nil
		}
		if !errors.Is(err, errHeld) {
			return nil, err
		}
		if c.found(waiting, dial) {
			return c.client, nil
		}
		// The holder is between taking the lock and listening, or between closing and letting go.
		select {
		case <-time.After(10 * time.Millisecond):
		case <-waiting.Done():
			return nil, context.Cause(waiting)
		}
	}
}

// silent says who holds a data directory and does not answer.
func silent(dir string) error {
	if pid := holder(dir); pid != "" { // a name, not a number that a language would write with commas
		return regie.Errorf(regie.CodeLocked,
			"process %s holds %s and does not answer: wait for it, wake it if it was stopped (kill -CONT %s), or end it", pid, dir, pid)
	}
	return regie.Errorf(regie.CodeLocked, "another process holds %s and does not answer: wait for it, or end it", dir)
}

// found makes this process a client where an engine answers.
func (c *Conn) found(ctx context.Context, dial func(context.Context) (net.Conn, error)) bool {
	client := client.Local(dial, text.New(c.options.Config.Language).Language())
	if client.Alive(ctx) != nil {
		client.Close()
		return false
	}
	c.client = client
	return true
}

// look finds an engine to ask, or reads the store beside it. It reports whether that decides it: an
// older schema of one's own file must be migrated, which is an engine's work. A database that
// others share is not migrated by who only looks.
func (c *Conn) look(ctx context.Context, dial func(context.Context) (net.Conn, error)) (bool, error) {
	if c.found(ctx, dial) {
		return true, nil
	}
	reader, err := openReader(ctx, c.options)
	if regie.CodeOf(err) == regie.CodeConflict && c.options.Config.Database == "" {
		return false, err
	}
	if err == nil {
		c.engine = reader
	}
	return true, err
}

func (c *Conn) control() dispatch.Control {
	switch {
	case c.engine != nil:
		return c.engine
	case c.client != nil:
		return c.client
	default:
		return nil
	}
}

// goneFor bounds how long a request is asked anew after its engine has gone. An engine that ends
// still answers, that it does, until what others have under way in it has ended (Drain) and its
// actions have finished or were cut (decision 6).
const goneFor = drainTime + 30*time.Second

// on runs fn on the Control at hand, and again on the next one where the engine has gone meanwhile.
func on[T any](ctx context.Context, c *Conn, fn func(dispatch.Control) (T, error)) (T, error) {
	var since time.Time // the engine has gone
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		control, err := c.attach(ctx)
		if regie.CodeOf(err) == regie.CodeServerDown && !since.IsZero() &&
			time.Since(since) < goneFor && rest(ctx, pause) == nil {
			c.tell(time.Since(since) > awayAfter)
			continue // it is being started again
		}
		if err != nil {
			var none T
			return none, err
		}
		c.tell(false)
		asked := time.Now()
		out, err := fn(control)
		if regie.CodeOf(err) == regie.CodeNoToken && c.options.Config.Server != "" {
			return out, regie.Errorf(regie.CodeNoToken,
				"the Regie at %s takes another token: set REGIE_TOKEN to the one in its data directory (api.token)",
				c.options.Config.Server)
		}
		if regie.CodeOf(err) == regie.CodeLocked && c.isClient(control) && c.options.Config.Server == "" {
			return out, silent(c.options.Config.DataDir)
		}
		if regie.CodeOf(err) != regie.CodeEngineGone || !c.detach(control) {
			return out, err
		}
		// a follower that was served for a while has a fresh allowance
		if since.IsZero() || time.Since(asked) > time.Second {
			since, pause = time.Now(), 5*time.Millisecond
		}
		if time.Since(since) > goneFor {
			return out, err
		}
		if err := rest(ctx, pause); err != nil {
			return out, err
		}
	}
}

// awayAfter is how long an engine may be gone before people are told.
const awayAfter = 500 * time.Millisecond

// tell says that no engine answers, or that one does again, where that is news.
func (c *Conn) tell(away bool) {
	c.mu.Lock()
	news := away != c.away
	c.away = away
	c.mu.Unlock()
	if news && c.options.Away != nil {
		c.options.Away(away)
	}
}

func rest(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// isClient reports whether a Control is the client of another engine.
func (c *Conn) isClient(control dispatch.Control) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client != nil && control == dispatch.Control(c.client)
}

// detach lets go of a client whose engine has gone, and reports whether another one can be asked.
// An engine of this process that has ended was closed by whoever owns this Conn.
func (c *Conn) detach(control dispatch.Control) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil && control == dispatch.Control(c.client) {
		c.client.Close()
		c.client = nil
	}
	return c.engine == nil || control != dispatch.Control(c.engine)
}

// Submit implements dispatch.Control. The client id of the request makes asking again harmless.
func (c *Conn) Submit(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error) {
	return on(ctx, c, func(control dispatch.Control) (dispatch.Run, error) {
		if err := c.sameRules(control); err != nil {
			return dispatch.Run{}, err
		}
		return control.Submit(ctx, in)
	})
}

// sameRules refuses what lets an engine work by other rules than those of the file that was named.
func (c *Conn) sameRules(control dispatch.Control) error {
	settings := &c.options.Config
	if settings.Server != "" || !c.isClient(control) || !otherRules(settings) {
		return nil
	}
	return regie.Errorf(regie.CodeConflict,
		"process %s is the engine of %s and decides by other settings (rules, sandbox, limits) than the file you named: end it, or use another data directory or its settings",
		holder(settings.DataDir), settings.DataDir)
}

// Interrupt implements dispatch.Control.
func (c *Conn) Interrupt(ctx context.Context, round regie.ID) error {
	return c.say(ctx, func(control dispatch.Control) error { return control.Interrupt(ctx, round) })
}

// Pause implements dispatch.Control.
func (c *Conn) Pause(ctx context.Context, round regie.ID) error {
	return c.say(ctx, func(control dispatch.Control) error { return control.Pause(ctx, round) })
}

// Resume implements dispatch.Control.
func (c *Conn) Resume(ctx context.Context, round regie.ID) error {
	return c.say(ctx, func(control dispatch.Control) error {
		if err := c.sameRules(control); err != nil {
			return err
		}
		return control.Resume(ctx, round)
	})
}

func (c *Conn) say(ctx context.Context, fn func(dispatch.Control) error) error {
	_, err := on(ctx, c, func(control dispatch.Control) (struct{}, error) { return struct{}{}, fn(control) })
	return err
}

// Wait returns when a round no longer runs in this process, as dispatch.Dispatcher.Wait; at once
// where it runs in another one.
func (c *Conn) Wait(ctx context.Context, round regie.ID) error {
	c.mu.Lock()
	engine := c.engine
	c.mu.Unlock()
	if engine == nil {
		return nil
	}
	return engine.Wait(ctx, round)
}

// Stop implements dispatch.Control.
func (c *Conn) Stop(ctx context.Context, session regie.ID) (dispatch.Stopped, error) {
	return on(ctx, c, func(control dispatch.Control) (dispatch.Stopped, error) { return control.Stop(ctx, session) })
}

// TakeBack implements dispatch.Control.
func (c *Conn) TakeBack(ctx context.Context, in dispatch.TakeBackRequest) (regie.Message, error) {
	return on(ctx, c, func(control dispatch.Control) (regie.Message, error) { return control.TakeBack(ctx, in) })
}

// CloseSession implements dispatch.Control.
func (c *Conn) CloseSession(ctx context.Context, session regie.ID) error {
	return c.say(ctx, func(control dispatch.Control) error { return control.CloseSession(ctx, session) })
}

// Inbox implements dispatch.Control.
func (c *Conn) Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error) {
	return on(ctx, c, func(control dispatch.Control) (store.Inbox, error) { return control.Inbox(ctx, filter) })
}

// Decide implements dispatch.Control. The request's id makes asking again harmless.
func (c *Conn) Decide(ctx context.Context, in dispatch.DecideRequest) (store.Resolved, error) {
	return on(ctx, c, func(control dispatch.Control) (store.Resolved, error) {
		if err := c.sameRules(control); err != nil {
			return store.Resolved{}, err
		}
		return control.Decide(ctx, in)
	})
}

// Review implements dispatch.Control, as Decide.
func (c *Conn) Review(ctx context.Context, in dispatch.DecideRequest) (dispatch.Reviewed, error) {
	return on(ctx, c, func(control dispatch.Control) (dispatch.Reviewed, error) {
		if err := c.sameRules(control); err != nil {
			return dispatch.Reviewed{}, err
		}
		return control.Review(ctx, in)
	})
}

// Answer implements dispatch.Control, as Decide.
func (c *Conn) Answer(ctx context.Context, in dispatch.AnswerRequest) (store.Resolved, error) {
	return on(ctx, c, func(control dispatch.Control) (store.Resolved, error) {
		if err := c.sameRules(control); err != nil {
			return store.Resolved{}, err
		}
		return control.Answer(ctx, in)
	})
}

// Resolve implements dispatch.Control.
func (c *Conn) Resolve(ctx context.Context, in dispatch.ResolveRequest) error {
	return c.say(ctx, func(control dispatch.Control) error {
		if err := c.sameRules(control); err != nil {
			return err
		}
		return control.Resolve(ctx, in)
	})
}

// Rules implements dispatch.Control.
func (c *Conn) Rules(ctx context.Context, filter store.RuleFilter) (store.RuleList, error) {
	return on(ctx, c, func(control dispatch.Control) (store.RuleList, error) { return control.Rules(ctx, filter) })
}

// Revoke implements dispatch.Control.
func (c *Conn) Revoke(ctx context.Context, in dispatch.RevokeRequest) error {
	return c.say(ctx, func(control dispatch.Control) error { return control.Revoke(ctx, in) })
}

// Get implements dispatch.Control.
func (c *Conn) Get(ctx context.Context, round regie.ID) (store.RoundView, error) {
	return on(ctx, c, func(control dispatch.Control) (store.RoundView, error) { return control.Get(ctx, round) })
}

// Prompt implements dispatch.Control.
func (c *Conn) Prompt(ctx context.Context, in dispatch.PromptRequest) (dispatch.Prompt, error) {
	return on(ctx, c, func(control dispatch.Control) (dispatch.Prompt, error) { return control.Prompt(ctx, in) })
}

// List implements dispatch.Control.
func (c *Conn) List(ctx context.Context, filter store.RoundFilter) ([]store.RoundSummary, error) {
	return on(ctx, c, func(control dispatch.Control) ([]store.RoundSummary, error) { return control.List(ctx, filter) })
}

// Spent implements dispatch.Control.
func (c *Conn) Spent(ctx context.Context, root string) (store.Spent, error) {
	return on(ctx, c, func(control dispatch.Control) (store.Spent, error) { return control.Spent(ctx, root) })
}

// Events implements dispatch.Control. Over a change of engines the log goes on where it stood,
// without a gap and without a repeat.
func (c *Conn) Events(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error {
	return c.say(ctx, func(control dispatch.Control) error {
		return control.Events(ctx, session, after, func(item dispatch.Item) error {
			if item.Event != nil {
				after = item.Event.Seq
			}
			return sink(item)
		})
	})
}

// Watch implements dispatch.Control. Over a change of engines it says that all sessions should be
// looked at anew.
func (c *Conn) Watch(ctx context.Context, sink func(regie.Event) error) error {
	again := false
	return c.say(ctx, func(control dispatch.Control) error {
		if again {
			if err := sink(regie.Event{Type: regie.EventSession}); err != nil {
				return err
			}
		}
		again = true
		return control.Watch(ctx, sink)
	})
}
