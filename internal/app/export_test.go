package app

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// ShortenAttach has commands of a test wait less long for another engine.
func ShortenAttach(t *testing.T, to time.Duration) {
	t.Helper()
	before := attachTimeout
	attachTimeout = to
	t.Cleanup(func() { attachTimeout = before })
}

// Lock takes the engine lock of a data directory and says whose place that is.
func Lock(dir string) (*os.File, string, error) { return lockDataDir(dir, regie.Hash{}) }

// Holder is who holds it.
func Holder(dir string) string { return describeHolder(dir) }

// Makers are the types that have a codec.
func Makers() map[string]bool {
	out := map[string]bool{}
	for name := range makers {
		out[name] = true
	}
	return out
}

// House are the tools that are built in.
func House(t *testing.T, c config.Config) *tool.Registry {
	t.Helper()
	house, err := newHouse(Options{Config: c}, newSandbox(c), newIndexes(c), newSnapshots(c), nil, nil)
	fatal(t, err)
	return house
}

// Service is that of the engine of this process, as its surfaces in the same process have it.
func (c *Conn) Service() *control.Service { return c.engine.service }

// Proxy is that of the engine of this process.
func (c *Conn) Proxy() compat.Proxy { return c.engine.proxy }

// Control is a client of an engine.
func (e *Engine) Control() *client.Client { return e.Client("en") }

// LinkBrowser makes a link that lets a browser in, for this machine's user.
func (e *Engine) LinkBrowser(ctx context.Context) (control.SetupLink, error) {
	return e.service.Tokens.LinkBrowser(access.AsOwner(ctx))
}

// Proxied returns the newest model calls that the engine of this process has passed on, once all of
// them are logged.
func (c *Conn) Proxied(ctx context.Context, want int) ([]store.Proxied, error) {
	return c.engine.Proxied(ctx, want)
}

// Proxied is that of a Conn.
func (e *Engine) Proxied(ctx context.Context, want int) ([]store.Proxied, error) {
	for {
		calls, err := e.store.ProxiedCalls(ctx, 100)
		done := 0
		for i := range calls {
			if calls[i].Duration > 0 {
				done++
			}
		}
		if err != nil || done >= want {
			return calls, err
		}
		select {
		case <-ctx.Done():
			return calls, ctx.Err()
		default:
			runtime.Gosched()
		}
	}
}

// ProxiedNow are those that stand in the log now, also the open ones.
func (c *Conn) ProxiedNow(ctx context.Context) ([]store.Proxied, error) {
	return c.engine.store.ProxiedCalls(ctx, 100)
}

// RemoveUnused removes the sessions of clients that are due at a moment.
func (c *Conn) RemoveUnused(ctx context.Context, now time.Time) error {
	_, err := c.engine.removeUnused(ctx, now)
	return err
}

// fatal ends a test that meets an error.
func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
