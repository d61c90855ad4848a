package compat

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// The APIs that a request can be passed on in.
const (
	APIChat      = "chat/completions"
	APIResponses = "responses"
	APIMessages  = "messages"
	APICount     = "messages/count_tokens"
)

// Proxy passes requests for provider/model on to configured providers, without a session (decision
// 35). Its methods may be called from many goroutines.
type Proxy interface {
	// Models lists what can be named in requests of an API, as provider/model.
	Models(ctx context.Context, api string) []string
	// Has reports whether a provider is configured.
	Has(provider string) bool
	// Upstream says where a provider takes requests of an API; CodeBadRequest where it does not
	// speak it.
	Upstream(provider, api string) (Upstream, error)
	// Reserve has what a call may cost reserved, before it is made, where a cap holds (decision
	// 29): of a prompt of a size in bytes, and of so many answers of so many tokens at most, 0 for
	// any. The caps are those of the workspace at root. It returns the longest one that may be
	// asked for, 0 where it may be as long as the request has it, and CodePriceUnknown or
	// CodeOverBudget where the call may not be made.
	Reserve(ctx context.Context, call *store.Proxied, root string, size, answers, most int) (longest int, err error)
	// Done logs what became of a call. It does not wait.
	Done(call store.Proxied)
}

// Upstream is a provider's server.
type Upstream struct {
	URL       string
	Header    http.Header // of every request, with the key; it is not changed
	Transport http.RoundTripper
	// Passes are the headers of a client's request that go through, and stand in for those of
	// Header: they say how it is meant.
	Passes []string
	// MaxTokens is the parameter that bounds an answer, in its vendor's word.
	MaxTokens string
	// Hide removes the key from the server's text.
	Hide func(said []byte) []byte
}

// maxAnswer bounds an answer that is no stream, in bytes.
const maxAnswer = 64 << 20

// isProxied reports whether a model is one of a provider: provider/name.
func (s *server) isProxied(model string) bool {
	provider, name, ok := strings.Cut(model, "/")
	return ok && name != "" && s.Proxy != nil && s.Proxy.Has(provider)
}

// passing is a request on its way through.
type passing struct {
	*server
	w    http.ResponseWriter
	r    *http.Request
	up   Upstream
	head *head
	call store.Proxied
	body []byte
	api  string
	// added says that it asks for usage that its client did not ask for: that is not passed back.
	added bool
	// firstUsage and lastUsage are the events of a stream that say what was used: Messages names
	// the input in the first one alone.
	firstUsage, lastUsage []byte
	// pieces counts the pieces of a streamed answer: about one for each token.
	pieces int64
}

// serveProxy passes a request on; wrong is what its head cannot be.
func (s *server) serveProxy(w http.ResponseWriter, r *http.Request, api string, h *head, wrong error, data []byte) {
	name, rest, _ := strings.Cut(h.model, "/")
	if wrong != nil {
		s.writeError(w, r, wrong)
		return
	}
	up, err := s.Proxy.Upstream(name, api)
	if err != nil {
		s.writeError(w, r, &problem{param: "model", err: err})
		return
	}
	place, err := s.Workspace(r.Context())
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	if r.Header.Get("Idempotency-Key") != "" {
		w.Header().Set(headerIgnored, "Idempotency-Key")
	}
	p := &passing{
		server: s, w: w, r: r, up: up, head: h, api: api,
		call: store.Proxied{
			ID: regie.NewID(), WorkspaceID: place.ID, Provider: name,
			Model: rest, StartedAt: time.Now(),
		},
	}
	if err := p.reserveMoney(place.Root, len(data)); err != nil {
		s.writeError(w, r, err)
		return
	}
	defer p.logCall()
	response, err := p.sendRequest()
	if err != nil {
		p.writeFailure(err)
		return
	}
	defer response.Body.Close()
	p.passAnswer(response)
}

