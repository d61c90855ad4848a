package compat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// The APIs that a request can be passed on in.
const (
	APIChat      = "chat/completions"
	APIResponses = "responses"
)

// Proxy passes requests for provider/model on to configured providers, without a session (decision 35). Its methods may be called from many
// goroutines.
type Proxy interface {
	// Models lists what can be named, as provider/model.
	Models(ctx context.Context) []string
	// Has reports whether a provider is configured.
	Has(provider string) bool
	// Upstream says where a provider takes requests of an API; CodeBadRequest where it does not speak it.
	Upstream(provider, api string) (Upstream, error)
	// Reserve has what a call may cost reserved, before it is made, where a cap holds (decision 29): of a prompt of a size in bytes, and of so
	// many answers of so many tokens at most, 0 for any. It returns the longest one that may be asked for, 0 where it may be as long as the
	// request has it, and CodePriceUnknown or CodeOverBudget where the call may not be made.
	Reserve(ctx context.Context, call *store.Proxied, size, answers, most int) (longest int, err error)
	// Done logs what became of a call. It does not wait.
	Done(call store.Proxied)
	// Ask returns the answer to a request that the response cache holds, or has send ask, where what the request says may be answered so; fresh
	// is false of one that was not asked for here.
	Ask(ctx context.Context, call *store.Proxied, request regie.Hash, send func() ([]byte, error)) (answer []byte, fresh bool, err error)
	// Caches reports whether a request with this temperature, nil for none, may be answered from the cache.
	Caches(temperature *float64) bool
}

// Upstream is a provider's server.
type Upstream struct {
	URL    string
	Header http.Header // holds the key
	Client *http.Client
	// MaxTokens is the parameter that bounds an answer, in its vendor's word.
	MaxTokens string
	// Hide takes the key out of what the server says.
	Hide func(said []byte) []byte
}

// maxAnswer bounds an answer that is no stream, in bytes.
const maxAnswer = 64 << 20

// proxies reports whether a model is one of a provider: provider/name.
func (s *server) proxies(model string) bool {
	provider, name, ok := strings.Cut(model, "/")
	return ok && name != "" && s.Proxy != nil && s.Proxy.Has(provider)
}

// passing is a request on its way through.
type passing struct {
	*server
	w    http.ResponseWriter
	r    *http.Request
	up   Upstream
	head head
	call store.Proxied
	body []byte
	api  string
	// added says that it asks for usage that its client did not ask for: that is not passed back.
	added bool
	usage bool // what the call used is known
}

// proxy passes a request on.
func (s *server) proxy(w http.ResponseWriter, r *http.Request, api, model string, data []byte) {
	name, rest, _ := strings.Cut(model, "/")
	h, err := readHead(data)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	up, err := s.Proxy.Upstream(name, api)
	if err != nil {
		s.fail(w, r, &problem{kind: kindInvalid, param: "model", err: err})
		return
	}
	place, err := s.Workspace(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p := &passing{
		server: s, w: w, r: r, up: up, head: h, api: api,
		call: store.Proxied{ID: regie.NewID(), WorkspaceID: place.ID, Provider: name, Model: rest, StartedAt: time.Now()},
	}
	if !h.stream && s.Proxy.Caches(h.temperature) {
		p.fromCache(data)
		return
	}
	if err := p.reserve(data); err != nil {
		s.fail(w, r, err)
		return
	}
	defer p.done()
	response, err := p.send()
	if err != nil {
		p.failed(err)
		return
	}
	defer response.Body.Close()
	p.pass(response)
}

// reserve writes the request as it goes out, once the money for it is there.
func (p *passing) reserve(data []byte) error {
	longest, err := p.Proxy.Reserve(p.r.Context(), &p.call, len(data), p.head.answers, p.head.most)
	if err == nil {
		p.body, p.added = p.head.rewritten(data, p.call.Model, p.up.MaxTokens, longest, p.api == APIChat)
	}
	return err
}

func (p *passing) send() (*http.Response, error) {
	request, err := http.NewRequestWithContext(p.r.Context(), http.MethodPost, p.up.URL, bytes.NewReader(p.body))
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, p.up.Header)
	request.Header.Set("Content-Type", "application/json")
	response, err := p.up.Client.Do(request)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices && response.StatusCode < http.StatusBadRequest {
		_ = response.Body.Close()
		return nil, regie.Errorf(regie.CodeProviderRejected, "the server of %s sends requests elsewhere, and its key goes nowhere else", p.call.Provider)
	}
	return response, err
}

// done logs the call. Of one whose usage nobody said nobody knows the cost.
func (p *passing) done() {
	p.call.Duration = time.Since(p.call.StartedAt)
	p.Proxy.Done(p.call)
}

