package dispatch

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
)

// Item is one thing on a session's stream: a durable event, or a delta, which is not durable (spec
// 10.2).
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
	// CallID and Output are of what a running call puts out; such a delta has nothing of a reply.
	CallID regie.ID `json:"call_id,omitzero"`
	Output string   `json:"output,omitempty"`
	// Said is a message about the call in addition to its output.
	Said *regie.Sentence `json:"said,omitempty"`
	// Silent says that the model has sent nothing for so many seconds; such a delta has nothing
	// else. Any later one says that the silence is over.
	Silent int `json:"silent_s,omitempty"`
}

// What waits for a slow reader is joined from mergeFrom deltas on, to such of maxPiece bytes: it
// gets fewer and longer ones. Beyond maxDeltas they are dropped, and the reader gets the whole
// message, which is durable.
const (
	mergeFrom = 32
	maxPiece  = 1 << 10
	maxDeltas = 1024
)

const (
	eventPage = 256
	maxTold   = 1 << 20 // bytes that wait for a reader; of more it reads the log
)

// Hub wakes the readers of sessions' streams. The log is the truth: a woken reader reads the log
// from its place, unless the hub has already handed it the next events.
type Hub struct {
	mu      sync.Mutex
	readers map[regie.ID]map[*reader]struct{}
	// foreign receives the sessions with commits of other processes; nil without any. It must not
	// block.
	foreign func(session regie.ID)
	// partials are the replies that stream in now, by session: who joins in the middle first gets
	// what was said so far (spec 5.4).
	partials map[regie.ID]*partial
	watchers map[*watcher]struct{}
	// told counts the deltas handed to readers: none without a reader (decision 28).
	told int64
	// observe receives the events that this process commits; it may be nil and must not block.
	observe func(events []regie.Event)
}

type reader struct {
	wake   chan struct{} // holds one token at most
	mu     sync.Mutex
	deltas []Delta
	// events are what commits have added to the log, without a gap, and grew says that it has more
	// than these and what was read of it.
	events []regie.Event
	size   int // of the bodies of events, in bytes
	grew   bool

	// Of Stream alone: what it told last, deltas until the log is read to where they belong, and
	// whether there is more of that.
	after int64
	held  []Delta
	more  bool
}

// wakeReaders wakes all readers: the engine has ended.
func (h *Hub) wakeReaders() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.readers {
		for r := range all {
			r.wakeReader()
		}
	}
}

// NewHub returns a hub without readers.
func NewHub() *Hub {
	return &Hub{
		readers: map[regie.ID]map[*reader]struct{}{}, partials: map[regie.ID]*partial{},
		watchers: map[*watcher]struct{}{},
	}
}

// Observe sets the function that receives the events of later commits of this process, in every
// session; nil ends it. It must not block.
func (h *Hub) Observe(observe func(events []regie.Event)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observe = observe
}

// addReader returns a reader of a session, which begins with what its model has said so far.
func (h *Hub) addReader(session regie.ID) *reader {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &reader{wake: make(chan struct{}, 1), grew: true, deltas: h.partials[session].partialDeltas()}
	if h.readers[session] == nil {
		h.readers[session] = map[*reader]struct{}{}
	}
	h.readers[session][r] = struct{}{}
	return r
}

func (h *Hub) removeReader(session regie.ID, r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers[session], r)
	if len(h.readers[session]) == 0 {
		delete(h.readers, session)
	}
}

// Commit tells that a session's log has grown, and by what, where that is known. It never blocks.
func (h *Hub) Commit(session regie.ID, events []regie.Event) {
	if observe := h.publishEvents(session, events); observe != nil {
		observe(events)
	}
}

// publishEvents tells readers and watchers, and returns who else is to be told.
func (h *Hub) publishEvents(session regie.ID, events []regie.Event) func([]regie.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.readers[session]) == 0 && h.partials[session] == nil && len(h.watchers) == 0 && h.observe == nil {
		return nil
	}
	h.dropPartial(session, events)
	h.tellWatchers(session, events)
	for r := range h.readers[session] {
		r.addEvents(events)
	}
	return h.observe
}

