package compat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/provider"
)

// The types of OpenAI's errors.
const (
	kindInvalid = "invalid_request_error"
	kindServer  = "server_error"
	kindQuota   = "insufficient_quota"
	kindRate    = "rate_limit_error"
)

// problem is an error with what OpenAI's clients branch on.
type problem struct {
	status int // zero: that of the code
	kind   string
	code   string // empty: that of the error
	param  string
	// again says that the same request with its key does it once more: nothing came of it.
	again bool
	err   error
}

// Error implements error.
func (p *problem) Error() string { return p.err.Error() }

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.err }

// refused is a parameter that cannot be as it is.
func refused(param, format string, args ...any) error {
	return &problem{kind: kindInvalid, param: param, err: regie.Errorf(regie.CodeBadRequest, format, args...)}
}

// wireError is an error as OpenAI's clients read it.
type wireError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// begun is an error of work that was begun all the same: a message that is stored is answered when
// the engine is back, and what was passed on may be charged. Asked again, it would be done once
// more.
type begun struct{ error }

// Unwrap returns the cause.
func (b begun) Unwrap() error { return b.error }

// told is an error as it is told, whichever format its reader reads.
type told struct {
	message, code, param string
	kind                 string // of OpenAI's, where it is certain
	of                   regie.Code
	status               int
}

// ended reports whether a request ends because its caller's token has: who asked is still there to
// be told.
func ended(r *http.Request) bool { return errors.Is(context.Cause(r.Context()), access.ErrEnded) }

// left reports whether who asked has gone. A server that stops has a cause of its own.
func left(r *http.Request) bool { return errors.Is(context.Cause(r.Context()), context.Canceled) }

// tell makes an error of an API's words. Where a token has ended, all that fails does so for that.
func (s *server) tell(r *http.Request, err error) told {
	if ended(r) {
		err = access.ErrEnded
	}
	if work, is := errors.AsType[begun](err); is {
		err = work.error
	}
	var p *problem
	if !errors.As(err, &p) {
		p = &problem{err: err}
	}
	code := provider.CodeOf(p.err)
	out := told{
		message: p.err.Error(), code: cmp.Or(p.code, string(code)), param: p.param,
		kind: p.kind, of: code, status: p.status,
	}
	if s.Translate != nil {
		out.message = s.Translate(language(r), p.err)
	}
	if out.status == 0 && s.Status != nil {
		out.status = s.Status(code)
	}
	if out.status == 0 {
		out.status = cmp.Or(httpread.Status(code), http.StatusInternalServerError)
	}
	return out
}

// openAI is an error as OpenAI's clients read it, and its status.
func (t *told) openAI() (wireError, int) {
	kind, status := t.kind, t.status
	if kind == "" {
		switch {
		case t.of == regie.CodeOverBudget || t.of == regie.CodePriceUnknown || t.of == regie.CodeProviderQuota:
			kind, status = kindQuota, http.StatusTooManyRequests
		case t.of == regie.CodeTooManyRequests:
			kind = kindRate
		case status < http.StatusInternalServerError:
			kind = kindInvalid
		default:
			kind = kindServer
		}
	}
	out := wireError{Message: t.message, Type: kind, Code: &t.code}
	if t.param != "" {
		out.Param = &t.param
	}
	return out, status
}

// passes reports whether an error says nothing of the request: the same one may succeed in a
// moment, or may have.
func passes(code regie.Code) bool {
	return code == regie.CodeEngineGone || code == regie.CodeDatabaseLocked || code == regie.CodeDatabaseDown
}

// retryAfter is how soon a provider is worth another try, in seconds: its own wish is in no log.
const retryAfter = "5"

// fail answers with an error, in the form that whoever asks reads.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	why := s.tell(r, err)
	wire, status := why.openAI()
	out := map[string]any{"error": wire}
	if speaksMessages(r) {
		out, status = why.anthropic(), why.status
	}
	w.Header().Set("Content-Type", "application/json")
	// What is refused for good, or was begun, is not to be asked again by a client's own retries:
	// that would begin it once more.
	again := "false"
	if code := provider.CodeOf(err); (passes(code) || code == regie.CodeTooManyRequests ||
		code == regie.CodeKeyInUse) && !errors.As(err, new(begun)) {
		again = "true"
	}
	if p, is := errors.AsType[*problem](err); is && p.again && !ended(r) {
		again = "true"
		w.Header().Set("Retry-After", retryAfter)
	}
	w.Header().Set("X-Should-Retry", again)
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(out) // the client has gone
}

// language is the first one that a request asks for.
func language(r *http.Request) string {
	tag, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	tag, _, _ = strings.Cut(tag, ";")
	tag, _, _ = strings.Cut(strings.TrimSpace(tag), "-")
	return strings.ToLower(tag)
}