// reserveMoney writes the request as it goes out, once the money for it is there. To count costs
// nothing.
func (p *passing) reserveMoney(root string, size int) error {
	if p.api == APICount {
		p.call.Money.Known = true
	} else {
		longest, err := p.Proxy.Reserve(p.r.Context(), &p.call, root, size, p.head.answers, p.head.most)
		if err != nil {
			return err
		}
		if longest > 0 {
			p.head.setMember(cmp.Or(p.head.bounded, p.up.MaxTokens), strconv.AppendInt(nil, int64(longest), 10))
		}
	}
	if p.api == APIChat && p.head.stream && !p.head.wantsUsage {
		p.added = true
		p.head.setMember("stream_options", jsontext.Value(`{"include_usage":true}`))
	}
	model, err := jsontext.AppendQuote(nil, p.call.Model)
	p.head.setMember("model", model)
	p.body = p.head.encodeRequest(size)
	return err
}

func (p *passing) sendRequest() (*http.Response, error) {
	request, err := http.NewRequestWithContext(p.r.Context(), http.MethodPost, p.up.URL, bytes.NewReader(p.body))
	if err != nil {
		return nil, err
	}
	request.Header = p.requestHeader()
	// RoundTrip leaves out the other work of an HTTP client: redirects, cookies
	response, err := p.up.Transport.RoundTrip(request)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices && response.StatusCode < http.StatusBadRequest {
		_ = response.Body.Close()
		return nil, regie.Errorf(regie.CodeProviderRejected,
			"the server of %s redirects, which is not followed: its key is sent nowhere else", p.call.Provider)
	}
	return response, err
}

// requestHeader returns that of the request as it goes out.
func (p *passing) requestHeader() http.Header {
	out, copied := p.up.Header, false
	for _, name := range p.up.Passes {
		if v := p.r.Header.Values(name); len(v) > 0 {
			if !copied {
				out, copied = out.Clone(), true
			}
			out[name] = v
		}
	}
	return out
}

// logCall logs the call. One that was cut is booked at what was sent and received (decision 72):
// the provider's count as far as it came, else an estimate.
func (p *passing) logCall() {
	if p.firstUsage != nil {
		p.takeUsage(p.firstUsage, p.lastUsage)
	}
	if p.call.Code != "" && !p.call.Money.Known {
		used := &p.call.Usage
		if used.Input == 0 {
			used.Input = int64(len(p.body)) / 4
		}
		used.Output, used.Estimated = max(used.Output, p.pieces), true
	}
	p.call.Duration = time.Since(p.call.StartedAt)
	p.Proxy.Done(p.call)
}

// writeFailure answers where no answer came.
func (p *passing) writeFailure(err error) {
	p.call.Code = regie.CodeProviderBroken
	if code := regie.CodeOf(err); code != regie.CodeInternal {
		p.call.Code = code
	}
	if neverSent(err) {
		p.call.Money.Known = true
	}
	// no one waits any more: the client has gone, its token was revoked, or the server stops
	if cause := context.Cause(p.r.Context()); cause != nil {
		p.call.Code = regie.CodeStopRequested
		p.writeError(p.w, p.r, &problem{begun: true, err: cause})
		return
	}
	why := string(p.up.Hide([]byte(err.Error())))
	p.writeError(p.w, p.r, &problem{
		status: http.StatusBadGateway, begun: true,
		err: regie.Errorf(p.call.Code, "the server of %s did not answer: %s", p.call.Provider, why),
	})
}

// passedOn are the headers of an answer that go through.
var passedOn = []string{"Content-Type", "Retry-After", "Retry-After-Ms", "X-Request-Id", "Request-Id"}

// copyHeaders gives the client what an answer says of itself.
func (p *passing) copyHeaders(of http.Header) {
	for _, name := range passedOn {
		if v := of[name]; len(v) > 0 {
			p.w.Header()[name] = v
		}
	}
}

// passAnswer gives the answer to the client, as it comes.
func (p *passing) passAnswer(response *http.Response) {
	p.copyHeaders(response.Header)
	if isStream(response) {
		p.passStream(response.Body)
		return
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil || len(data) > maxAnswer {
		p.writeFailure(errors.Join(err, errors.New("its answer was cut, or has no end")))
		return
	}
	if response.StatusCode == http.StatusOK {
		p.takeUsage(data)
	} else {
		p.refusedBy(response.StatusCode)
		data = p.up.Hide(data)
	}
	p.w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	p.w.WriteHeader(response.StatusCode)
	_, _ = p.w.Write(data) // the client has gone
}

func isStream(response *http.Response) bool {
	return response.StatusCode == http.StatusOK &&
		strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
}

// refusedBy notes that the provider refused: it charges nothing for that.
func (p *passing) refusedBy(status int) {
	p.call.Money.Known = true
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		p.call.Code = regie.CodeProviderAuth
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		p.call.Code = regie.CodeProviderBusy
	default:
		p.call.Code = regie.CodeProviderRejected
	}
}

