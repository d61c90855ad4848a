package compat

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// stream writes server-sent events. Its methods may be called from many goroutines.
type stream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	begun bool
	said  time.Time
	alive string // what is said where nothing else is
	stop  chan struct{}
	done  chan struct{}
}

// What a stream says to be known to be alive: what no client reads, and what Anthropic's name for
// it is.
const (
	comment = ": keep-alive\n\n"
	ping    = "event: ping\ndata: {\"type\":\"ping\"}\n\n"
)

// newStream begins a stream, which says that it is alive where nothing else is said for a while,
// until close.
func newStream(w http.ResponseWriter, every time.Duration, alive string) *stream {
	s := &stream{w: w, said: time.Now(), alive: alive, stop: make(chan struct{}), done: make(chan struct{})}
	go s.keepAlive(every)
	return s
}

func (s *stream) keepAlive(every time.Duration) {
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
		if time.Since(s.said) >= every {
			s.put([]byte(s.alive))
		}
		s.mu.Unlock()
	}
}

// close ends the goroutine; the handler may return then.
func (s *stream) close() {
	close(s.stop)
	<-s.done
}

// started reports whether anything was sent: then the status is.
func (s *stream) started() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// put is called with the lock held.
func (s *stream) put(data []byte) {
	if !s.begun {
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		s.begun = true
	}
	s.said = time.Now()
	_, _ = s.w.Write(data) // a client that has gone is seen by its context
	_ = http.NewResponseController(s.w).Flush()
}

// event sends v, under a name unless that is empty.
func (s *stream) event(name string, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(eventOf(name, v))
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

// end sends the mark with which a stream of chat completions is over.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put([]byte("data: [DONE]\n\n"))
}
