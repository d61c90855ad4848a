package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/sse"
)

// Send implements provider.Conversation.
func (c *conversation) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	p := c.provider
	stream, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body := c.request()
	request, err := http.NewRequestWithContext(stream, http.MethodPost, p.url, body)
	if err != nil {
		return nil, &provider.Error{Code: regie.CodeBadRequest, Message: "the request could not be made: " + err.Error(), Err: err}
	}
	request.ContentLength = body.Size()
	// An idle connection that the server has just closed is replaced without a word: nothing was sent on it.
	request.GetBody = func() (io.ReadCloser, error) { return c.request(), nil }
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	if p.cfg.APIKey != "" {
		request.Header.Set("Authorization", "Bearer "+p.cfg.APIKey)
	}
	started := time.Now()
	response, err := p.client.Do(request)
	if err != nil {
		return nil, p.failed(ctx, stream, err, nil)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, p.refused(response)
	}
	silence := time.AfterFunc(p.cfg.Idle, func() { cancel(errSilent) })
	defer silence.Stop()
	reading := &watched{in: response.Body, timer: silence, idle: p.cfg.Idle}
	if kind := response.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "text/event-stream") {
		return nil, p.notAStream(kind, reading)
	}
	return p.read(ctx, stream, reading, sink, started)
}

// read collects the reply until its terminal marker.
func (p *Provider) read(ctx, stream context.Context, body io.Reader, sink func(provider.Delta), started time.Time) (*provider.Reply, error) {
	c := collector{sink: sink}
	var first time.Duration
	events := sse.NewReader(body, maxEvent)
	for {
		event, err := events.Next()
		if err != nil {
			if errors.Is(err, io.EOF) && p.cfg.Quirks.NoDone && c.finish != "" {
				break
			}
			return nil, p.failed(ctx, stream, err, &c)
		}
		if string(event.Data) == "[DONE]" {
			break
		}
		if err := c.add(event.Data); err != nil {
			return nil, withPartial(err, &c)
		}
		if first == 0 && c.anything {
			first = time.Since(started)
		}
	}
	if c.finish == "" {
		return nil, withPartial(truncated(), &c)
	}
	reply, err := c.reply()
	if err != nil {
		return nil, withPartial(err, &c)
	}
	reply.FirstByte = first
	return reply, nil
}

var errSilent = errors.New("silent for too long")

// watched restarts the timer of silence with each read that brings bytes.
type watched struct {
	in    io.Reader
	timer *time.Timer
	idle  time.Duration
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	if n > 0 {
		w.timer.Reset(w.idle)
	}
	return n, err
}

func truncated() *provider.Error {
	return &provider.Error{Code: regie.CodeTruncatedStream, Retryable: true, Message: "the model's stream ended before the reply was whole"}
}

func broken(format string, args ...any) *provider.Error {
	return &provider.Error{Code: regie.CodeBadReply, Retryable: true, Message: clip(safe(fmt.Sprintf(format, args...)), 500)}
}

// withPartial keeps what had arrived, for the audit (decision 28).
func withPartial(err error, c *collector) error {
	var failed *provider.Error
	if !errors.As(err, &failed) || c == nil {
		return err
	}
	for i := range c.parts {
		if c.parts[i].kind == regie.PartText {
			failed.Partial += c.parts[i].text.String()
		}
	}
	failed.Partial = clip(safe(failed.Partial), 64<<10)
	failed.Usage = c.usage
	return failed
}

