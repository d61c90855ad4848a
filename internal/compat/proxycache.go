package compat

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
)

// maxKept bounds a stream that is kept for others, in bytes: the cache takes no larger answer.
const maxKept = 1 << 20

// kept is what a stream said, so that it can be given again. The nil one keeps nothing.
type kept struct {
	data []byte
	most int
	over bool // it is longer than what is kept
}

func (k *kept) add(piece []byte) {
	switch {
	case k == nil || k.over:
	case len(k.data)+len(piece) > k.most:
		k.data, k.over = nil, true
	default:
		k.data = append(k.data, piece...)
	}
}

// ends are the events that end a stream of an API; the first is that of one which says all. Chat
// Completions has a mark instead.
var ends = map[string][]string{
	APIResponses: {"response.completed", "response.incomplete", "response.failed"},
	APIMessages:  {"message_stop"},
}

// whole is the stream where it came to its end by its API's own mark, else nil.
func (k *kept) whole(api string) []byte {
	if k == nil {
		return nil
	}
	if _, named := ends[api]; !named && (bytes.Contains(k.data, []byte("\ndata: [DONE]")) ||
		bytes.Contains(k.data, []byte("\ndata:[DONE]"))) {
		return k.data
	}
	if slices.ContainsFunc(ends[api], k.has) {
		return k.data
	}
	return nil
}

// full is the stream where it came to the end of an answer that says all, else nil.
func (k *kept) full(api string) []byte {
	if names := ends[api]; len(names) > 1 && !k.has(names[0]) {
		return nil
	}
	return k.whole(api)
}

// has reports whether an event was said: by its name, or last and by its type alone.
func (k *kept) has(name string) bool {
	if bytes.Contains(k.data, []byte("\nevent: "+name)) || bytes.Contains(k.data, []byte("\nevent:"+name)) {
		return true
	}
	last, _, _ := bytes.Cut(k.data[max(0, bytes.LastIndex(k.data, []byte("\ndata:"))):], []byte("\n\n"))
	return string(member(bytes.TrimPrefix(bytes.TrimSpace(last), []byte("data:")), "type")) == strconv.Quote(name)
}

// cacheable is a question to a provider whose answer may be kept.
type cacheable struct {
	asked  bool // the provider was
	passed bool // the client has its answer already: it streamed
}

// fromCache answers from the response cache, or asks, once for all who ask the same. Who asks first
// has a stream as it comes, the others when it is whole.
func (p *passing) fromCache(data []byte) {
	var c cacheable
	answer, fresh, err := p.Proxy.Ask(p.context(), &p.call, p.cacheKey(data), func() ([]byte, bool, error) {
		said, err := p.askKept(data, &c)
		return said, err == nil && endsWell(p.api, said), err
	})
	var no refusal
	switch {
	case errors.As(err, &no):
		p.heads(no.header)
		p.w.WriteHeader(no.status)
		_, _ = p.w.Write(no.data)
	case err != nil && !c.asked:
		p.released()
		p.fail(p.w, p.r, err)
		return
	case err != nil:
		p.failed(err)
	case c.passed:
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
		p.answered(kind, answer)
		_, _ = p.w.Write(answer) // the client has gone
	}
	p.done()
}

// cacheKey is what an answer may be given again for: the API, the request without what has no part
// in its answer, and what a header says of how it is meant.
func (p *passing) cacheKey(data []byte) regie.Hash {
	of := p.head.cacheKey(data, p.call.Model)
	return regie.HashOf([]byte(strings.Join(append(p.meant(), of.String()), "\x00")))
}

// meant is how a request is meant, beside what it says.
func (p *passing) meant() []string {
	words := []string{p.api}
	for _, name := range p.up.Passes {
		words = append(words, strings.Join(p.r.Header.Values(name), ","))
	}
	return words
}

// askKept asks the provider. A stream is passed on as it comes; what is returned of it is what
// others may be given, nil where that is nothing.
func (p *passing) askKept(data []byte, c *cacheable) ([]byte, error) {
	if err := p.reserve(data); err != nil {
		return nil, err
	}
	c.asked = true
	response, err := p.send()
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK &&
		strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		c.passed = true
		if p.kept == nil {
			p.kept = &kept{most: maxKept}
		}
		p.pass(response)
		if p.call.Code != "" || len(p.kept.data) > maxKept {
			return nil, nil
		}
		return p.kept.full(p.api), nil
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
