package compat

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/provider"
)

// problem is an error with what clients branch on.
type problem struct {
	status int    // zero: that of the error's code
	code   string // empty: that of the error
	param  string
	// begun says that the work was begun all the same: a stored message is answered when the
	// engine is back, and a passed-on request may be charged. A repetition would do it once more.
	begun bool
	err   error
}

// Error implements error.
func (p *problem) Error() string { return p.err.Error() }

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.err }

// badParameter is a parameter that cannot be as it is.
func badParameter(param, format string, args ...any) error {
	return &problem{param: param, err: regie.Errorf(regie.CodeBadRequest, format, args...)}
}

// problemOf returns an error as a problem that its caller may change.
func problemOf(err error) *problem {
	if p, is := errors.AsType[*problem](err); is {
		own := *p
		return &own
	}
	return &problem{err: err}
}

// markBegun marks an error of work that was begun. Where the error passes, the same request finds
// its work by its key, or its results.
func markBegun(sent *submitted, err error) error {
	p := problemOf(err)
	p.begun = !isTemporary(regie.CodeOf(err)) || !sent.keyed && !sent.results
	return p
}

// wireError is an error in the words of the APIs.
type wireError struct {
	message, code, param string
	of                   regie.Code
	status               int
}

// wireErrorOf makes an error of an API's words.
func (s *server) wireErrorOf(r *http.Request, err error) wireError {
	p := problemOf(err)
	code := provider.CodeOf(p.err)
	out := wireError{
		message: p.err.Error(), code: cmp.Or(p.code, string(code)), param: p.param,
		of: code, status: cmp.Or(p.status, httpread.Status(code)),
	}
	if s.Translate != nil {
		out.message = s.Translate(r.Header.Get("Accept-Language"), p.err)
	}
	return out
}

// openAI returns an error as OpenAI's clients read it, and its status.
func (e *wireError) openAI() (out map[string]any, status int) {
	kind, status := "server_error", e.status
	switch {
	case e.of == regie.CodeOverBudget || e.of == regie.CodePriceUnknown || e.of == regie.CodeProviderQuota:
		kind, status = "insufficient_quota", http.StatusTooManyRequests
	case e.of == regie.CodeTooManyRequests:
		kind = "rate_limit_error"
	case status < http.StatusInternalServerError && e.of != regie.CodeStopRequested:
		kind = "invalid_request_error"
	}
	out = map[string]any{"message": e.message, "type": kind, "param": nil, "code": e.code}
	if e.param != "" {
		out["param"] = e.param
	}
	return out, status
}

// errorTypes are the types of Anthropic's errors, by their status.
var errorTypes = map[int]string{
	http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error",
	http.StatusForbidden: "permission_error", http.StatusNotFound: "not_found_error",
	http.StatusConflict: "conflict_error", http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests: "rate_limit_error", http.StatusRequestTimeout: "timeout_error",
	http.StatusGatewayTimeout: "timeout_error", http.StatusServiceUnavailable: "overloaded_error",
}

// toAnthropic returns an error as Anthropic's clients read it. Our own code and the parameter stand
// in its details.
func (e *wireError) toAnthropic() map[string]any {
	kind := "invalid_request_error"
	if e.status >= http.StatusInternalServerError {
		kind = "api_error"
	}
	details := map[string]any{"error_code": e.code}
	if e.param != "" {
		details["param"] = e.param
	}
	return map[string]any{"type": "error", "error": map[string]any{
		"type":    cmp.Or(errorTypes[e.status], kind),
		"message": e.message, "details": details,
	}}
}

// toEvent returns the event that ends a stream of an API with an error.
func (e *wireError) toEvent(api string) []byte {
	problem, _ := e.openAI()
	switch api {
	case APIMessages:
		return eventOf("error", e.toAnthropic())
	case APIResponses:
		return eventOf("error", map[string]any{
			"type": "error", "code": e.code, "message": e.message, "param": problem["param"],
		})
	}
	return eventOf("", map[string]any{"error": problem})
}

// speaksMessages reports whether a request is one of an Anthropic client, which reads errors and
// lists in its own form: by its path, and by its header where the path is one that OpenAI's clients
// ask for too.
func speaksMessages(r *http.Request) bool {
	path := r.URL.Path
	if strings.HasPrefix(path, "/v1/chat/") || strings.HasPrefix(path, "/v1/responses") {
		return false
	}
	return r.Header.Get("Anthropic-Version") != "" || path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/")
}

// isTemporary reports whether an error says nothing of the request: the same one may succeed in a
// moment, or may have.
func isTemporary(code regie.Code) bool {
	return code == regie.CodeEngineGone || code == regie.CodeDatabaseLocked || code == regie.CodeDatabaseDown
}

// writeError answers with an error in the form of the client's API. X-Should-Retry stops clients
// from retrying a final refusal or a request after its work began.
func (s *server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	cut := errors.Is(err, context.Canceled) // its work may have begun
	if cause := context.Cause(r.Context()); cut && cause != nil {
		err = cause
	}
	why := s.wireErrorOf(r, err)
	wire, status := why.openAI()
	out := map[string]any{"error": wire}
	if speaksMessages(r) {
		out, status = why.toAnthropic(), why.status
	}
	code := provider.CodeOf(err)
	retry := !cut && !problemOf(err).begun &&
		(isTemporary(code) || code == regie.CodeTooManyRequests || code == regie.CodeKeyInUse)
	w.Header().Set("X-Should-Retry", strconv.FormatBool(retry))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writeJSON(w, out)
}