// Delta sends a piece of a reply to the readers. It never blocks.
func (h *Hub) Delta(session, round regie.ID, exchange int, d provider.Delta) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keepPartial(session, round, exchange, d)
	h.publishDelta(session, Delta{RoundID: round, Exchange: exchange, Content: d.Text, Thinking: d.Thinking})
}

// Progress sends the output of a running call, messages about it, or the model's silence to the
// readers. It never blocks.
func (h *Hub) Progress(session, round regie.ID, exchange int, p engine.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.publishDelta(session, Delta{
		RoundID: round, Exchange: exchange, CallID: p.CallID, Output: p.Output, Said: p.Said,
		Silent: int(p.Silent / time.Second),
	})
}

// publishDelta hands a delta to the readers of a session. The lock is held.
func (h *Hub) publishDelta(session regie.ID, d Delta) {
	h.told += int64(len(h.readers[session]))
	for r := range h.readers[session] {
		r.addDelta(d)
		r.wakeReader()
	}
}

// Told is how many deltas were handed to readers, each reader's for itself.
func (h *Hub) Told() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.told
}

func (r *reader) addDelta(d Delta) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.deltas)
	if n >= mergeFrom {
		if last := &r.deltas[n-1]; last.joinsWith(&d) {
			last.Content, last.Thinking, last.Output = last.Content+d.Content,
				last.Thinking+d.Thinking, last.Output+d.Output
			return
		}
	}
	if n < maxDeltas {
		r.deltas = append(r.deltas, d)
	}
}

// joinsWith reports whether the next delta may be joined to this one: what was thought and what was
// said stay in their order.
func (d *Delta) joinsWith(next *Delta) bool {
	if d.Said != nil || next.Said != nil || d.Silent > 0 || next.Silent > 0 {
		return false
	}
	return d.RoundID == next.RoundID && d.Exchange == next.Exchange && d.CallID == next.CallID &&
		(d.Content+next.Content == "" || d.Thinking+next.Thinking == "") &&
		len(d.Content)+len(d.Thinking)+len(d.Output)+len(next.Content)+len(next.Thinking)+len(next.Output) <= maxPiece
}

func (r *reader) wakeReader() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// addEvents hands the next events of the log to the reader; nil makes it read the log. So do events
// out of order, as commits of several writers may produce them, and too many events for a slow
// reader.
func (r *reader) addEvents(events []regie.Event) {
	r.mu.Lock()
	for i := range events {
		r.size += len(events[i].Body)
	}
	last := len(r.events) - 1
	switch {
	case len(events) == 0, last >= 0 && r.events[last].Seq+1 != events[0].Seq,
		len(r.events)+len(events) > eventPage, r.size > maxTold:
		r.events, r.size, r.grew = nil, 0, true
	default:
		r.events = append(r.events, events...)
	}
	r.mu.Unlock()
	r.wakeReader()
}

// heard is what there is for a reader.
type heard struct {
	deltas []Delta
	events []regie.Event // those behind what was read of the log, where grew is false
	grew   bool          // the log has to be read
}

// takeHeard returns what was heard since it was asked last, by one that has read the log up to
// after.
func (r *reader) takeHeard(after int64) (h heard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h = heard{r.deltas, r.events, r.grew}
	r.deltas, r.events, r.size, r.grew = nil, nil, 0, false
	for len(h.events) > 0 && h.events[0].Seq <= after {
		h.events = h.events[1:]
	}
	h.grew = h.grew || len(h.events) > 0 && h.events[0].Seq != after+1
	return h
}

// ErrGone says that this engine ends: a repeated request reaches the next one.
var ErrGone = regie.Errorf(regie.CodeEngineGone, "the engine has stopped")

