package dispatch

import (
	"context"
	"sync"

	"github.com/regie-run/regie"
)

// maxWatched bounds the events that wait for a watcher, and the sessions it has to look at anew.
const maxWatched = 1024

// watcher receives the events of all sessions that a list shows (decision 53).
type watcher struct {
	wake   chan struct{} // holds one token at most
	mu     sync.Mutex
	events []regie.Event
	missed bool
}

// watched are the event types that a watcher receives.
var watched = map[regie.EventType]bool{
	regie.EventSession: true, regie.EventSessionState: true, regie.EventRound: true,
	regie.EventApproval: true, regie.EventQuestion: true,
	regie.EventNotice: true, regie.EventErased: true, regie.EventUndo: true, regie.EventAutomation: true,
}

// tellWatchers sends the events of a commit. Where they are unknown it sends that something has
// changed. The lock is held.
func (h *Hub) tellWatchers(session regie.ID, events []regie.Event) {
	if len(h.watchers) == 0 {
		return
	}
	news := []regie.Event{{SessionID: session, Type: regie.EventSession}}
	if len(events) > 0 {
		news = news[:0]
		for i := range events {
			if watched[events[i].Type] {
				news = append(news, events[i])
			}
		}
	}
	for w := range h.watchers {
		w.addNews(news)
	}
}

func (w *watcher) addNews(news []regie.Event) {
	if len(news) == 0 {
		return
	}
	w.mu.Lock()
	if len(w.events)+len(news) > maxWatched {
		w.events, w.missed = nil, true
	} else {
		w.events = append(w.events, news...)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Watch gives sink what happens in all sessions from now on: those events of their logs that change
// what a list of them shows, and changes of automations, with their workspace as the session. An
// event without a sequence number says that something happened in its session; one without a
// session that a watcher who was slow should look at all of them anew. It returns when ctx ends or
// sink returns an error.
func (d *Dispatcher) Watch(ctx context.Context, sink func(regie.Event) error) error {
	w := &watcher{wake: make(chan struct{}, 1)}
	d.hub.mu.Lock()
	d.hub.watchers[w] = struct{}{}
	d.hub.mu.Unlock()
	defer func() {
		d.hub.mu.Lock()
		delete(d.hub.watchers, w)
		d.hub.mu.Unlock()
	}()
	for {
		w.mu.Lock()
		events, missed := w.events, w.missed
		w.events, w.missed = nil, false
		w.mu.Unlock()
		if missed {
			events = append([]regie.Event{{Type: regie.EventSession}}, events...)
		}
		for i := range events {
			if err := sink(events[i]); err != nil {
				return err
			}
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.base.Done():
			return ErrGone
		}
	}
}