// failed answers where no answer came.
func (p *passing) failed(err error) {
	p.call.Code = regie.CodeProviderBroken
	if code := regie.CodeOf(err); code != regie.CodeInternal {
		p.call.Code = code
	}
	if p.r.Context().Err() != nil {
		return
	}
	why := string(p.up.Hide([]byte(err.Error())))
	p.fail(p.w, p.r, &problem{status: http.StatusBadGateway, err: regie.Errorf(p.call.Code, "the server of %s did not answer: %s", p.call.Provider, why)})
}

// passedOn are the headers of an answer that go through.
var passedOn = []string{"Content-Type", "Retry-After", "Retry-After-Ms", "X-Request-Id"}

// pass gives the answer to the client, as it comes.
func (p *passing) pass(response *http.Response) {
	for _, name := range passedOn {
		if v := response.Header[name]; len(v) > 0 {
			p.w.Header()[name] = v
		}
	}
	streams := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	if response.StatusCode == http.StatusOK && streams {
		p.passStream(response.Body)
		return
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil || len(data) > maxAnswer {
		p.failed(errors.Join(err, errors.New("its answer was cut, or has no end")))
		return
	}
	if response.StatusCode == http.StatusOK {
		p.used(data)
	} else {
		p.refusedBy(response.StatusCode)
		data = p.up.Hide(data)
	}
	p.w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	p.w.WriteHeader(response.StatusCode)
	_, _ = p.w.Write(data) // the client has gone
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

// passStream gives a stream to the client, line by line, and reads from it what the call used.
func (p *passing) passStream(body io.Reader) {
	p.w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(p.w)
	lines := bufio.NewReaderSize(body, 32<<10)
	skip := false
	for {
		line, err := lines.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) { // longer than the buffer: it goes through in pieces, and says no usage
			_, _ = p.w.Write(line)
			line, err = lines.ReadSlice('\n')
		}
		if p.added && skip && len(bytes.TrimSpace(line)) == 0 { // the end of the event that was left out
			skip = false
		} else if bytes.Contains(line, []byte(`"usage"`)) && p.used(bytes.TrimPrefix(line, []byte("data:"))) && p.added && bytes.Contains(line, []byte(`"choices":[]`)) {
			skip = true
		} else if _, failed := p.w.Write(line); failed != nil {
			p.call.Code = regie.CodeStopRequested // the client has gone, and the provider's work with it
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.call.Code = regie.CodeTruncatedStream
			}
			_ = flush.Flush()
			return
		}
		if lines.Buffered() == 0 || len(line) <= 2 {
			_ = flush.Flush()
		}
	}
}

// used takes what a call used from an answer, or from an event of a stream, in the words of either API.
func (p *passing) used(data []byte) bool {
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
	}
	var said struct {
		Usage    *usage `json:"usage"`
		Response struct {
			Usage *usage `json:"usage"`
		} `json:"response"`
	}
	if json.Unmarshal(data, &said) != nil {
		return false
	}
	u := said.Usage
	if u == nil {
		u = said.Response.Usage
	}
	if u == nil {
		return false
	}
	p.call.Usage = regie.Usage{Input: u.Prompt + u.Input, Output: u.Answer + u.Output, CacheRead: u.Details.Cached + u.InputDetails.Cached}
	p.usage = true
	return true
}

// refusal is an answer that is none.
type refusal struct {
	status int
	header http.Header
	data   []byte
}

// Error implements error.
func (r refusal) Error() string { return "the provider answered " + strconv.Itoa(r.status) }

// fromCache answers from the response cache, or asks, once for all who ask the same.
func (p *passing) fromCache(data []byte) {
	asked := false
	answer, fresh, err := p.Proxy.Ask(p.r.Context(), &p.call, p.head.cacheKey(data, p.call.Model), func() ([]byte, error) {
		if err := p.reserve(data); err != nil {
			return nil, err
		}
		asked = true
		response, err := p.send()
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		said, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		if err != nil {
			return nil, err
		}
		if response.StatusCode != http.StatusOK {
			p.refusedBy(response.StatusCode)
			return nil, refusal{response.StatusCode, response.Header, p.up.Hide(said)}
		}
		p.used(said)
		return said, nil
	})
	var no refusal
	switch {
	case errors.As(err, &no):
		p.w.Header().Set("Content-Type", no.header.Get("Content-Type"))
		p.w.WriteHeader(no.status)
		_, _ = p.w.Write(no.data)
	case err != nil && !asked:
		p.fail(p.w, p.r, err)
		return
	case err != nil:
		p.failed(err)
	default:
		p.call.Cached = !fresh
		if !fresh {
			p.call.Usage, p.call.Money = regie.Usage{}, regie.Money{Known: true}
			p.w.Header().Set("X-Regie-Cache", "hit")
		}
		p.w.Header().Set("Content-Type", "application/json")
		_, _ = p.w.Write(answer)
	}
	p.done()
}
