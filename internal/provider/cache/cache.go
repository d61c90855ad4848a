package cache

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
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
	DefaultTTL    = 24 * time.Hour
	DefaultMemory = 8 << 20
	DefaultSize   = 64 << 20
	maxAnswer     = 1 << 20
	// storing bounds how long a question waits for its answer to be stored, during which the answer
	// is given from its flight. A run that ends before says nothing about it.
	storing = 10 * time.Second
)

// Config sets up a Cache. Store is required.
type Config struct {
	Store Store
	// TTL is how long an answer is given again; zero means a day.
	TTL time.Duration
	// Memory bounds the first level, in bytes; zero means 8 MiB, less than that that there is none:
	// where other processes erase sessions of the same database, nothing may be held here that they
	// cannot reach.
	Memory int64
	// Size bounds the second level, in bytes; zero means 64 MiB.
	Size int64
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Cache is the response cache of an engine.
type Cache struct {
	cfg Config

	mu      sync.Mutex
	memory  memory
	flights map[regie.Hash]*flight
	erased  int64 // how often something was taken away: what was read before that is not held
	added   int64 // bytes that were given to the store since it was trimmed
	trimmed bool
}

// New returns a cache.
func New(cfg Config) *Cache {
	if cfg.TTL == 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Memory == 0 {
		cfg.Memory = DefaultMemory
	}
	if cfg.Size == 0 {
		cfg.Size = DefaultSize
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Cache{cfg: cfg, memory: memory{most: cfg.Memory}, flights: map[regie.Hash]*flight{}}
}

// flight is a question that is being asked, or whose answer is being stored. Its fields are set
// before done is closed.
type flight struct {
	done    chan struct{}
	session regie.ID        // who leads it
	landed  time.Time       // when the answer came
	stored  bool            // the store has the answer, or has refused it: who looked there before looks again
	reply   *provider.Reply // an answer that others may have
	err     *provider.Error // why there is none
	other   bool            // the reply is no answer: everybody asks for themselves
}

// Ask returns the answer that is kept, or has send ask the model; answers says of a reply whether
// it may be given to others. Where the same is being asked already it waits for that: a failure of
// the provider is then everybody's, the end of ctx only its own. A reply that was not asked for
// here has Cached set and no usage.
func (c *Cache) Ask(ctx context.Context, q provider.Question, send func() (*provider.Reply, error),
	answers func(*provider.Reply) bool,
) (*provider.Reply, error) {
	if q.Key.IsZero() {
		return send()
	}
	for {
		if reply := c.kept(ctx, q); reply != nil {
			return reply, nil
		}
		f, leads, reply := c.board(q)
		switch {
		case reply != nil:
			return reply, nil
		case leads:
			return c.lead(q, f, send, answers)
		case f == nil:
			continue
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		switch {
		case f.reply != nil:
			return given(f.reply, c.cfg.Now()), nil
		case f.err != nil:
			shared := *f.err
			return nil, &shared
		case f.other:
			return send()
		}
	}
}

// board takes part in the flight of a key. Whoever is first leads it, unless the answer has come
// meanwhile. No flight and no answer is where the store was given one meanwhile.
func (c *Cache) board(q provider.Question) (f *flight, leads bool, reply *provider.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Now()
	c.land(func(_ regie.Hash, f *flight) bool { return now.Sub(f.landed) > storing })
	switch f = c.flights[q.Key]; {
	case f == nil:
	case f.stored:
		delete(c.flights, q.Key)
		return nil, false, nil
	default:
		return f, false, nil
	}
	if e := c.memory.get(q.Key, now); e != nil {
		return nil, false, given(&e.answer.Reply, e.answer.At)
	}
	f = &flight{done: make(chan struct{}), session: q.Session}
	c.flights[q.Key] = f
	return f, true, nil
}

func (c *Cache) lead(q provider.Question, f *flight, send func() (*provider.Reply, error),
	answers func(*provider.Reply) bool,
) (reply *provider.Reply, err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if f.reply == nil {
			delete(c.flights, q.Key)
		} else {
			f.landed = c.cfg.Now()
		}
		close(f.done)
	}()
	reply, err = send()
	var failed *provider.Error
	switch {
	case err == nil && answers(reply):
		f.reply = copied(reply) // who asked goes on with its own
		now := c.cfg.Now()
		c.hold(q.Key, provider.Answer{
			Reply: *copied(reply), Session: q.Session, At: now,
			Cost: reply.Usage.Input + reply.Usage.Output,
		}, now.Add(c.cfg.TTL), -1)
	case err == nil:
		f.other = true
	case errors.As(err, &failed):
		shared := *failed
		shared.Partial, shared.Usage = "", regie.Usage{} // whoever asked has them
		f.err = &shared
	}
	return reply, err
}

// given is an answer for who did not ask for it: it costs nothing.
func given(reply *provider.Reply, at time.Time) *provider.Reply {
	out := copied(reply)
	out.Usage, out.FirstByte, out.Cached = regie.Usage{}, 0, at
	return out
}

func copied(reply *provider.Reply) *provider.Reply {
	out := *reply
	out.Parts = slices.Clone(reply.Parts)
	return &out
}

// kept looks the answer up: in memory, then in the store, whose errors are no reason not to ask the
// model.
func (c *Cache) kept(ctx context.Context, q provider.Question) *provider.Reply {
	now := c.cfg.Now()
	c.mu.Lock()
	e, erased := c.memory.get(q.Key, now), c.erased
	c.mu.Unlock()
	if e != nil {
		return given(&e.answer.Reply, e.answer.At)
	}
	stored, found, err := c.cfg.Store.CachedReply(ctx, store.CacheOf{WorkspaceID: q.Workspace, UserID: q.User}, q.Key,
		now)
	if err != nil || !found {
		return nil
	}
	reply, err := read(stored.Reply)
	if err != nil {
		return nil
	}
	c.hold(q.Key, provider.Answer{
		Reply: *reply, Session: stored.SessionID, At: stored.At, Cost: stored.Usage.Input + stored.Usage.Output,
	}, stored.Expires, erased)
	return given(reply, stored.At)
}

// hold has an answer in memory; not so one that was read before something was erased.
func (c *Cache) hold(key regie.Hash, answer provider.Answer, expires time.Time, erased int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if erased >= 0 && erased != c.erased {
		return
	}
	c.memory.put(&entry{key: key, answer: answer, expires: expires, size: sizeOf(&answer.Reply)})
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
		Expires: c.cfg.Now().Add(c.cfg.TTL),
	}
}

// Stored tells what became of an Entry: kept by the store, or not; what was not is not held either.
// It keeps the store within its bound, to within a sixteenth that each process may add before it
// looks.
func (c *Cache) Stored(ctx context.Context, kept *store.CachedReply, err error) {
	c.mu.Lock()
	if f := c.flights[kept.Key]; f != nil && !f.landed.IsZero() {
		f.stored = true
	}
	if err != nil {
		c.memory.drop(func(e *entry) bool { return e.key == kept.Key })
		c.mu.Unlock()
		return
	}
	c.added += int64(len(kept.Reply))
	due := !c.trimmed || c.added >= c.cfg.Size/16
	if due {
		c.added, c.trimmed = 0, true
	}
	c.mu.Unlock()
	if due { // what fails here is done with a later one
		_ = c.cfg.Store.TrimCache(ctx, c.cfg.Now(), c.cfg.Size-c.cfg.Size/8)
	}
}

// Forget drops the answers that came from a session: it was removed. The store has erased them
// itself.
func (c *Cache) Forget(session regie.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erased++
	c.land(func(_ regie.Hash, f *flight) bool { return f.session == session })
	c.memory.drop(func(e *entry) bool { return e.answer.Session == session })
}

// land ends flights whose answer has come. The lock is held.
func (c *Cache) land(which func(regie.Hash, *flight) bool) {
	maps.DeleteFunc(c.flights, func(key regie.Hash, f *flight) bool { return !f.landed.IsZero() && which(key, f) })
}

// Clear empties the first level.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erased++
	c.land(func(regie.Hash, *flight) bool { return true })
	c.memory.drop(func(*entry) bool { return true })
}

