package compat

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// refusal is the answer of a provider that refuses a request.
type refusal struct {
	status int
	header http.Header
	data   []byte
}

// Error implements error.
func (r refusal) Error() string { return "the provider answered " + http.StatusText(r.status) }

// answerFromCache answers from the response cache, or asks the provider once for all who ask the
// same. Streams are not kept.
func (p *passing) answerFromCache(root string, size int) {
	asked := false
	answer, fresh, err := p.Proxy.Ask(p.r.Context(), &p.call, p.cacheKey(size), func() ([]byte, bool, error) {
		if err := p.reserveMoney(root, size); err != nil {
			return nil, false, err
		}
		asked = true
		said, err := p.askWhole()
		return said, err == nil && endsWell(said), err
	})
	var no refusal
	switch {
	case errors.As(err, &no):
		p.copyHeaders(no.header)
		p.w.WriteHeader(no.status)
		_, _ = p.w.Write(no.data)
	case err != nil && !asked:
		p.writeError(p.w, p.r, err)
		return
	case err != nil:
		p.writeFailure(err)
	default:
		if p.call.Cached = !fresh; !fresh {
			p.call.Usage, p.call.Money = regie.Usage{}, regie.Money{Known: true}
			p.w.Header().Set("X-Regie-Cache", "hit")
		}
		p.w.Header().Set("Content-Type", "application/json")
		_, _ = p.w.Write(answer) //nolint:gosec // JSON of the provider, as JSON; the client may have gone
	}
	p.logCall()
}

// cacheKey hashes what decides an answer: the API, the headers that are passed on, and the request
// in canonical form.
func (p *passing) cacheKey(size int) regie.Hash {
	words := []string{p.api}
	for _, name := range p.up.Passes {
		words = append(words, strings.Join(p.r.Header.Values(name), ","))
	}
	request := jsontext.Value(p.head.encodeRequest(size))
	if request.Canonicalize() != nil {
		return regie.HashOf(p.call.ID[:]) // a key of its own
	}
	return regie.HashOf([]byte(strings.Join(words, "\x00") + string(request)))
}

// askWhole asks the provider for a whole answer.
func (p *passing) askWhole() ([]byte, error) {
	response, err := p.sendRequest()
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
	p.takeUsage(said)
	return said, nil
}

// endsWell reports whether an answer says of itself that it is whole: what failed, was cut or was
// filtered is an answer for no other client.
func endsWell(answer []byte) bool {
	var e struct {
		Error   any    `json:"error"`
		Status  string `json:"status"`      // of a response
		Reason  string `json:"stop_reason"` // of a message
		Choices []struct {
			Reason string `json:"finish_reason"`
		} `json:"choices"`
	}
	if json.Unmarshal(answer, &e) != nil || e.Error != nil {
		return false
	}
	well := map[string]bool{"stop": true, "end_turn": true, "stop_sequence": true, "completed": true}
	for i := range e.Choices {
		if !well[e.Choices[i].Reason] {
			return false
		}
	}
	return well[e.Status] || well[e.Reason] || len(e.Choices) > 0
}
