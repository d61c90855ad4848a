package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// base is where the interface lives (spec 10.2).
const base = "/api/v1"

// none is what an operation does not have: parameters, a body, an answer.
type none struct{}

// operation is one method of one path: the row that serves it, and that the OpenAPI document is made of.
type operation struct {
	method, path string // the path below base
	id, tag      string
	summary      string
	status       int // of success
	// query, in and out are the types of its parameters, its body and its answer; none for no such thing.
	query, in, out reflect.Type
	streams        bool // answers with server-sent events
	serve          http.HandlerFunc
}

// request is what an operation is asked.
type request[Q, B any] struct {
	// ID is the {id} of the address, zero where that has none.
	ID    regie.ID
	Query Q
	Body  B
	// Key is the Idempotency-Key: the same one again finds what the first one did.
	Key string
}

// op makes an operation of a function. Its id is a verb and a noun, as in the words of chapter 1.
func op[Q, B, A any](s *server, method, path, id, summary string, status int, do func(context.Context, *request[Q, B]) (A, error)) operation {
	out := described[Q, B, A](method, path, id, summary, status)
	out.serve = func(w http.ResponseWriter, r *http.Request) {
		var answer A
		in, err := read[Q, B](w, r, out.in != reflect.TypeFor[none]())
		if err == nil {
			if in.Key != "" {
				in.Key = id + " " + r.PathValue("id") + " " + in.Key // the key of another operation, or of another thing, is another key
			}
			answer, err = do(r.Context(), in)
		}
		s.answer(w, r, status, answer, err)
	}
	return out
}

// described is an operation that is not served yet.
func described[Q, B, A any](method, path, id, summary string, status int) operation {
	tag, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return operation{
		method: method, path: path, id: id, tag: tag, summary: summary, status: status,
		query: reflect.TypeFor[Q](), in: reflect.TypeFor[B](), out: reflect.TypeFor[A](),
	}
}

// read reads all that a request says; what it says beyond that is refused (spec 11.3).
func read[Q, B any](w http.ResponseWriter, r *http.Request, hasBody bool) (*request[Q, B], error) {
	in := &request[Q, B]{}
	var err error
	if id := r.PathValue("id"); id != "" {
		if in.ID, err = regie.ParseID(id); err != nil {
			return nil, err
		}
	}
	if err := bind(r.URL.Query(), &in.Query); err != nil {
		return nil, err
	}
	if in.Key, err = idempotencyKey(r); err != nil {
		return nil, err
	}
	if hasBody {
		err = decode(w, r, &in.Body)
	}
	return in, err
}

// maxKey bounds an Idempotency-Key.
const maxKey = 200

func idempotencyKey(r *http.Request) (string, error) {
	keys := r.Header.Values("Idempotency-Key")
	if len(keys) == 0 {
		return "", nil
	}
	key := strings.TrimSpace(keys[0])
	bad := func(c rune) bool { return c < ' ' || c > '~' }
	if len(keys) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, bad) {
		return "", regie.Errorf(regie.CodeBadRequest, "an Idempotency-Key is one line of 1 to %d plain characters", maxKey)
	}
	return key, nil
}

// addressed settles which thing a request is about that its address names; a body may name it too, and no other.
func addressed(address regie.ID, named *regie.ID) error {
	if !named.IsZero() && *named != address {
		return regie.Errorf(regie.CodeBadRequest, "the request is about another thing than its address")
	}
	*named = address
	return nil
}

// missing answers what is at no address, or not by that method.
func (s *server) missing(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) > 0 && !slices.Contains(allowed, r.Method) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			s.failAs(w, r, http.StatusMethodNotAllowed, regie.Errorf(regie.CodeNotFound, "%s is not a method of %s: use %s", r.Method, r.URL.Path, strings.Join(allowed, ", ")))
			return
		}
		s.fail(w, r, regie.Errorf(regie.CodeNotFound, "there is nothing at %s %s", r.Method, r.URL.Path))
	}
}
