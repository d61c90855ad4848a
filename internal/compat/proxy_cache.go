package compat

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
)

// maxKept bounds a stream that is kept for others, in bytes: the cache takes no larger answer.
const maxKept = 1 << 20

// refusal is the answer of a provider that refuses a request.
type refusal struct {
	status int
	header http.Header
	data   []byte
}

// Error implements error.
func (r refusal) Error() string { return "the provider answered " + http.StatusText(r.status) }

// fromCache answers from the response cache, or asks, once for all who ask the same. Who asks first
// has a stream as it comes, the others when it is whole.
func (p *passing) fromCache(data []byte) {
	asked, streamed := false, false
	answer, fresh, err := p.Proxy.Ask(p.r.Context(), &p.call, p.cacheKey(data), func() ([]byte, bool, error) {
		if err := p.reserve(data); err != nil {
			return nil, false, err
		}
		asked = true
		said, err := p.askKept(&streamed)
		return said, err == nil && endsWell(p.api, said), err
	})
	var no refusal
	switch {
	case errors.As(err, &no):
		p.copyHeaders(no.header)
		p.w.WriteHeader(no.status)
		_, _ = p.w.Write(no.data)
	case err != nil && !asked:
		p.fail(p.w, p.r, err)
		return
	case err != nil:
		p.failed(err)
	case streamed:
	default:
		p.call.Cached = !fresh
		if !fresh {
			p.call.Usage, p.call.Money = regie.Usage{}, regie.Money{Known: true}
			p.w.Header().Set("X-Regie-Cache", "hit")
		}
		kind := "application/json"
		if !bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")) {
			kind = "text/event-stream"
		}
		p.w.Header().Set("Content-Type", kind)
		_, _ = p.w.Write(answer) // the client has gone
	}
	p.done()
}

// cacheKey is what an answer may be given again for: the API, what headers say of how the request
// is meant, and the request without what has no part in its answer.
func (p *passing) cacheKey(data []byte) regie.Hash {
	words := []string{p.api}
	for _, name := range p.up.Passes {
		words = append(words, strings.Join(p.r.Header.Values(name), ","))
	}
	words = append(words, p.head.cacheKey(data, p.call.Model).String())
	return regie.HashOf([]byte(strings.Join(words, "\x00")))
}

// askKept asks the provider. A stream is passed on as it comes; what is returned of it is what
// others may be given, nil where that is nothing.
func (p *passing) askKept(streamed *bool) ([]byte, error) {
	response, err := p.send()
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if isStream(response) {
		*streamed, p.keeps = true, true
		p.pass(response)
		if p.call.Code != "" || !p.keeps {
			return nil, nil
		}
		return p.kept, nil
	}
	said, err := httpread.All(response.Body, response.ContentLength, maxAnswer)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		p.refusedBy(response.StatusCode)
		return nil, refusal{response.StatusCode, response.Header, p.up.Hide(said)}
	}
	p.used(said)
	return said, nil
}
