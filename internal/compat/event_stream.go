package compat

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// eventStream writes server-sent events. Its methods may be called from many goroutines.
type eventStream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	begun bool
	last  time.Time // something was sent
	alive []byte    // what is sent where nothing else is
	stop  chan struct{}
	done  chan struct{}
}

// newEventStream begins a stream. Where nothing is sent for a while it says that it is alive, until
// close: by a comment that no client reads, or by the event that Anthropic has for it.
func newEventStream(w http.ResponseWriter, every time.Duration, api string) *eventStream {
	s := &eventStream{
		w: w, last: time.Now(), alive: []byte(": keep-alive\n\n"), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if api == APIMessages {
		s.alive = []byte("event: ping\ndata: {\"type\":\"ping\"}\n\n")
	}
	go s.keepAlive(every)
	return s
}

func (s *eventStream) keepAlive(every time.Duration) {
	defer close(s.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		s.mu.Lock()
		if time.Since(s.last) >= every {
			s.put(s.alive)
		}
		s.mu.Unlock()
	}
}

// close ends the goroutine; the handler may return then.
func (s *eventStream) close() {
	close(s.stop)
	<-s.done
}

// started reports whether anything was sent: then the status is.
func (s *eventStream) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// put is called with the lock held.
func (s *eventStream) put(data []byte) {
	if !s.begun {
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		s.begun = true
	}
	s.last = time.Now()
	_, _ = s.w.Write(data) // a client that has gone is seen by its context
	_ = http.NewResponseController(s.w).Flush()
}

// event sends v, under a name unless that is empty.
func (s *eventStream) event(name string, v any) { s.write(eventOf(name, v)) }

// write sends an event as it is.
func (s *eventStream) write(event []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(event)
}

// eventOf is an event as it is sent.
func eventOf(name string, v any) []byte {
	var out bytes.Buffer
	if name != "" {
		out.WriteString("event: " + name + "\n")
	}
	out.WriteString("data: ")
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // of plain values
	out.WriteString("\n")
	return out.Bytes()
}
