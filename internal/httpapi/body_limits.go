package httpapi

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/regie-run/regie/internal/httpread"
)

// lingering is how long the connection of a refused request stays open, so that a client that still
// sends its body can read the answer.
const lingering = 500 * time.Millisecond

// leaveBody drops the rest of the body of a refused request without waiting for it.
func leaveBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingering))
	}
}

// boundedBody is a body that has to come in time. Once all of it is there the connection is read
// without a bound, so that a client who leaves is noticed.
type boundedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// boundBody gives a request a body that has to come within a time. The request is a copy: net/http
// looks at its own one's body by its type.
func boundBody(w http.ResponseWriter, r *http.Request, control *http.ResponseController,
	within time.Duration,
) *http.Request {
	if r.ContentLength == 0 {
		return r
	}
	_ = control.SetReadDeadline(time.Now().Add(within)) // what has no deadlines does without
	r = r.WithContext(r.Context())
	r.Body = &boundedBody{http.MaxBytesReader(w, r.Body, httpread.MaxBody), control}
	return r
}

// Read implements io.Reader.
func (b *boundedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// boundedWriter gives each piece of an answer its own time: an answer may be long in coming, and is
// read at once.
type boundedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	bound   time.Duration
}

// Write implements http.ResponseWriter.
func (w *boundedWriter) Write(data []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.bound)) // what has no deadlines does without
	return w.ResponseWriter.Write(data)
}

// Flush implements http.Flusher, for who looks for nothing else.
func (w *boundedWriter) Flush() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.bound)) // what has no deadlines does without
	_ = w.control.Flush()                                   // the next write says what is wrong
}

// Unwrap is for http.ResponseController.
func (w *boundedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
