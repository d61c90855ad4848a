package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"strings"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/httpread"
)

// Translate renders an error's sentence in a language ("fr", "en").
type Translate func(language string, err error) string

// Config is what is served. Service and Translate are required.
type Config struct {
	Service   *control.Service
	Translate Translate
	// Version is that of the program.
	Version string
	// Ready says what is right and wrong with the server; nil: all is right.
	Ready func(context.Context) []Check
	// Metrics answers /metrics; nil means none. Open is called with 1 when a stream opens and with
	// -1 when it ends; it may be nil.
	Metrics http.Handler
	Open    func(n int)
	// Base is as long as the server is there, and Going counts the streams that net/http does not
	// know; nil: it knows them all.
	Base  context.Context //nolint:containedctx // the server's own
	Going *sync.WaitGroup
	// Keys remembers writes with an Idempotency-Key; nil: nothing is remembered, and the same key
	// finds what the first request made.
	Keys Keys
	// Pages are the web pages; nil: none.
	Pages Pages
	// Mounts are additional handlers, by patterns of net/http.
	Mounts map[string]Mount
	// Trusted treats every request as one of this machine's user. Otherwise a Guard checks it
	// first.
	Trusted bool
	// Refused receives the reason of each refused request in one word; it may be nil.
	Refused func(reason string)
}

// Pages are web pages beside the interface. Serves reports whether a path is theirs. They answer
// callers without a login too, with a page that says how to log in. Public reports whether a path
// is for visitors of other sites: the Guard does not look at logins there.
type Pages interface {
	http.Handler
	Serves(path string) bool
	Public(path string) bool
}

// Mount is an interface of another kind, with the scope that it needs.
type Mount struct {
	Handler http.Handler
	Scope   regie.TokenScope
	// Refuse answers what is not let in to it in its own form; nil has it answered as everywhere.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
	// KeyHeader is a header for the clients' token as an alternative to Authorization; empty for
	// none.
	KeyHeader string
}

// mountOf returns the mount that a path belongs to; ok is false for a path of this interface.
func mountOf(mounts map[string]Mount, path string) (mount Mount, ok bool) {
	for pattern, m := range mounts {
		if path == pattern || strings.HasSuffix(pattern, "/") && strings.HasPrefix(path+"/", pattern) {
			return m, true
		}
	}
	return Mount{}, false
}

// Check is one thing that a server needs. Problem is empty where it is right.
type Check struct {
	Name    string `json:"name"`
	Problem string `json:"problem,omitempty"`
}

// Handler serves the service: the interface of spec 10.2 below /api/v1 and the addresses around it.
func Handler(c Config) http.Handler {
	if c.Open == nil {
		c.Open = func(int) {}
	}
	s := &server{c, responder{c.Translate, c.Mounts, c.Refused}}
	mux := http.NewServeMux()
	s.serveAbout(mux)
	for pattern, mount := range c.Mounts {
		serve := s.requireScope(mount.Scope, viaMount(mount))
		mux.HandleFunc(pattern, serve)
		// else the mux answers there, with a redirect
		if root := strings.TrimSuffix(pattern, "/"); root != pattern && root != "" {
			mux.HandleFunc(root, serve)
		}
	}
	for _, o := range s.operations() {
		mux.HandleFunc(o.method+" "+base+o.path, s.requireScope(o.scope, o.serve))
	}
	mux.HandleFunc(hooksPath, func(w http.ResponseWriter, r *http.Request) { serveHook(s, w, r) })
	missing := s.serveMissing(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if c.Pages != nil && c.Pages.Serves(r.URL.Path) {
			c.Pages.ServeHTTP(w, r)
			return
		}
		missing(w, r)
	})
	if c.Trusted {
		return trustCaller(s.requirePlainPath(mux))
	}
	return s.requirePlainPath(mux)
}

// viaMount has the callers of a mount come through its interface.
func viaMount(mount Mount) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller := *access.From(r.Context())
		caller.Surface = mount.Scope
		mount.Handler.ServeHTTP(w, r.WithContext(access.With(r.Context(), &caller)))
	}
}

// trustCaller has every request come from this machine's user.
func trustCaller(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(access.AsOwner(r.Context())))
	})
}

// requirePlainPath refuses other spellings of a path: the mux would redirect them with a page and
// no code.
func (s *responder) requirePlainPath(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; p != path.Clean(p) && p != path.Clean(p)+"/" || !strings.HasPrefix(p, "/") {
			s.refuseRequest(w, r, "address", regie.Errorf(regie.CodeNotFound, "there is nothing at %s %s", r.Method, p))
			return
		}
		next.ServeHTTP(w, r)
	}
}

