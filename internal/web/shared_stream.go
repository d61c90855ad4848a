package web

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/regie-run/regie"
)

// maxPages bounds the pages of one shared stream.
const maxPages = 64

// sharedStream joins the streams of a browser's pages, because HTTP/1.1 gives a browser six
// connections to a server. The name of each event begins with the place of its page in the request.
type sharedStream struct {
	mu  sync.Mutex
	w   http.ResponseWriter
	out *http.ResponseController
}

// streamPages serves the streams that the parameters page name as one stream.
func (s *Site) streamPages(v *visit) error {
	pages := v.r.URL.Query()["page"]
	if len(pages) == 0 || len(pages) > maxPages {
		return regie.Errorf(regie.CodeBadRequest, "the stream is of %d pages: name 1 to %d", len(pages), maxPages)
	}
	requests := make([]*http.Request, len(pages))
	for i, page := range pages {
		at, err := url.ParseRequestURI(page)
		if err != nil {
			return regie.Errorf(regie.CodeBadRequest, "the page %q has no address", page)
		}
		r := v.r.Clone(v.r.Context())
		r.URL = at
		r.Header.Del("Last-Event-ID")
		if _, pattern := s.mux.Handler(r); !strings.HasSuffix(pattern, "/stream") || pattern == "GET /stream" {
			return regie.Errorf(regie.CodeNotFound, "there is no stream at %s", at.Path)
		}
		requests[i] = r
	}
	startStream(v.w)
	shared := &sharedStream{w: v.w, out: http.NewResponseController(v.w)}
	if err := shared.out.Flush(); err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	var open sync.WaitGroup
	for i, r := range requests {
		w := &pageWriter{shared: shared, place: strconv.Itoa(i), header: http.Header{}}
		open.Go(func() {
			defer s.logPanic(r.URL.Path)
			s.mux.ServeHTTP(w, r)
			if w.status >= http.StatusBadRequest {
				// the client has gone if this fails
				_ = shared.write(fmt.Appendf(nil, "event: %s failed\ndata: %d\n\n", w.place, w.status))
			}
		})
	}
	open.Wait()
	return nil
}

// logPanic ends the stream of one page only, as net/http ends one request.
func (s *Site) logPanic(path string) {
	if reason := recover(); reason != nil {
		s.Log.Error("the stream of a page ended by a fault of its own", "path", path, "error", reason,
			"stack", string(debug.Stack()))
	}
}

// startStream writes the head of an event stream.
func startStream(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
}

func (s *sharedStream) write(event []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.w.Write(event); err != nil {
		return err
	}
	return s.out.Flush()
}

// pageWriter is the response to one page of a shared stream. Each Write is whole events.
type pageWriter struct {
	shared *sharedStream
	place  string
	header http.Header
	status int
}

// Header implements http.ResponseWriter; no one reads it.
func (w *pageWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *pageWriter) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter. The body of an error is dropped.
func (w *pageWriter) Write(data []byte) (int, error) {
	if w.status >= http.StatusBadRequest {
		return len(data), nil
	}
	event := data
	if named, ok := bytes.CutPrefix(data, []byte("event: ")); ok {
		event = append([]byte("event: "+w.place+" "), named...)
	}
	return len(data), w.shared.write(event)
}

// FlushError lets a response controller flush: Write has done so.
func (w *pageWriter) FlushError() error { return nil }
