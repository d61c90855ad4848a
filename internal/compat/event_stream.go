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
	mu     sync.Mutex
	w      http.ResponseWriter
	begun  bool
	closed bool
	every  time.Duration
	timer  *time.Timer
	alive  []byte // what is sent where nothing else is
}

// newEventStream begins a stream. Where nothing is sent for a while it says that it is alive, until
// close: by a comment that no client reads, or by the event that Anthropic has for it.
func newEventStream(w http.ResponseWriter, every time.Duration, api string) *eventStream {
	s := &eventStream{w: w, every: every, alive: []byte(": keep-alive\n\n")}
	if api == APIMessages {
		s.alive = []byte("event: ping\ndata: {\"type\":\"ping\"}\n\n")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(every, func() { s.writeEvent(s.alive) })
	return s
}

// closeStream ends the signs of life; the handler may return then.
func (s *eventStream) closeStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.timer.Stop()
}

// hasStarted reports whether anything was sent: then the status is.
func (s *eventStream) hasStarted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// writeEvent sends an event as it is.
func (s *eventStream) writeEvent(event []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if !s.begun {
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		s.begun = true
	}
	s.timer.Reset(s.every)
	_, _ = s.w.Write(event) // a client that has gone is seen by its context
	_ = http.NewResponseController(s.w).Flush()
}

// sendEvent sends v, under a name unless that is empty.
func (s *eventStream) sendEvent(name string, v any) { s.writeEvent(eventOf(name, v)) }

// eventOf returns an event as it is sent.
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