// failed names a transport error.
func (p *Provider) failed(ctx, stream context.Context, err error, c *collector) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(context.Cause(stream), errSilent), strings.Contains(err.Error(), "timeout awaiting response headers"):
		return withPartial(&provider.Error{
			Code: regie.CodeTimeout, Retryable: true, Message: fmt.Sprintf("the model sent nothing for %s", p.cfg.Idle), Err: err,
		}, c)
	case errors.Is(err, sse.ErrTooLong):
		return withPartial(&provider.Error{Code: regie.CodeReplyTooLarge, Message: "the model's server sent an event longer than 8 MiB", Err: err}, c)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if c != nil {
			return withPartial(truncated(), c)
		}
	case offline(err):
		message := "the model's server " + p.cfg.BaseURL + " cannot be reached: " + reason(err)
		if p.local {
			message = "nothing answers at " + p.cfg.BaseURL + ": start the model server there, or set REGIE_BASE_URL to where it runs"
		}
		return &provider.Error{Code: regie.CodeProviderOffline, Retryable: true, Offline: true, Message: message, Err: err}
	}
	return withPartial(&provider.Error{
		Code: regie.CodeProviderBroken, Retryable: true, Message: "the connection to the model broke: " + reason(err), Err: err,
	}, c)
}

// reason drops the method and address that net/http puts before its errors.
func reason(err error) string {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return clip(safe(err.Error()), 300)
}

// refused reads an HTTP error (spec 3.6, 12.6 trap 7).
func (p *Provider) refused(response *http.Response) *provider.Error {
	data, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // what came is enough for a message
	said, kind := vendorWords(data)
	status := response.StatusCode
	e := &provider.Error{Status: status, RetryAfter: retryAfter(response.Header)}
	message := fmt.Sprintf("the model's server answered %d", status)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Code, message = regie.CodeProviderAuth, message+": check the API key"
	case status == http.StatusTooManyRequests && kind == "insufficient_quota":
		e.Code, message = regie.CodeProviderQuota, message+": the account has no credit left"
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 500:
		e.Code, e.Retryable = regie.CodeProviderBusy, true
	case status == http.StatusBadRequest && kind == "tool_use_failed": // the model's own fault, not the request's
		e.Code, e.Retryable = regie.CodeBadReply, true
	case status >= 300 && status < 400:
		e.Code, message = regie.CodeProviderRejected, message+": it redirects, which is not followed; check the address"
	default:
		e.Code = regie.CodeProviderRejected
	}
	if said != "" {
		message += ": " + said
	}
	e.Message = message
	return e
}

// vendorWords finds the vendor's own message and type in an error body.
func vendorWords(data []byte) (message, kind string) {
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  any             `json:"detail"`
	}
	if json.Unmarshal(data, &body) != nil {
		return clip(oneLine(string(data)), 300), ""
	}
	var inner struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"`
	}
	var plain string
	switch {
	case json.Unmarshal(body.Error, &inner) == nil && inner.Message != "":
		message, kind = inner.Message, inner.Type
		if code, ok := inner.Code.(string); ok && code != "" {
			kind = code
		}
	case json.Unmarshal(body.Error, &plain) == nil && plain != "":
		message = plain
	case body.Message != "":
		message = body.Message
	case body.Detail != nil:
		message = fmt.Sprint(body.Detail)
	default:
		message = string(data)
	}
	return clip(oneLine(message), 300), kind
}

// oneLine makes a message that cannot move a terminal's cursor.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, safe(s))), " ")
}

func inBand(raw json.RawMessage) *provider.Error {
	message, kind := vendorWords([]byte(`{"error":` + string(raw) + `}`))
	e := &provider.Error{Code: regie.CodeProviderBusy, Retryable: true, Message: "the model's server reported an error: " + message}
	if kind == "insufficient_quota" {
		e.Code, e.Retryable = regie.CodeProviderQuota, false
	}
	return e
}

// notAStream reads an answer with status 200 that is no stream: a proxy's page, or an error.
func (p *Provider) notAStream(kind string, body io.Reader) *provider.Error {
	data, _ := io.ReadAll(io.LimitReader(body, 64<<10))
	said, _ := vendorWords(data)
	return &provider.Error{
		Code:    regie.CodeProviderRejected,
		Message: fmt.Sprintf("%s is no Chat Completions server: it answered %s in place of a stream (%s)", p.cfg.BaseURL, clip(oneLine(kind), 60), clip(said, 120)),
	}
}

// retryAfter reads the vendor's wish: seconds, or an HTTP date.
func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 && seconds < 86400 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
