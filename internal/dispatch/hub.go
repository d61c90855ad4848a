package dispatch

import (
	"context"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Item is one thing on a session's stream: a durable event, or a delta, which is not durable (spec 10.2).
type Item struct {
	Event *regie.Event
	Delta *Delta
}

// Delta is a piece of a reply as it streams in.
type Delta struct {
	RoundID  regie.ID `json:"round_id"`
	Exchange int      `json:"exchange"`
	Content  string   `json:"content,omitempty"`
	Thinking string   `json:"thinking,omitempty"`
}

// maxDeltas bounds the deltas that wait for one slow reader; then they are dropped, and the reader gets the whole message, which is
// durable.
const maxDeltas = 1024

const eventPage = 256

// Hub wakes the readers of sessions' streams. The log is the truth: a reader that is woken reads on from where it stands.
type Hub struct {
	mu      sync.Mutex
	readers map[regie.ID]map[*reader]struct{}
}

type reader struct {
	wake   chan struct{} // holds one token at most
	mu     sync.Mutex
	deltas []Delta
}

// NewHub returns a hub without readers.
func NewHub() *Hub { return &Hub{readers: map[regie.ID]map[*reader]struct{}{}} }

// Commit tells that a session's log has grown. It never blocks.
func (h *Hub) Commit(session regie.ID, _ int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.readers[session] {
		r.ring()
	}
}

// Delta tells a piece of a reply to whoever listens. It never blocks.
func (h *Hub) Delta(session, round regie.ID, exchange int, d provider.Delta) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.readers[session] {
		r.mu.Lock()
		if len(r.deltas) < maxDeltas {
			r.deltas = append(r.deltas, Delta{RoundID: round, Exchange: exchange, Content: d.Text, Thinking: d.Thinking})
		}
		r.mu.Unlock()
		r.ring()
	}
}

func (r *reader) ring() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reader) take() []Delta {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.deltas
	r.deltas = nil
	return out
}

// ErrGone says that the engine of this process ends: whoever asks again asks the next one.
var ErrGone = regie.Errorf(regie.CodeEngineGone, "the engine has ended")

// Stream gives a session's events after a sequence number, then each new one and each delta, to sink, until ctx ends or sink
// returns an error, which Stream returns. Where the session's round stopped without an end, Stream returns why. Deltas of a reply come before the event of its message.
func (d *Dispatcher) Stream(ctx context.Context, session regie.ID, after int64, sink func(Item) error) error {
	r := &reader{wake: make(chan struct{}, 1)}
	d.hub.mu.Lock()
	if d.hub.readers[session] == nil {
		d.hub.readers[session] = map[*reader]struct{}{}
	}
	d.hub.readers[session][r] = struct{}{}
	d.hub.mu.Unlock()
	defer func() {
		d.hub.mu.Lock()
		delete(d.hub.readers[session], r)
		if len(d.hub.readers[session]) == 0 {
			delete(d.hub.readers, session)
		}
		d.hub.mu.Unlock()
	}()
	for {
		for _, delta := range r.take() {
			if err := sink(Item{Delta: &delta}); err != nil {
				return err
			}
		}
		failure := d.failure(session) // asked before the log is read: what came before it is in the log
		events, err := d.store.Events(ctx, session, after, eventPage)
		if err != nil {
			return err
		}
		for i := range events {
			after = events[i].Seq
			if err := sink(Item{Event: &events[i]}); err != nil {
				return err
			}
		}
		if len(events) == eventPage {
			continue
		}
		if failure != nil {
			return failure
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.base.Done():
			return ErrGone
		}
	}
}