// usageObject finds what was used in an answer, and noChoices an event that says nothing else.
var (
	usageObject = regexp.MustCompile(`"usage"\s*:\s*\{`)
	noChoices   = regexp.MustCompile(`"choices"\s*:\s*\[\s*\]`)
)

// passStream gives a stream to the client, line by line, and keeps what says how much the call
// used. One that is cut is cut for the client too: nothing else tells it from one that is whole.
func (p *passing) passStream(body io.Reader) {
	p.w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(p.w)
	lines := bufio.NewReaderSize(body, 32<<10)
	skip := false
	for {
		line, err := lines.ReadSlice('\n')
		// longer than the buffer: it goes through in pieces, and says no usage
		for errors.Is(err, bufio.ErrBufferFull) {
			_, _ = p.w.Write(line)
			line, err = lines.ReadSlice('\n')
		}
		if data, is := bytes.CutPrefix(line, []byte("data:")); is {
			p.pieces++
			if usageObject.Match(data) {
				p.keepUsage(data)
				skip = p.added && noChoices.Match(data)
			}
		}
		if !skip {
			if _, gone := p.w.Write(line); gone != nil {
				p.call.Code = regie.CodeStopRequested // the client has gone, and the provider's work with it
				return
			}
		}
		if len(bytes.TrimSpace(line)) == 0 { // the end of the event
			skip = false
		}
		if err != nil {
			_ = flush.Flush()
			p.endOf(err)
			return
		}
		if lines.Buffered() == 0 || len(line) <= 2 {
			_ = flush.Flush()
		}
	}
}

// keepUsage keeps the first event that says what was used, and the last one.
func (p *passing) keepUsage(data []byte) {
	if p.firstUsage == nil {
		p.firstUsage = bytes.Clone(data)
		return
	}
	p.lastUsage = append(p.lastUsage[:0], data...)
}

// endOf notes how a stream ended, and has its client see it.
func (p *passing) endOf(err error) {
	if errors.Is(err, io.EOF) {
		return
	}
	p.call.Code = regie.CodeTruncatedStream
	if p.r.Context().Err() != nil { // the client has gone
		p.call.Code = regie.CodeStopRequested
	}
	// the end of the answer can be written no more
	_ = http.NewResponseController(p.w).SetWriteDeadline(time.Unix(1, 0))
}

// usage is the usage in an answer, in the members of every API. Prompt and Input include cached
// tokens, except in Messages, which counts those separately.
type usage struct {
	Prompt  int64 `json:"prompt_tokens"`
	Input   int64 `json:"input_tokens"`
	Answer  int64 `json:"completion_tokens"`
	Output  int64 `json:"output_tokens"`
	Details struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
}

// takeUsage reads the usage from answers; a later answer replaces the members that it repeats.
func (p *passing) takeUsage(answers ...[]byte) {
	var u usage
	for _, data := range answers {
		var said struct {
			Usage    jsontext.Value                 `json:"usage"`
			Response struct{ Usage jsontext.Value } `json:"response"`
			Message  struct{ Usage jsontext.Value } `json:"message"`
		}
		if json.Unmarshal(data, &said) != nil {
			continue
		}
		for _, value := range []jsontext.Value{said.Usage, said.Response.Usage, said.Message.Usage} {
			_ = json.Unmarshal(value, &u) // what is no usage says none
		}
	}
	p.call.Usage = regie.Usage{
		Input: u.Prompt + u.Input + u.CacheCreation + u.CacheRead, Output: u.Answer + u.Output,
		CacheCreation: u.CacheCreation, CacheRead: u.Details.Cached + u.InputDetails.Cached + u.CacheRead,
	}
}

// neverSent reports whether a request certainly did not reach its provider, or was sent on by it
// and not taken.
func neverSent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" ||
		regie.CodeOf(err) == regie.CodeProviderRejected
}
