package cache

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// Store is the second level.
type Store interface {
	CachedReply(ctx context.Context, of store.CacheOf, key regie.Hash, now time.Time) (store.CachedReply, bool, error)
	TrimCache(ctx context.Context, now time.Time, most int64) error
}

// The defaults, and the largest answer that is kept, in bytes.
const (
	DefaultTTL  = 24 * time.Hour
	DefaultSize = 64 << 20
	maxAnswer   = 1 << 20
)

// Config sets up a Cache. Store is required.
type Config struct {
	Store Store
	// TTL is how long an answer is given again; zero means a day.
	TTL time.Duration
	// Size bounds the answers in the store, in bytes; zero means 64 MiB.
	Size int64
}

// Cache is the response cache of an engine.
type Cache struct {
	cfg Config

	mu      sync.Mutex
	flights map[regie.Hash]*flight
	added   int64 // bytes that were given to the store since it was trimmed
	trimmed bool
	proxied map[regie.Hash]heldReply
	size    int // bytes of proxied
}

// heldReply is the answer to a proxied request. It is of no session that the store could keep it
// with.
type heldReply struct {
	*provider.Reply
	at time.Time
}

// maxProxied bounds the proxied answers in memory, in bytes.
const maxProxied = 8 << 20

// New returns a cache.
func New(cfg Config) *Cache {
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Size == 0 {
		cfg.Size = DefaultSize
	}
	return &Cache{cfg: cfg, flights: map[regie.Hash]*flight{}, proxied: map[regie.Hash]heldReply{}}
}

// flight is a question under way. Its fields are set before done is closed.
type flight struct {
	done  chan struct{}
	reply *provider.Reply // an answer that others may have
	err   *provider.Error // why no reply came
	other bool            // the reply is no answer: everybody asks for themselves
}

// Ask returns the stored answer, or calls send; answers reports whether others may get a reply. If
// the same question is under way, Ask waits for it: all waiters share a provider's failure, but the
// end of ctx concerns only its own caller. A reply of the cache or another caller has Cached set
// and no usage.
func (c *Cache) Ask(ctx context.Context, q provider.Question, send func() (*provider.Reply, error),
	answers func(*provider.Reply) bool,
) (*provider.Reply, error) {
	if q.Key.IsZero() {
		return send()
	}
	for {
		if reply := c.findAnswer(ctx, q); reply != nil {
			return reply, nil
		}
		f, leads := c.joinFlight(q.Key)
		if leads {
			return c.leadFlight(q, f, send, answers)
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		switch {
		case f.reply != nil:
			return copyUnbilled(f.reply, time.Now()), nil
		case f.err != nil:
			shared := *f.err
			return nil, &shared
		case f.other:
			return send()
		}
	}
}

// joinFlight takes part in the flight of a key. The first one to come leads it.
func (c *Cache) joinFlight(key regie.Hash) (f *flight, leads bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f = c.flights[key]; f != nil {
		return f, false
	}
	f = &flight{done: make(chan struct{})}
	c.flights[key] = f
	return f, true
}

func (c *Cache) leadFlight(q provider.Question, f *flight, send func() (*provider.Reply, error),
	answers func(*provider.Reply) bool,
) (reply *provider.Reply, err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.flights, q.Key)
		if f.reply != nil && q.Session.IsZero() {
			c.holdProxied(q.Key, f.reply)
		}
		close(f.done)
	}()
	reply, err = send()
	var failed *provider.Error
	switch {
	case err == nil && answers(reply):
		f.reply = copyUnbilled(reply, time.Time{}) // the leader goes on with its own
	case err == nil:
		f.other = true
	case errors.As(err, &failed):
		shared := *failed
		shared.Partial, shared.Usage = "", regie.Usage{} // the leader has them
		f.err = &shared
	}
	return reply, err
}

// holdProxied has an answer in memory; a full memory begins anew. The lock is held.
func (c *Cache) holdProxied(key regie.Hash, reply *provider.Reply) {
	size := 0
	for i := range reply.Parts {
		size += len(reply.Parts[i].Text)
	}
	if size > maxAnswer {
		return
	}
	if c.size += size; c.size > maxProxied {
		clear(c.proxied)
		c.size = size
	}
	c.proxied[key] = heldReply{reply, time.Now()}
}

// copyUnbilled returns an answer for a caller that did not ask the model: it costs nothing.
func copyUnbilled(reply *provider.Reply, at time.Time) *provider.Reply {
	out := *reply
	out.Parts = slices.Clone(reply.Parts)
	out.Usage, out.FirstByte, out.Cached = regie.Usage{}, 0, at
	return &out
}

// findAnswer looks the answer up. Errors of the store are no reason not to ask the model.
func (c *Cache) findAnswer(ctx context.Context, q provider.Question) *provider.Reply {
	if q.Session.IsZero() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if held, found := c.proxied[q.Key]; found && time.Since(held.at) < c.cfg.TTL {
			return copyUnbilled(held.Reply, held.at)
		}
		return nil
	}
	stored, found, err := c.cfg.Store.CachedReply(ctx, store.CacheOf{WorkspaceID: q.Workspace, UserID: q.User}, q.Key,
		time.Now())
	if err != nil || !found {
		return nil
	}
	reply, err := read(stored.Reply)
	if err != nil {
		return nil
	}
	return copyUnbilled(reply, stored.At)
}

// Entry is an answer as the store keeps it with the reply that it is, or nil for one that is too
// large.
func (c *Cache) Entry(q provider.Question, reply *provider.Reply) *store.CachedReply {
	data, err := write(reply)
	if err != nil || len(data) > maxAnswer || q.Key.IsZero() {
		return nil
	}
	return &store.CachedReply{
		Key: q.Key, Provider: q.Provider, Model: q.Model, Reply: data, Usage: reply.Usage,
		Expires: time.Now().Add(c.cfg.TTL),
	}
}

// Stored notes a new Entry of the store. It keeps the store within its bound, plus at most a
// sixteenth that each process may add between checks.
func (c *Cache) Stored(ctx context.Context, kept *store.CachedReply) {
	c.mu.Lock()
	c.added += int64(len(kept.Reply))
	due := !c.trimmed || c.added >= c.cfg.Size/16
	if due {
		c.added, c.trimmed = 0, true
	}
	c.mu.Unlock()
	if due { // what fails here is done with a later one
		_ = c.cfg.Store.TrimCache(ctx, time.Now(), c.cfg.Size-c.cfg.Size/8)
	}
}

// Clear drops the proxied answers.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.proxied)
	c.size = 0
}

func write(reply *provider.Reply) ([]byte, error) {
	return json.Marshal(provider.Reply{Parts: reply.Parts, StopReason: reply.StopReason, Sources: reply.Sources})
}

// errUnusable says that the stored record holds no usable answer: the cache asks the model.
var errUnusable = errors.New("no answer")

func read(data []byte) (*provider.Reply, error) {
	reply := &provider.Reply{}
	if err := json.Unmarshal(data, reply); err != nil {
		return nil, err
	}
	if len(reply.Parts) == 0 || len(provider.Calls(reply.Parts)) > 0 {
		return nil, errUnusable
	}
	return reply, nil
}
