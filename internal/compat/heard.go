package compat

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie/internal/access"
)

// heard is the client's side of a request that its provider answers for a key: it may end before
// the provider's does. Its methods may be called from many goroutines, but for Header.
type heard struct {
	mu     sync.Mutex
	w      http.ResponseWriter
	header http.Header // of the answer, until that begins
	begun  bool
	over   bool
}

// errUnheard is what becomes of a write to a client whose side has ended.
var errUnheard = errors.New("the client hears no more")

// Header implements http.ResponseWriter.
func (h *heard) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *heard) WriteHeader(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin(status)
}

// begin is called with the lock held.
func (h *heard) begin(status int) {
	if h.begun || h.over {
		return
	}
	h.begun = true
	maps.Copy(h.w.Header(), h.header)
	h.w.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (h *heard) Write(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return 0, errUnheard
	}
	h.begin(http.StatusOK)
	return h.w.Write(data)
}

// FlushError is for http.ResponseController.
func (h *heard) FlushError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return errUnheard
	}
	h.begun = true
	return http.NewResponseController(h.w).Flush()
}

// SetWriteDeadline is for http.ResponseController.
func (h *heard) SetWriteDeadline(at time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return errUnheard
	}
	return http.NewResponseController(h.w).SetWriteDeadline(at)
}

// end ends the client's side; before says that it had ended, begun that something of the answer was
// sent.
func (h *heard) end() (begun, before bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	begun, before, h.over = h.begun, h.over, true
	return begun, before
}

// apart has a request with a key asked. Its client hears nothing more once its token has ended,
// while the provider's side goes on for the key.
func (p *passing) apart(ask func()) {
	w, out, done := p.w, &heard{w: p.w, header: http.Header{}}, make(chan struct{})
	p.w = out
	p.Going.Go(func() {
		defer close(done)
		defer out.end()
		ask()
	})
	select {
	case <-done:
		return
	case <-p.r.Context().Done():
	}
	if !ended(p.r) {
		<-done
		return
	}
	switch begun, before := out.end(); {
	case before:
	case !begun:
		p.fail(w, p.r, access.ErrEnded)
	case strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"):
		_, _ = w.Write(p.endedIn()) // the client has gone
	}
}

// endedIn tells a stream of an API that its client's token has ended, wherever in an event it
// stands.
func (p *passing) endedIn() []byte {
	why := p.tell(p.r, access.ErrEnded)
	problem, _ := why.openAI()
	var event []byte
	switch p.api {
	case APIMessages:
		event = eventOf("error", why.anthropic())
	case APIResponses:
		event = eventOf("error", map[string]any{
			"type": "error", "code": problem.Code,
			"message": problem.Message, "param": problem.Param,
		})
	default:
		event = eventOf("", map[string]any{"error": problem})
	}
	return append([]byte("\n\n"), event...)
}
