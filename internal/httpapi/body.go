package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/regie-run/regie/internal/httpread"
)

// lingering is how long the connection of a body that nobody read stays after its answer, so that
// whoever still sends it can read that.
const lingering = 500 * time.Millisecond

// bodies are those that are being read, so that a server which stops waits for none of them.
type bodies struct {
	mu       sync.Mutex
	reading  map[*boundedBody]struct{}
	stopping bool
}

// Stop has requests whose heads or bodies are not there yet end: what has not come is no step of
// anything, and is asked of the next server. It leaves those that are whole alone: what a provider
// answers is told to its end, within the server's time for that, and what waits for a run of the
// engine is told that the engine has gone (ENGINE_GONE) as soon as that stops.
func (g *Guard) Stop() {
	g.arrivals.stop()
	g.bodies.mu.Lock()
	defer g.bodies.mu.Unlock()
	g.bodies.stopping = true
	for b := range g.bodies.reading {
		b.until(time.Now())
	}
}

// boundedBody is a body that has to come in time. Once all of it is there the connection is read
// without a bound, so that a client who leaves is noticed; of one that never comes the connection
// ends with its answer.
type boundedBody struct {
	io.ReadCloser
	all     *bodies
	control *http.ResponseController
	whole   bool // all of it was read; under all.mu
}

// bounded gives a request a body that has to come within a time. The request is a copy: net/http
// looks at its own one's body by its type, and reads one that it does not know before it writes an
// answer.
func (all *bodies) bounded(w http.ResponseWriter, r *http.Request, control *http.ResponseController,
	within time.Duration,
) (*http.Request, *boundedBody) {
	if r.ContentLength == 0 {
		return r, nil
	}
	b := &boundedBody{ReadCloser: http.MaxBytesReader(w, r.Body, httpread.MaxBody), all: all, control: control}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.reading == nil {
		all.reading = map[*boundedBody]struct{}{}
	}
	all.reading[b] = struct{}{}
	if all.stopping {
		within = 0
	}
	b.until(time.Now().Add(within))
	r = r.WithContext(r.Context())
	r.Body = b
	return r, b
}

func (b *boundedBody) until(at time.Time) {
	_ = b.control.SetReadDeadline(at) // what has no deadlines does without
}

// Read implements io.Reader. What has not come when the server stops is ErrStopping, and has not
// come in time either.
func (b *boundedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if err == nil {
		return n, nil
	}
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	switch {
	case errors.Is(err, io.EOF):
		b.whole = true
		delete(b.all.reading, b)
		b.until(time.Time{})
	case b.all.stopping:
		err = errors.Join(ErrStopping, err)
	}
	return n, err
}

// unread reports whether something of it may still come.
func (b *boundedBody) unread() bool {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	return !b.whole
}

// answered is the end of a body's request. net/http writes the answer and then reads what is left:
// a moment, for who reads nothing before all is sent.
func (b *boundedBody) answered() {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	delete(b.all.reading, b)
	if !b.whole {
		b.until(time.Now().Add(lingering))
	}
}

// boundedWriter gives each piece of an answer its own time: an answer may be long in coming, and is
// read at once. An answer to a body that nobody has read does not wait for it: it ends the
// connection, on which nobody knows where the next request begins.
type boundedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	bound   time.Duration
	body    *boundedBody // nil where there is none, or the connection is not the request's alone
	begun   bool
}

// begin is the answer's beginning.
func (w *boundedWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	if w.body != nil && w.body.unread() {
		w.Header().Set("Connection", "close")
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *boundedWriter) WriteHeader(status int) {
	if status >= http.StatusOK { // what comes before is none
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *boundedWriter) Write(data []byte) (int, error) {
	w.begin()
	_ = w.control.SetWriteDeadline(time.Now().Add(w.bound)) // what has no deadlines does without
	return w.ResponseWriter.Write(data)
}

// Flush implements http.Flusher, for who looks for nothing else.
func (w *boundedWriter) Flush() {
	w.begin()
	_ = w.control.SetWriteDeadline(time.Now().Add(w.bound)) // what has no deadlines does without
	_ = w.control.Flush()                                   // the next write says what is wrong
}

// Unwrap is for http.ResponseController.
func (w *boundedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
