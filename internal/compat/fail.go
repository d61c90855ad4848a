package compat

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// The types of OpenAI's errors.
const (
	kindInvalid = "invalid_request_error"
	kindServer  = "server_error"
	kindQuota   = "insufficient_quota"
)

// problem is an error with what OpenAI's clients branch on.
type problem struct {
	status int // zero: that of the code
	kind   string
	code   string // empty: that of the error
	param  string
	err    error
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

// describe makes an error of an API's words, and its status.
func (s *server) describe(r *http.Request, err error) (wireError, int) {
	var p *problem
	if !errors.As(err, &p) {
		p = &problem{err: err}
	}
	code := provider.CodeOf(p.err)
	status := p.status
	if status == 0 && s.Status != nil {
		status = s.Status(code)
	}
	if status == 0 {
		status = http.StatusInternalServerError
		if code == regie.CodeBadRequest || code == regie.CodeBadID {
			status = http.StatusBadRequest
		}
	}
	kind := p.kind
	if kind == "" {
		switch {
		case code == regie.CodeOverBudget || code == regie.CodePriceUnknown || code == regie.CodeProviderQuota:
			kind, status = kindQuota, http.StatusTooManyRequests
		case status < http.StatusInternalServerError:
			kind = kindInvalid
		default:
			kind = kindServer
		}
	}
	out := wireError{Message: p.err.Error(), Type: kind}
	if s.Translate != nil {
		out.Message = s.Translate(language(r), p.err)
	}
	if p.param != "" {
		out.Param = &p.param
	}
	word := cmp.Or(p.code, string(code))
	out.Code = &word
	return out, status
}

// fail answers with an error.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	out, status := s.describe(r, err)
	w.Header().Set("Content-Type", "application/json")
	// What is refused for good, or was begun, is not to be asked again by a client's own retries: that would begin it once more.
	again := "false"
	if code := provider.CodeOf(err); code == regie.CodeEngineGone || code == regie.CodeDatabaseLocked || code == regie.CodeDatabaseDown {
		again = "true"
	}
	w.Header().Set("X-Should-Retry", again)
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(map[string]any{"error": out}) // the client has gone
}

// language is the first one that a request asks for.
func language(r *http.Request) string {
	tag, _, _ := strings.Cut(r.Header.Get("Accept-Language"), ",")
	tag, _, _ = strings.Cut(tag, ";")
	tag, _, _ = strings.Cut(strings.TrimSpace(tag), "-")
	return strings.ToLower(tag)
}
