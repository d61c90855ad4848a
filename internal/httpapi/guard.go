package httpapi

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
)

// Guard keeps out of a server who has no business there (spec 11.2): the wrong host, another origin, no token. It holds for every path but those
// that say whether the server is there, and that of the setup link.
type Guard struct {
	// Token is what a request shows as bearer; it is never empty.
	Token string
	// Hosts are the names and addresses, without port, under which the server may be reached beside those of this machine.
	Hosts []string
	// TLS says that clients come by HTTPS: cookies are for that alone.
	TLS bool

	// AnswerTime bounds how long a client takes to read a piece of an answer, BodyTime how long to send its request's body; zero means a minute and 30 s.
	AnswerTime, BodyTime time.Duration

	mu   sync.Mutex
	code string // of the setup link; empty once it was used
	ends time.Time
}

const (
	cookieName = "regie"
	// cookieTime is how long a browser stays known.
	cookieTime = 30 * 24 * time.Hour
	// setupTime is how long the setup link is good.
	setupTime = 15 * time.Minute
)

// NewToken makes a token that nobody can guess.
func NewToken() string { return "regie_" + secret() }

func secret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// open are the paths that anybody may ask for: whether the server is there, and which program it is.
var open = []string{"/healthz", "/readyz", "/version"}

// Wrap returns a handler that lets a request through to next where it may be here.
func (g *Guard) Wrap(next http.Handler, translate Translate) http.Handler {
	s := &server{Config{Translate: translate}}
	foreign := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Time{}) // what stood there was of the request before
		bound := &boundedWriter{ResponseWriter: w, control: control, bound: g.answerTime()}
		w = bound
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(time.Now().Add(g.bodyTime())) // what has no deadlines does without
			r.Body = &boundedBody{ReadCloser: http.MaxBytesReader(w, r.Body, maxBody), control: control}
		}
		err := g.host(r.Host)
		if err == nil {
			err = g.origin(r)
		}
		if err == nil && foreign.Check(r) != nil {
			err = regie.Errorf(regie.CodeForbidden, "the request comes from a page of somebody else's")
		}
		switch {
		case err != nil:
			s.fail(w, r, err)
		case slices.Contains(open, r.URL.Path):
			next.ServeHTTP(w, r)
		case r.URL.Path == setupPath:
			g.setup(w, r, s)
		case g.admits(r):
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="regie"`)
			s.failAs(w, r, http.StatusUnauthorized, regie.Errorf(regie.CodeNoToken, "the request shows no token, or a wrong one: send it as Authorization: Bearer …"))
		}
	})
}

// harden has browsers make nothing of an answer but what it is.
func harden(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with none, a form of our own comes from nowhere
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// host refuses names that are not the server's: a page whose name was made to lead here (DNS rebinding) comes with its own.
func (g *Guard) host(host string) error {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(strings.TrimSuffix(name, "."), "[]"))
	if name == "localhost" || slices.ContainsFunc(g.Hosts, func(allowed string) bool { return strings.EqualFold(allowed, name) }) {
		return nil
	}
	if at, err := netip.ParseAddr(name); err == nil && at.IsLoopback() {
		return nil
	}
	return regie.Errorf(regie.CodeForbidden, "%q is not a name of this server: regie serve --host allows more", host)
}

// origin refuses requests of pages of others, those that only read among them: streams and WebSockets carry what is private.
func (g *Guard) origin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" {
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.URL.Path != setupPath {
			return regie.Errorf(regie.CodeForbidden, "the request comes from a page of somebody else's")
		}
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Host != r.Host {
		return regie.Errorf(regie.CodeForbidden, "the request comes from a page of %s, and nobody else's pages are let in", origin)
	}
	return nil
}

// admits reports whether a request shows the token, or a browser's cookie that stands for it.
func (g *Guard) admits(r *http.Request) bool {
	if bearer := r.Header.Values("Authorization"); len(bearer) > 0 {
		kind, token, _ := strings.Cut(bearer[0], " ")
		return len(bearer) == 1 && strings.EqualFold(kind, "Bearer") && same(strings.TrimSpace(token), g.Token)
	}
	cookie, err := r.Cookie(cookieName)
	return err == nil && g.knows(cookie.Value, time.Now())
}

// same compares without telling by its time how much is alike.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// cookie is a value that only who has the token can make; it ends by itself, and with the token.
func (g *Guard) cookie(until time.Time) string {
	text := strconv.FormatInt(until.Unix(), 10) + "." + secret()
	return text + "." + g.sign(text)
}

func (g *Guard) sign(text string) string {
	mac := hmac.New(sha256.New, []byte(g.Token))
	_, _ = mac.Write([]byte("cookie " + text)) // a hash takes everything
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (g *Guard) knows(cookie string, now time.Time) bool {
	at := strings.LastIndexByte(cookie, '.')
	if at < 0 || !same(cookie[at+1:], g.sign(cookie[:at])) {
		return false
	}
	until, _, _ := strings.Cut(cookie, ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	return err == nil && now.Before(time.Unix(seconds, 0))
}

// ErrStopping is why the requests of a server end that stops: whoever asks again asks the next one.
var ErrStopping = regie.Errorf(regie.CodeEngineGone, "the server stops")

func (g *Guard) answerTime() time.Duration { return cmp.Or(g.AnswerTime, time.Minute) }

func (g *Guard) bodyTime() time.Duration { return cmp.Or(g.BodyTime, 30*time.Second) }

// boundedWriter gives each piece of an answer its own time: an answer may be long in coming, and is read at once.
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

// boundedBody is a body that has to come in time. Once all of it is there the connection is read without a bound, so that a client who leaves is
// noticed; of one that never comes the connection ends with its answer.
type boundedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *boundedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{}) // what has no deadlines does without
	}
	return n, err
}
