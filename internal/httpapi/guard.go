package httpapi

import (
	"cmp"
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
	"github.com/regie-run/regie/internal/access"
)

// Guard keeps out of a server who has no business there (spec 11.2): the wrong host, another
// origin, no token. It holds for every path but those that say whether the server is there, and
// that of the setup link.
type Guard struct {
	// Gate lets in who shows a token; it is required.
	Gate *access.Gate
	// Refused receives the reason of each refused request in one word; it may be nil.
	Refused func(reason string)
	// Hosts are the names and addresses of the server, without port, in addition to those of this
	// machine.
	Hosts []string
	// Mounts are those of the Handler behind it.
	Mounts map[string]Mount
	// Pages are those of the Handler behind it; nil: none.
	Pages Pages

	// AnswerTime bounds how long a client takes to read a piece of an answer, BodyTime how long to
	// send its request's body; zero means a minute and 30 s.
	AnswerTime, BodyTime time.Duration

	mu   sync.Mutex
	code string // of the setup link; empty once it was used
	ends time.Time
}

const (
	// cookieName begins the name of a browser's cookie.
	cookieName = "regie"
	// setupTime is how long the setup link is good.
	setupTime = 15 * time.Minute
)

// open are the paths that need no token: whether the server runs, and its version.
var open = []string{"/healthz", "/readyz", "/version"}

// Wrap returns a handler that lets a request through to next where it may be here.
func (g *Guard) Wrap(next http.Handler, translate Translate) http.Handler {
	s := &responder{translate, g.Mounts, g.Refused}
	foreign := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setSecurityHeaders(w.Header())
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Time{}) // what stood there was of the request before
		w = &boundedWriter{ResponseWriter: w, control: control, bound: cmp.Or(g.AnswerTime, time.Minute)}
		r = boundBody(w, r, control, cmp.Or(g.BodyTime, 30*time.Second))
		err := g.checkHost(r.Host)
		if err == nil {
			err = g.checkOrigin(r)
		}
		if err == nil && foreign.Check(r) != nil {
			err = regie.Errorf(regie.CodeForbidden, "the request comes from a page of another site")
		}
		switch {
		case err != nil:
			s.refuseRequest(w, r, "origin", err)
		case slices.Contains(open, r.URL.Path), strings.HasPrefix(r.URL.Path, hooksPath): // with a token of their own
			next.ServeHTTP(w, r)
		case g.isPublic(r.URL.Path):
			next.ServeHTTP(w, r)
		case r.URL.Path == setupPath:
			g.serveSetup(w, r, s)
		default:
			g.checkRequest(w, r, s, next)
		}
	})
}

// checkRequest lets in who shows a token, and has others told why not.
func (g *Guard) checkRequest(w http.ResponseWriter, r *http.Request, s *responder, next http.Handler) {
	if inAddress(r.URL) {
		s.refuseRequest(w, r, "address", regie.Errorf(regie.CodeBadRequest,
			"a token in an address ends up in logs and histories: send it as Authorization: Bearer …, and revoke this one if it is real"))
		return
	}
	caller, err := g.findCaller(r)
	switch code := regie.CodeOf(err); {
	case (code == regie.CodeNoToken || code == regie.CodeTokenEnded) && g.Pages != nil && g.Pages.Serves(r.URL.Path):
		next.ServeHTTP(w, r) // without a caller: it shows how to log in
		return
	case code == regie.CodeNoToken || code == regie.CodeTokenEnded:
		g.turnAway(w, r, s, err, r.Header.Get("Authorization") != "" ||
			r.Header.Get("Cookie") != "" || len(g.readKeys(r)) > 0)
		return
	case err != nil:
		s.refuseRequest(w, r, "store", err)
		return
	}
	ctx, done, again, err := g.Gate.Enter(r.Context(), caller)
	if err != nil {
		w.Header().Set("Retry-After", strconv.Itoa(int(again/time.Second)+1))
		s.refuseRequest(w, r, "limit", err)
		return
	}
	defer done()
	next.ServeHTTP(w, r.WithContext(ctx))
}

