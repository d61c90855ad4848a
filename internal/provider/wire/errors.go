package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/sse"
)

// Truncated is the error of a stream that ended before its terminal marker (spec 12.6, trap 1).
func Truncated() *provider.Error {
	return (&provider.Error{Code: regie.CodeTruncatedStream, Retryable: true}).
		Tell(regie.Say("the model's stream ended before the reply was whole"))
}

// Broken is the error of a stream that does not keep to its format.
func Broken(format string, args ...any) *provider.Error {
	return &provider.Error{
		Code: regie.CodeBadReply, Retryable: true,
		Message: Clip(Safe(fmt.Sprintf(format, args...)), 500),
	}
}

// MaxEvent bounds one event of a stream, in bytes (spec 11.3).
const MaxEvent = 8 << 20

// failed names a transport error; begun says that the answer had begun.
func (s *Server) failed(ctx, inner context.Context, err error, begun bool) error {
	var slow net.Error
	switch {
	case ctx.Err() != nil:
		return &provider.Cut{Err: context.Cause(ctx)}
	case errors.Is(context.Cause(inner), errSilent), strings.Contains(err.Error(), "timeout awaiting response headers"):
		return (&provider.Error{Code: regie.CodeTimeout, Retryable: true, Err: err}).
			Tell(regie.Say("the model sent nothing for %s", s.cfg.Idle.String()))
	case errors.Is(err, sse.ErrTooLong):
		return (&provider.Error{Code: regie.CodeReplyTooLarge, Err: err}).
			Tell(regie.Say("the model's server sent an event longer than 8 MiB"))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if begun {
			return Truncated()
		}
	case !begun && offline(err):
		said := regie.Say("the model's server %s cannot be reached: %s", s.cfg.Address, reason(err))
		switch {
		case s.local && errors.Is(err, syscall.ECONNREFUSED): // what else goes wrong there is no reason to start it
			said = regie.SayOf("%s: %s", regie.Say("nothing answers at %s", s.cfg.Address), s.cfg.NotRunning)
		case errors.As(err, &slow) && slow.Timeout():
			said = regie.Say("the model's server %s cannot be reached: it does not answer", s.cfg.Address)
		}
		return (&provider.Error{Code: regie.CodeProviderOffline, Retryable: true, Offline: true, Err: err}).Tell(said)
	}
	return (&provider.Error{Code: regie.CodeProviderBroken, Retryable: true, Err: err}).
		Tell(regie.Say("the connection to the model broke: %s", reason(err)))
}

// offline reports whether the request was certainly not sent (decision 42).
func offline(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" ||
		strings.Contains(err.Error(), "TLS handshake") ||
		strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "x509: ") ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// reason drops the method and address that net/http puts before its errors.
func reason(err error) string {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return Clip(Safe(err.Error()), 300)
}

// refused reads an HTTP error (spec 3.6, 12.6 trap 7).
func (s *Server) refused(status int, header http.Header, body io.Reader) *provider.Error {
	data, _ := io.ReadAll(io.LimitReader(body, 64<<10)) // what came is enough for a message
	said, kind := VendorWords(s.hide(data))
	e := &provider.Error{Status: status, RetryAfter: RetryAfter(header)}
	answer := strconv.Itoa(status)
	told := regie.Say("the model's server answered %s", answer)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Code, told = regie.CodeProviderAuth, regie.Say("the model's server answered %s: check the API key", answer)
	case status == http.StatusPaymentRequired, status == http.StatusTooManyRequests && kind == "insufficient_quota":
		e.Code, told = regie.CodeProviderQuota,
			regie.Say("the model's server answered %s: the account has no credit left", answer)
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		e.Code, e.Retryable = regie.CodeProviderBusy, true
	case tooLong(status, kind, said):
		e.Code, told = regie.CodeContextTooLarge,
			regie.Say("the model's server answered %s: the prompt is larger than the model's window", answer)
	case status >= 300 && status < 400:
		e.Code, e.Misplaced = regie.CodeProviderRejected, true
		told = regie.Say("the model's server answered %s: redirects are not followed; check the address",
			answer)
	default:
		e.Code = regie.CodeProviderRejected
		e.Misplaced = status == http.StatusNotFound || status == http.StatusMethodNotAllowed ||
			status == http.StatusGone
		if status == http.StatusNotFound && s.cfg.API != "Ollama" { // which says it in its own words
			told = regie.Say(
				"the model's server answered %s: is it the model's name, or the address? regie models shows both", answer)
		}
	}
	if said != "" {
		told = regie.SayOf("%s: %s", told, regie.Verbatim(said))
	}
	_ = e.Tell(told)
	s.judge(e, kind, said, data)
	return e
}

// judge applies the vendor's own rules to an error.
func (s *Server) judge(e *provider.Error, kind, said string, body []byte) {
	if s.cfg.Judge != nil {
		s.cfg.Judge(e, kind, said)
	}
	if s.cfg.Details != nil {
		s.cfg.Details(e, body)
	}
}