// keptReply is a reply as the store has it.
type keptReply struct {
	Parts []regie.Part `json:"parts"`
	Stop  string       `json:"stop_reason,omitempty"`
	// Sources are put behind the text when the reply is taken, so they are kept apart from it.
	Sources []provider.Source `json:"sources,omitempty"`
}

func write(reply *provider.Reply) ([]byte, error) {
	out := keptReply{Stop: reply.StopReason, Sources: reply.Sources}
	for i := range reply.Parts {
		p := &reply.Parts[i]
		out.Parts = append(out.Parts, regie.Part{Type: p.Type, Text: p.Text, Provider: p.Provider, Opaque: p.Opaque})
	}
	return json.Marshal(out)
}

// errUnusable says that what the store has is no answer: the model is asked.
var errUnusable = errors.New("no answer")

func read(data []byte) (*provider.Reply, error) {
	var in keptReply
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	reply := &provider.Reply{StopReason: in.Stop, Sources: in.Sources}
	for i := range in.Parts {
		p := &in.Parts[i]
		if p.Type == regie.PartCall {
			return nil, errUnusable
		}
		reply.Parts = append(reply.Parts, provider.Part{
			Type: p.Type, Text: p.Text,
			Provider: p.Provider, Opaque: p.Opaque,
		})
	}
	if len(reply.Parts) == 0 {
		return nil, errUnusable
	}
	return reply, nil
}