// turnAway answers a caller without a valid token. It does not throttle: a secret has 256 random
// bits, and a text of another form is not looked up.
func (g *Guard) turnAway(w http.ResponseWriter, r *http.Request, s *responder, err error, tried bool) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="regie"`)
	if tried {
		w.Header().Set("WWW-Authenticate", `Bearer realm="regie", error="invalid_token"`)
	}
	s.refuseRequest(w, r, "token", err)
}

// inAddress reports whether an address holds a token: in a parameter that other servers take one
// in, or anything that looks like one.
func inAddress(u *url.URL) bool {
	if access.Looks(u.RawQuery) || access.Looks(u.Path) {
		return true
	}
	for name := range u.Query() {
		switch strings.ToLower(name) {
		case "access_token", "token", "api_key", "apikey":
			return true
		}
	}
	return false
}

// setSecurityHeaders has browsers make nothing of an answer but what it is.
func setSecurityHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with none, a form of our own comes from nowhere
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// checkHost refuses foreign host names: a page that resolves its own name to this server (DNS
// rebinding) sends that name.
func (g *Guard) checkHost(host string) error {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(strings.TrimSuffix(name, "."), "[]"))
	if name == "localhost" || slices.ContainsFunc(g.Hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, name)
	}) {
		return nil
	}
	if at, err := netip.ParseAddr(name); err == nil && at.IsLoopback() {
		return nil
	}
	return regie.Errorf(regie.CodeForbidden, "%q is not a host name of this server: add it with regie serve --host", host)
}

// isPublic reports whether a path is that of a page for visitors of other sites.
func (g *Guard) isPublic(path string) bool { return g.Pages != nil && g.Pages.Public(path) }

// checkOrigin refuses requests of pages of others, those that only read among them: streams and
// WebSockets carry what is private.
func (g *Guard) checkOrigin(r *http.Request) error {
	// who says two things would be believed the one that is looked at
	if len(r.Header.Values("Origin")) > 1 || len(r.Header.Values("Sec-Fetch-Site")) > 1 {
		return regie.Errorf(regie.CodeForbidden, "the request has more than one Origin")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && r.URL.Path != setupPath &&
			(r.Method != http.MethodGet || !g.isPublic(r.URL.Path)) {
			return regie.Errorf(regie.CodeForbidden, "the request comes from a page of another site")
		}
		return nil
	}
	u, err := url.Parse(origin)
	// Without HTTPS here a proxy in front may encrypt, and its scheme cannot be trusted: only the
	// host counts then.
	if err != nil || u.Host == "" || u.Host != r.Host || r.TLS != nil && u.Scheme != "https" {
		return regie.Errorf(regie.CodeForbidden,
			"the request comes from a page of %s, and pages of other sites are not accepted", origin)
	}
	return nil
}

// readKeys returns what a request shows in the header that clients of its mount show their token
// in.
func (g *Guard) readKeys(r *http.Request) []string {
	mount, ok := mountOf(g.Mounts, r.URL.Path)
	if !ok || mount.KeyHeader == "" {
		return nil
	}
	return r.Header.Values(mount.KeyHeader)
}

// findCaller finds who shows a token, or a browser's cookie. Where there is a token, it decides,
// the one in Authorization before any other.
func (g *Guard) findCaller(r *http.Request) (*access.Caller, error) {
	if bearer := r.Header.Values("Authorization"); len(bearer) > 0 {
		kind, token, _ := strings.Cut(bearer[0], " ")
		if len(bearer) > 1 || !strings.EqualFold(kind, "Bearer") {
			return nil, access.ErrNoToken
		}
		return g.Gate.Admit(r.Context(), strings.TrimSpace(token), regie.TokenAPI)
	}
	if keys := g.readKeys(r); len(keys) > 1 {
		return nil, regie.Errorf(regie.CodeNoToken, "the request has more than one token")
	} else if len(keys) == 1 {
		return g.Gate.Admit(r.Context(), strings.TrimSpace(keys[0]), regie.TokenAPI)
	}
	cookie, err := r.Cookie(cookieOf(r))
	if mount, _ := mountOf(g.Mounts, r.URL.Path); err != nil && mount.KeyHeader != "" {
		return nil, regie.Errorf(regie.CodeNoToken,
			"the request has no token: send it as Authorization: Bearer …, or as %s", mount.KeyHeader)
	}
	if err != nil {
		return nil, access.ErrNoToken
	}
	return g.Gate.Admit(r.Context(), cookie.Value, regie.TokenBrowser)
}

// sessionCookie returns what a browser is known by.
func sessionCookie(r *http.Request, value string, until time.Time) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // Secure where there is HTTPS
		Name: cookieOf(r), Value: value, Path: "/", Expires: until, HttpOnly: true, Secure: isHTTPS(r),
		SameSite: http.SameSiteStrictMode,
	}
}

// LoginSecret returns what only the caller of a request knows: the cookie of its login, or its
// token. Forms carry a hash of it against forgery.
func LoginSecret(r *http.Request) string {
	if cookie, err := r.Cookie(cookieOf(r)); err == nil && r.Header.Get("Authorization") == "" {
		return cookie.Value
	}
	return r.Header.Get("Authorization")
}

// cookieOf returns the name of the cookie of a server as its browsers reach it. Browsers send the
// cookies of a host to all its ports, so that cookies of two servers would collide. Over HTTPS only
// that server can set its cookie.
func cookieOf(r *http.Request) string {
	name := cookieName
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" && strings.Trim(port, "0123456789") == "" {
		name += "-" + port
	}
	if isHTTPS(r) {
		name = "__Host-" + name
	}
	return name
}

// isHTTPS reports whether a browser speaks HTTPS, as far as that can be known: who says so falsely
// makes only their own cookie stricter.
func isHTTPS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// ErrStopping ends the requests of a server that stops: a repeated request reaches the next one.
var ErrStopping = regie.Errorf(regie.CodeEngineGone, "the server stops")