type server struct {
	Config
	responder
}

// responder writes answers and errors, and refuses requests.
type responder struct {
	translate Translate
	mounts    map[string]Mount
	refused   func(reason string)
}

// refuseBody refuses a body where nothing would be done with it. An empty object, which clients
// send out of habit, says nothing.
func refuseBody(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	body, err := httpread.Body(w, r, httpread.MaxBody)
	if err != nil {
		return err
	}
	if said := strings.Join(strings.Fields(string(body)), ""); said != "" && said != "{}" {
		return regie.Errorf(regie.CodeBadRequest, "%s %s takes no body", r.Method, r.URL.Path)
	}
	return nil
}

// decodeBody reads a strict JSON body: unknown, duplicate and case-variant keys are refused (spec
// 11.3).
func decodeBody(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := httpread.Body(w, r, httpread.MaxBody)
	if err != nil {
		return err
	}
	return decodeStrict(body, into)
}

// decodeStrict reads JSON as decode does, and says what is wrong without the names of our types.
func decodeStrict(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return regie.Errorf(regie.CodeBadRequest,
			"the request has no body: send a JSON object, at least {}")
	}
	if err := jsonv2.Unmarshal(body, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		return explainMisfit(err)
	}
	return nil
}

// explainMisfit says what is wrong with a body in our own words: those of the decoder name types of
// this program.
func explainMisfit(err error) error {
	if semantic, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		at := cmp.Or(string(semantic.JSONPointer), "/")
		var own *regie.Error
		switch {
		case errors.Is(err, jsonv2.ErrUnknownName):
			return regie.Errorf(regie.CodeBadRequest, "the request is not valid at %s: unknown key", at)
		case errors.As(semantic.Err, &own):
			return regie.Errorf(regie.CodeBadRequest, "the request is not valid at %s: %v", at, own)
		case semantic.JSONPointer == "" && semantic.Err == nil:
			return regie.Errorf(regie.CodeBadRequest, "the request is not valid: an object is expected")
		}
		return regie.Errorf(regie.CodeBadRequest, "the request is not valid at %s: wrong type", at)
	}
	syntax, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && ok:
		return regie.Errorf(regie.CodeBadRequest, "the request is not valid at %s: the key is repeated",
			cmp.Or(string(syntax.JSONPointer), "/"))
	case ok:
		return regie.Errorf(regie.CodeBadRequest, "the request is not JSON from byte %d on", syntax.ByteOffset)
	}
	return regie.Errorf(regie.CodeBadRequest, "the request is not JSON")
}

func (s *responder) writeAnswer(w http.ResponseWriter, r *http.Request, status int, body any, err error) {
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	said, err := json.Marshal(body)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	s.writeJSON(w, status, append(said, '\n'))
}

// writeJSON answers with what is JSON already.
func (s *responder) writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // it is one person's, and of this moment
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone if this fails
}

// problem is the body of an error (RFC 9457), with the stable code (spec 10.2).
type problem struct {
	Type   string     `json:"type"`
	Title  string     `json:"title"`
	Status int        `json:"status"`
	Code   regie.Code `json:"code"`
	Detail string     `json:"detail"`
}

// describeProblem says an error in the language of who asked.
func (s *responder) describeProblem(language string, err error) problem {
	code := regie.CodeOf(err)
	return problem{
		Type: "about:blank", Title: http.StatusText(httpread.Status(code)), Status: httpread.Status(code), Code: code,
		Detail: s.translate(language, err),
	}
}

func (s *responder) writeError(w http.ResponseWriter, r *http.Request, err error) {
	p := s.describeProblem(r.Header.Get("Accept-Language"), err)
	if p.Status == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "5")
	}
	leaveBody(w, r)
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// refuseRequest answers a request that is not let in, and counts it. Clients of another interface
// read its form of an error.
func (s *responder) refuseRequest(w http.ResponseWriter, r *http.Request, reason string, err error) {
	if s.refused != nil {
		s.refused(reason)
	}
	if mount, ok := mountOf(s.mounts, r.URL.Path); ok && mount.Refuse != nil {
		leaveBody(w, r)
		mount.Refuse(w, r, err)
		return
	}
	s.writeError(w, r, err)
}
