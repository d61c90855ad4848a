package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/store"
)

// base is where the interface lives (spec 10.2).
const base = "/api/v1"

// none is what an operation does not have: parameters, a body, an answer.
type none struct{}

// operation is one method of one path: the row that serves it, and that the OpenAPI document is
// made of.
type operation struct {
	method, path string // the path below base
	id, tag      string
	summary      string
	status       int // of success
	// query, in and out are the types of its parameters, its body and its answer; none for no such
	// thing.
	query, in, out reflect.Type
	streams        bool             // answers with server-sent events
	scope          regie.TokenScope // what a token needs for it (scopeOf)
	serve          http.HandlerFunc
}

// request is the input of an operation.
type request[Q, B any] struct {
	// ID is the {id} of the address, zero where that has none.
	ID regie.ID
	// Name is the {name} of the address, empty where that has none.
	Name  string
	Query Q
	Body  B
	// Key is the Idempotency-Key: the same one again is answered as the first one was, and does
	// nothing.
	Key string
}

// newOperation makes an operation of a function. Its id is a verb and a noun, as in the words of
// chapter 1.
func newOperation[Q, B, A any](s *server, method, path, id, summary string, status int,
	do func(context.Context, *request[Q, B]) (A, error),
) operation {
	out := describeOperation[Q, B, A](method, path, id, summary, status)
	out.serve = func(w http.ResponseWriter, r *http.Request) {
		in, err := readRequest[Q, B](w, r, out.in != reflect.TypeFor[none]())
		if err != nil {
			s.writeError(w, r, err)
			return
		}
		serveWrite(s, w, r, &out, in, do)
	}
	return out
}

// describeOperation returns an operation that is not served yet.
func describeOperation[Q, B, A any](method, path, id, summary string, status int) operation {
	tag, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return operation{
		method: method, path: path, id: id, tag: tag, summary: summary, status: status,
		query: reflect.TypeFor[Q](), in: reflect.TypeFor[B](), out: reflect.TypeFor[A](),
	}
}

// readRequest reads all that a request says; what it says beyond that is refused (spec 11.3).
func readRequest[Q, B any](w http.ResponseWriter, r *http.Request, hasBody bool) (*request[Q, B], error) {
	in := &request[Q, B]{Name: r.PathValue("name")}
	var err error
	if id := r.PathValue("id"); id != "" {
		if in.ID, err = regie.ParseID(id); err != nil {
			return nil, err
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // what cannot be read would be as what was not said
		return nil, regie.Errorf(regie.CodeBadRequest,
			"the parameters of the address cannot be read: write them as name=value, with & between them")
	}
	if err := httpread.Bind(query, &in.Query); err != nil {
		return nil, err
	}
	if in.Key, err = store.IdempotencyKey(r.Header.Values("Idempotency-Key")); err != nil {
		return nil, err
	}
	if !hasBody {
		return in, refuseBody(w, r)
	}
	if err := decodeBody(w, r, &in.Body); err != nil {
		return nil, err
	}
	return in, checkRequired(reflect.ValueOf(in.Body))
}

// checkRequired returns CodeBadRequest for a body without a member that has the tag
// required:"true", or with an empty one: "", 0, null. Only it and the OpenAPI document read the
// tag, so that the document matches what is refused.
func checkRequired(body reflect.Value) error {
	switch body.Kind() {
	case reflect.Pointer:
		if !body.IsNil() {
			return checkRequired(body.Elem())
		}
	case reflect.Slice:
		for _, item := range body.Seq2() {
			if err := checkRequired(item); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for field, value := range body.Fields() {
			if field.Tag.Get("required") == "true" && value.IsZero() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				return regie.Errorf(regie.CodeBadRequest,
					"the request needs %s: see /docs", name)
			}
			if err := checkRequired(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// newAddressed makes an operation about the one thing that its address names; a body may name it
// too, and no other. named is where it does, and takes the key of the request.
func newAddressed[B, A any](s *server, method, path, id, summary string, named func(body *B, key string) *regie.ID,
	do func(context.Context, B) (A, error),
) operation {
	return newOperation(s, method, path, id, summary, http.StatusOK,
		func(ctx context.Context, in *request[none, B]) (out A, err error) {
			at := named(&in.Body, in.Key)
			if !at.IsZero() && *at != in.ID {
				return out, regie.Errorf(regie.CodeBadRequest, "the request's body and address name different things")
			}
			*at = in.ID
			return do(ctx, in.Body)
		})
}

// serveMissing answers what is at no address, or not by that method.
func (s *server) serveMissing(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{
			http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch,
			http.MethodPost, http.MethodPut,
		} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) > 0 && !slices.Contains(allowed, r.Method) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			s.writeError(w, r, regie.Errorf(regie.CodeNoMethod, "%s is not a method of %s: use %s", r.Method,
				r.URL.Path,
				strings.Join(allowed, ", ")))
			return
		}
		s.writeError(w, r, regie.Errorf(regie.CodeNotFound, "there is nothing at %s %s", r.Method, r.URL.Path))
	}
}