// tellBefore sends the deltas of the reply that an event ends, and returns the others.
func tellBefore(event *regie.Event, deltas []Delta, sink func(Item) error) (others []Delta, err error) {
	if len(deltas) == 0 || event.Type != regie.EventMessage && event.Type != regie.EventRound &&
		event.Type != regie.EventToolResult {
		return deltas, nil
	}
	var ends struct {
		Call     regie.ID         `json:"call_id"`
		Round    regie.ID         `json:"round_id"`
		Sender   regie.Sender     `json:"sender"`
		Exchange int              `json:"exchange"`
		State    regie.RoundState `json:"state"`
	}
	_ = json.Unmarshal(event.Body, &ends) // of an erased body it says nothing
	if ends.Sender != regie.SenderAI && ends.State != regie.RoundEnded && event.Type != regie.EventToolResult {
		return deltas, nil
	}
	for i := range deltas {
		d := &deltas[i]
		later := d.RoundID != ends.Round || d.Exchange > ends.Exchange && ends.State != regie.RoundEnded
		if event.Type == regie.EventToolResult {
			later = d.CallID.IsZero() || d.CallID != ends.Call
		}
		if later {
			others = append(others, *d)
		} else if err := sink(Item{Delta: d}); err != nil {
			return nil, err
		}
	}
	return others, nil
}

// Stream gives a session's events after a sequence number, then each new one and each delta, to
// sink, until ctx ends or sink returns an error, which Stream returns. Where the session's round
// stopped without an end, Stream returns why. Deltas of a reply come before the event of its
// message, and behind all that came before it.
func (d *Dispatcher) Stream(ctx context.Context, session regie.ID, after int64, sink func(Item) error) error {
	r := d.hub.addReader(session)
	defer d.hub.removeReader(session, r)
	r.after = after
	for { // here a quiet stream waits, and what lies on its stack then is what it costs
		again, err := d.catchUp(ctx, session, r, sink)
		if err != nil {
			return err
		}
		if again {
			continue
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// catchUp gives sink what there is for a reader, and reports whether there may be more. Where the
// engine has ended it returns ErrGone.
func (d *Dispatcher) catchUp(ctx context.Context, session regie.ID, r *reader,
	sink func(Item) error,
) (again bool, err error) {
	heard := r.takeHeard(r.after)
	r.held = append(r.held, heard.deltas...)
	events, failure := heard.events, error(nil)
	if heard.grew || r.more { // a token alone is no reason to read the log
		d.mu.Lock()
		failure = d.failed[session] // asked before the log is read: what came before it is in the log
		d.mu.Unlock()
		if events, err = d.store.Events(ctx, session, r.after, eventPage); err != nil {
			return false, err
		}
		r.more = len(events) == eventPage
	}
	if r.held, r.after, err = r.sendEvents(events, r.held, r.after, sink); err != nil || r.more {
		return r.more, err
	}
	for i := range r.held {
		if err := sink(Item{Delta: &r.held[i]}); err != nil {
			return false, err
		}
	}
	r.held = nil
	if failure == nil && len(events) == 0 && d.base.Err() != nil {
		failure = ErrGone
	}
	return len(events) > 0, failure
}

// sendEvents gives sink a part of the log, with what was heard before or while that was read:
// before the message that it belongs to. What belongs to none of them is left.
func (r *reader) sendEvents(events []regie.Event, late []Delta, after int64,
	sink func(Item) error,
) (left []Delta, told int64, err error) {
	if len(events) == 0 {
		return late, after, nil
	}
	r.mu.Lock()
	late = append(late, r.deltas...)
	r.deltas = nil
	r.mu.Unlock()
	for i := range events {
		if late, err = tellBefore(&events[i], late, sink); err != nil {
			return late, after, err
		}
		after = events[i].Seq
		if err := sink(Item{Event: &events[i]}); err != nil {
			return late, after, err
		}
	}
	return late, after, nil
}