// InBand returns the error that the server sent instead of the rest of a stream; data has the form
// of an error body.
func (s *Server) InBand(data []byte) *provider.Error {
	said, kind := VendorWords(s.hide(data))
	e := (&provider.Error{Code: regie.CodeProviderBusy, Retryable: true}).
		Tell(regie.Say("the model's server reported an error: %s", said))
	switch {
	case kind == "insufficient_quota":
		e.Code, e.Retryable = regie.CodeProviderQuota, false
	case tooLong(0, kind, said):
		e.Code, e.Retryable = regie.CodeContextTooLarge, false
	}
	s.judge(e, kind, said, data)
	// after the rules that take a status as the answer's own
	if e.Code == regie.CodeProviderBusy && e.Status == 0 && overloaded(kind) {
		e.Status = http.StatusServiceUnavailable
	}
	return e
}

// overloaded reports whether a vendor's kind of error says that its server has too much to do.
func overloaded(kind string) bool {
	switch kind {
	case "overloaded_error", "server_is_overloaded", "UNAVAILABLE", "503", "529":
		return true
	default:
		return false
	}
}

// notAStream reads an answer with status 200 that is no stream: a proxy's page, or an error.
func (s *Server) notAStream(kind string, body io.Reader) *provider.Error {
	data, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	said, _ := VendorWords(s.hide(data))
	told := regie.Say("%s is not a %s server: it answered %s, which is not how that API streams", s.cfg.Address,
		s.cfg.API, Clip(OneLine(kind), 60))
	if said != "" {
		told = regie.SayOf("%s: %s", told, regie.Verbatim(Clip(said, 120)))
	}
	return (&provider.Error{Code: regie.CodeProviderRejected, Misplaced: true}).Tell(told)
}

// tooLong reports whether a request was refused as too large for the model's window: vendors and
// local servers share no code for that.
func tooLong(status int, kind, said string) bool {
	if status == http.StatusRequestEntityTooLarge || kind == "context_length_exceeded" ||
		kind == "exceed_context_size_error" {
		return true
	}
	said = strings.ToLower(said)
	for _, words := range []string{
		"maximum context length", "context length exceeded", "context window", "context size", "prompt is too long",
		"too many tokens", "exceeds the maximum number of tokens", "greater than the context length",
		"exceeds the context length", "split into more batches",
	} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}

// said is an error body; some vendors put its members at the top, some below "error".
type said struct {
	Message json.RawMessage `json:"message"`
	Type    string          `json:"type"`
	Code    any             `json:"code"`
	Status  string          `json:"status"` // Gemini's word for the type
	// Metadata is what OpenRouter hands on of the provider behind it.
	Metadata struct {
		Provider string          `json:"provider_name"`
		Raw      json.RawMessage `json:"raw"`
		Reasons  []string        `json:"reasons"`
	} `json:"metadata"`
}

// VendorWords returns the vendor's message and kind of error from an error body. A numeric kind
// counts only if there is no other.
func VendorWords(data []byte) (message, kind string) { return vendorWords(data, 0) }

func vendorWords(data []byte, depth int) (message, kind string) {
	var body struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
		said
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil && len(list) > 0 { // Gemini's way where it does not stream
		data = list[0]
	}
	if depth > 3 || json.Unmarshal(data, &body) != nil {
		return Clip(OneLine(string(data)), 300), ""
	}
	inner := body.said
	if len(body.Error) > 0 && body.Error[0] == '{' {
		inner = said{}
	}
	switch {
	case len(body.Error) == 0:
		message = text(inner.Message)
	case body.Error[0] == '{' && json.Unmarshal(body.Error, &inner) == nil:
		message = text(inner.Message)
	default:
		message = text(body.Error)
	}
	inner.Type = cmp.Or(inner.Type, inner.Status)
	switch code := inner.Code.(type) {
	case string:
		if _, err := strconv.Atoi(code); err != nil && code != "" {
			inner.Type = code
		} else if inner.Type == "" {
			inner.Type = code
		}
	case float64:
		if inner.Type == "" {
			inner.Type = strconv.Itoa(int(code))
		}
	}
	if message == "" {
		message = cmp.Or(text(body.Message), text(body.Detail), string(data))
	}
	if behind := inner.Metadata; len(behind.Raw) > 0 || len(behind.Reasons) > 0 {
		if raw := text(behind.Raw); raw != "" {
			words, _ := vendorWords([]byte(raw), depth+1)
			behind.Reasons = append(behind.Reasons, words)
		}
		message += " (" + strings.TrimPrefix(behind.Provider+": ", ": ") + strings.Join(behind.Reasons, "; ") + ")"
	}
	return Clip(OneLine(message), 300), inner.Type
}

// text returns the text of a JSON string, and other values as JSON.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil || string(raw) == "null" {
		return s
	}
	return string(raw)
}

// maxWish bounds a vendor's Retry-After: a longer one is taken for a mistake, and the retry comes
// after a day.
const maxWish = 24 * time.Hour

// Wish bounds a vendor's Retry-After to zero and a day.
func Wish(d time.Duration) time.Duration { return min(max(0, d), maxWish) }

// RetryAfter returns the Retry-After of the vendor: seconds, or an HTTP date; 0 if absent.
func RetryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); seconds > 0 && (err == nil || errors.Is(err, strconv.ErrRange)) {
		return Wish(time.Duration(min(seconds, maxWish.Seconds()) * float64(time.Second)))
	}
	if at, err := http.ParseTime(value); err == nil {
		return Wish(time.Until(at))
	}
	return 0
}

// OneLine makes a message that cannot move a terminal's cursor.
func OneLine(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, Safe(s))), " ")
}

// Safe makes text that every store and every API takes: valid UTF-8 without NUL.
func Safe(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Clip cuts a text to n bytes.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
