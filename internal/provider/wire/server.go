package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Config is a server of a model API.
type Config struct {
	Address string // as the person gave it
	Example string // how an address of this kind looks, such as http://127.0.0.1:8000/v1
	API     string // the name of the API, such as Chat Completions
	// Header goes with each request; it holds the key and is never shown.
	Header http.Header
	// Idle bounds how long a stream may be silent; zero means 2 minutes (spec 3.6).
	Idle time.Duration
	// NotRunning is the remedy if no server answers on this machine, such as "start the model
	// server there".
	NotRunning regie.Sentence
	// Dial connects to the server; nil dials TCP. It is for servers that listen elsewhere.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Judge interprets a vendor's error beyond its HTTP status; it may change the code and whether
	// to retry. May be nil.
	Judge func(e *provider.Error, kind, said string)
	// Details reads further data of a vendor's error body, after Judge; it may change whether and
	// when to retry. May be nil.
	Details func(e *provider.Error, body []byte)
}

// Server is one model API at one address. Its methods may be called from any goroutine.
type Server struct {
	cfg    Config
	base   string
	host   string
	local  bool
	client *http.Client
}

// New returns a server. It returns CodeBadRequest for an invalid address.
func New(cfg Config) (*Server, error) {
	u, err := url.Parse(strings.TrimRight(cfg.Address, "/"))
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, regie.Errorf(regie.CodeBadRequest, "%q is not the address of a server: write it like %s",
			cfg.Address, cfg.Example)
	case u.User != nil:
		return nil, regie.Errorf(regie.CodeBadRequest,
			"the address of a server must not contain a password: give the key in its own variable")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, regie.Errorf(regie.CodeBadRequest, "the address %q must be a plain one such as %s", cfg.Address,
			cfg.Example)
	}
	if cfg.Idle == 0 {
		cfg.Idle = 2 * time.Minute
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	transport := &http.Transport{
		DialContext:           cfg.Dial,
		TLSHandshakeTimeout:   15 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		WriteBufferSize:       64 << 10, // a thread is hundreds of kilobytes
		ReadBufferSize:        16 << 10,
		DisableCompression:    true, // a stream is read as it comes
		ResponseHeaderTimeout: cfg.Idle,
	}
	local := IsLoopback(u.Hostname())
	if !local {
		transport.Proxy = http.ProxyFromEnvironment
	}
	return &Server{
		cfg: cfg, base: u.String(), host: u.Hostname(), local: local,
		client: &http.Client{
			Transport: transport,
			// A redirected key is a key given away; a model API has no business redirecting.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// KeyHeader returns the header that carries a key, empty without one.
func KeyHeader(name, key string) http.Header {
	header := http.Header{}
	if key != "" && name == "Authorization" {
		key = "Bearer " + key
	}
	if key != "" {
		header.Set(name, key)
	}
	return header
}

// IsLoopback reports whether a host name or address is this machine's own.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Hide masks the key in an error: some servers quote a refused key, and errors are stored and
// shown.
func (s *Server) Hide(err *error) {
	if failed, ok := errors.AsType[*provider.Error](*err); ok {
		failed.Partial = string(s.hide([]byte(failed.Partial)))
		if masked := string(s.hide([]byte(failed.Message))); masked != failed.Message {
			failed.Message, failed.Said = masked, regie.Sentence{}
		}
	}
}

// hide masks the server's keys in its text in one pass, so the mask of one key is not searched for
// another.
func (s *Server) hide(said []byte) []byte {
	var keys []string
	for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key"} {
		keys = append(keys, strings.TrimPrefix(s.cfg.Header.Get(name), "Bearer "))
	}
	return []byte(provider.MaskKeys(keys...).Replace(string(said)))
}

// IsAt reports whether the server is at a domain or below it.
func (s *Server) IsAt(domain string) bool {
	return s.host == domain || strings.HasSuffix(s.host, "."+domain)
}

// Host is the host name of the server.
func (s *Server) Host() string { return s.host }

// Base is the address without a slash at its end.
func (s *Server) Base() string { return s.base }

// Post sends a request and returns its answer once the server has begun it. Every error is an
// *provider.Error, or the cause of ctx if that ended first. kinds are the content types that a
// stream of this API has; an answer of another kind is refused.
func (s *Server) Post(ctx context.Context, path string, body [][]byte, kinds ...string) (*Stream, error) {
	stream, err := s.open(ctx, path, body, strings.Join(kinds, ", "))
	if err != nil {
		return nil, err
	}
	kind := stream.response.Header.Get("Content-Type")
	if kind != "" && !slices.ContainsFunc(kinds, func(wanted string) bool { return strings.HasPrefix(kind, wanted) }) {
		defer stream.Close()
		return nil, s.notAStream(kind, stream)
	}
	return stream, nil
}

// Call sends a request, with an empty body if that is nil, and returns the whole answer, a JSON
// document of at most most bytes. Errors are those of Post.
func (s *Server) Call(ctx context.Context, path string, body []byte, most int) ([]byte, error) {
	var content [][]byte
	if body != nil {
		content = [][]byte{body}
	}
	stream, err := s.open(ctx, path, content, "application/json")
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	data, err := io.ReadAll(io.LimitReader(stream, int64(most)+1))
	switch {
	case len(data) > most:
		return nil, &provider.Error{
			Code:    regie.CodeReplyTooLarge,
			Message: fmt.Sprintf("the model's server answered with more than %d MiB", most>>20),
		}
	case err != nil:
		return nil, stream.Failed(err)
	case len(data) > 0 && data[0] == '<':
		return nil, s.foreign(data)
	}
	return data, nil
}

// foreign is the error of an answer that is not one of the API.
func (s *Server) foreign(data []byte) *provider.Error {
	words, _ := VendorWords(s.hide(data))
	return &provider.Error{
		Code: regie.CodeProviderRejected, Misplaced: true,
		Message: fmt.Sprintf("%s does not speak %s: it answered %s", s.cfg.Address, s.cfg.API, Clip(words, 120)),
	}
}

// open sends a request, without a body if that is nil, and returns its answer once the server has
// begun it with status 200.
func (s *Server) open(ctx context.Context, path string, body [][]byte, accept string) (*Stream, error) {
	inner, cancel := context.WithCancelCause(ctx)
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(inner, trace),
		http.MethodGet, s.base+path, http.NoBody)
	if err != nil {
		cancel(nil)
		return nil, &provider.Error{Code: regie.CodeBadRequest, Message: "the request could not be made: " +
			err.Error(), Err: err}
	}
	request.Header.Set("Accept", accept)
	maps.Copy(request.Header, s.cfg.Header)
	if body != nil {
		for _, piece := range body {
			request.ContentLength += int64(len(piece))
		}
		request.Header.Set("Content-Type", "application/json")
		// If the server just closed an idle connection, the transport silently replaces it: nothing
		// was sent on it.
		request.GetBody = func() (io.ReadCloser, error) {
			readers := make([]io.Reader, len(body))
			for i := range body {
				readers[i] = bytes.NewReader(body[i])
			}
			return io.NopCloser(io.MultiReader(readers...)), nil
		}
		request.Method = http.MethodPost
		request.Body, _ = request.GetBody()
	}
	stream := &Stream{server: s, outer: ctx, inner: inner, cancel: cancel, began: time.Now()}
	response, err := s.client.Do(request) //nolint:bodyclose // Stream.Close closes it
	if err != nil {
		defer cancel(nil)
		err = s.failed(ctx, inner, err, false)
		if cut, is := errors.AsType[*provider.Cut](err); is {
			cut.Unsent = !connected.Load()
		}
		return nil, err
	}
	stream.response = response
	stream.silence = time.AfterFunc(s.cfg.Idle, func() { cancel(errSilent) })
	if response.StatusCode != http.StatusOK {
		defer stream.Close()
		return nil, s.refused(response.StatusCode, response.Header, stream)
	}
	return stream, nil
}

// maxAnswer bounds the reading of an answer that is not a stream, in bytes.
const maxAnswer = 8 << 20

// Ask sends a JSON document, if in is not nil, and reads the answer into out. Errors are those of
// Post.
func (s *Server) Ask(ctx context.Context, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return &provider.Error{
				Code: regie.CodeInternal, Message: "the request could not be made: " + err.Error(), Err: err,
			}
		}
	}
	data, err := s.Call(ctx, path, body, maxAnswer)
	if err != nil {
		return err
	}
	if json.Unmarshal(data, out) != nil {
		return s.foreign(data)
	}
	return nil
}

var errSilent = errors.New("silent for too long")

// Stream is an answer as it comes. It is used by one goroutine.
type Stream struct {
	server       *Server
	outer, inner context.Context
	cancel       context.CancelCauseFunc
	response     *http.Response
	silence      *time.Timer
	began        time.Time
}

// Read implements io.Reader; each read that brings bytes restarts the timer of silence.
func (s *Stream) Read(p []byte) (int, error) {
	n, err := s.response.Body.Read(p)
	if n > 0 {
		s.silence.Reset(s.server.cfg.Idle)
	}
	return n, err
}

// Close releases the connection.
func (s *Stream) Close() {
	s.silence.Stop()
	s.cancel(nil)
	_ = s.response.Body.Close()
}

// Since is the time since the request was sent.
func (s *Stream) Since() time.Duration { return time.Since(s.began) }

// Failed translates an error of Read, or of a reader on top of it.
func (s *Stream) Failed(err error) error { return s.server.failed(s.outer, s.inner, err, true) }
