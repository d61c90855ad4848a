package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// maxBody bounds a request's body (spec 11.3).
const maxBody = 16 << 20

// Translate renders an error's sentence in a language ("fr", "en").
type Translate func(language string, err error) string

// Config is what is served. Control and Translate are required.
type Config struct {
	Control   dispatch.Control
	Translate Translate
	// Version is that of the program.
	Version string
	// Ready says what is right and wrong with the server; nil: all is right.
	Ready func(context.Context) []Check
	// Metrics answers /metrics; nil: there are none. Open is told when a stream opens, by 1, and when it ends, by -1; it may be nil.
	Metrics http.Handler
	Open    func(n int)
	// Base is as long as the server is there, and Going counts the streams that net/http does not know; nil: it knows them all.
	Base  context.Context //nolint:containedctx // the server's own
	Going *sync.WaitGroup
	// Mounts are served beside this interface, by patterns of net/http.
	Mounts map[string]http.Handler
}

// Check is one thing that a server needs. Problem is empty where it is right.
type Check struct {
	Name    string `json:"name"`
	Problem string `json:"problem,omitempty"`
}

// Handler serves a Control: what spec 10.2 has below /api/v1, and what it has beside that.
func Handler(c Config) http.Handler {
	s := &server{c}
	mux := http.NewServeMux()
	s.about(mux)
	for pattern, handler := range c.Mounts {
		mux.Handle(pattern, handler)
	}
	for _, o := range s.operations() {
		mux.HandleFunc(o.method+" "+base+o.path, o.serve)
	}
	mux.HandleFunc("/", s.missing(mux))
	return mux
}

type server struct{ Config }

// decode reads a strict JSON body: unknown, duplicate and case-variant keys are refused (spec 11.3).
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return regie.Errorf(regie.CodeBadRequest, "the request is larger than %d bytes", maxBody)
	case err != nil:
		return regie.Errorf(regie.CodeBadRequest, "the request could not be read: %v", err)
	}
	err = jsonv2.Unmarshal(body, into, jsonv2.RejectUnknownMembers(true))
	if semantic, ok := errors.AsType[*jsonv2.SemanticError](err); ok && semantic.JSONPointer != "" { // without the names of our types
		why := "another type is expected"
		if semantic.Err != nil {
			why = semantic.Err.Error()
		}
		return regie.Errorf(regie.CodeBadRequest, "the request does not fit at %s: %s", string(semantic.JSONPointer), why)
	}
	if err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the request is not what is expected here: %v", err)
	}
	return nil
}

func (s *server) answer(w http.ResponseWriter, r *http.Request, status int, body any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone if this fails
}

// problem is the body of an error (RFC 9457), with the stable code (spec 10.2).
type problem struct {
	Type   string     `json:"type"`
	Title  string     `json:"title"`
	Status int        `json:"status"`
	Code   regie.Code `json:"code"`
	Detail string     `json:"detail"`
}

// problem says an error in the language of who asked.
func (s *server) problem(language string, err error) problem {
	code := regie.CodeOf(err)
	return problem{
		Type: "about:blank", Title: http.StatusText(Status(code)), Status: Status(code), Code: code, Detail: s.Translate(language, err),
	}
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.failAs(w, r, Status(regie.CodeOf(err)), err)
}

func (s *server) failAs(w http.ResponseWriter, r *http.Request, status int, err error) {
	p := s.problem(r.Header.Get("Accept-Language"), err)
	p.Status, p.Title = status, http.StatusText(status)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
