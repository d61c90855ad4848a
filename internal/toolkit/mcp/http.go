package mcp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/publicnet"
	"github.com/regie-run/regie/internal/sanitize"
)

// newTransport returns the HTTP transport of a server, shared by its sessions. It uses no proxy:
// the check of the address would see the proxy's, and not where it connects to.
func newTransport(c Config) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if !c.AllowPrivate {
		// Control sees the dialled address, for any name and any change of its resolution.
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return publicnet.Require(address) }
	}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		MaxConnsPerHost: 64, MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // a bound on bytes must be one on what they become
	}
}

// wire is the HTTP client of one session: it adds the headers, bounds what comes back, notes what
// became of a call, and ends with the session.
type wire struct {
	inner http.RoundTripper
	// alone is for actions. A connection that was idle may have ended unnoticed, and a call that
	// meets that end may have been seen or not: its outcome would be unknown for nothing. A new
	// connection fails before anything is sent.
	alone http.RoundTripper
	life  context.Context // the session's
	c     Config
}

func (w *wire) httpClient() *http.Client {
	// A redirected key is a key given away, and the address was checked for its host only.
	return &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(request.Context())
	release := context.AfterFunc(w.life, cancel)
	end := func() { release(); cancel() }
	if _, bounded := ctx.Deadline(); !bounded && request.Method != http.MethodGet {
		// Answers to the server's own requests have no deadline of the SDK's.
		timer := time.AfterFunc(w.c.callTimeout(), cancel)
		before := end
		end = func() { timer.Stop(); before() }
	}
	var call *flight
	if f, ok := ctx.Value(flightKey{}).(*flight); ok && request.Method == http.MethodPost &&
		f.taken.CompareAndSwap(false, true) {
		call = f
		// From here on bytes may leave; before it there was no connection to write them to.
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { f.sent.Store(true) },
		})
	}
	request = request.Clone(ctx)
	for name, value := range w.c.Headers {
		request.Header.Set(name, value)
	}
	inner := w.inner
	if call != nil && call.action {
		inner = w.alone
	}
	response, err := inner.RoundTrip(request)
	if err != nil {
		end()
		return nil, err
	}
	if call != nil {
		call.status.Store(int32(response.StatusCode))
	}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		defer end()
		_ = response.Body.Close()
		return nil, regie.Errorf(regie.CodeServerDown, "it redirects to %s: put that address into the configuration",
			redirectTarget(response))
	}
	body := &bounded{ReadCloser: response.Body, end: end, left: maxMessage}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		body.left = -1 // it may last for days; the SDK bounds each event
	}
	response.Body = body
	return response, nil
}

// redirectTarget returns where a redirect leads, without what may be secret in it.
func redirectTarget(response *http.Response) string {
	u, err := response.Location()
	if err != nil {
		return "nowhere"
	}
	return sanitize.Clip(u.Scheme+"://"+u.Host+u.Path, 200)
}

// bounded is a response's body that ends with an error beyond its bound, and with its session.
type bounded struct {
	io.ReadCloser
	end  func()
	left int // bytes, negative: no bound
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return b.ReadCloser.Read(p)
	}
	n, err := b.ReadCloser.Read(p)
	if n > b.left {
		return 0, fmt.Errorf("it sent more than %d bytes", maxMessage)
	}
	b.left -= n
	return n, err
}

// Close implements io.Closer.
func (b *bounded) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// isRefused reports whether an HTTP status says that a request was not taken up.
func isRefused(status int32) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden,
		http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusTooManyRequests:
		return true
	default:
		return status >= 300 && status < 400
	}
}
