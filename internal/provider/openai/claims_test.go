package openai_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
)

// TestWrongUsage: what a server claims to have used is a number that can be added up, or is not
// believed, and never costs the reply.
func TestWrongUsage(t *testing.T) {
	const most = 1 << 40
	for claimed, want := range map[string]regie.Usage{
		`{"prompt_tokens":10,"completion_tokens":5}`:                                               {Input: 10, Output: 5},
		`{"prompt_tokens":-5,"completion_tokens":-1,"prompt_tokens_details":{"cached_tokens":-4}}`: {},
		`{"prompt_tokens":9223372036854775807,"completion_tokens":9}`:                              {Input: most, Output: 9},
		`{"prompt_tokens":1e30}`: {Input: 1, Output: 2},
		`{"prompt_tokens":0.5}`:  {Input: 1, Output: 2},
		`"much"`:                 {Input: 1, Output: 2},
		`[]`:                     {Input: 1, Output: 2},
		`null`:                   {Input: 1, Output: 2},
		`{"prompt_tokens":3,"completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":9223372036854775807}}`: {Input: 3, Output: 4, Reasoning: most},
	} {
		reply, err := ask(t, `data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`+"\n\n"+
			`data: {"choices":[],"usage":`+claimed+"}\n\ndata: [DONE]\n\n")
		if err != nil || reply.Usage != want {
			t.Errorf("%s: %+v, %v, want %+v", claimed, reply, err, want)
		}
	}
}

// TestKeyIsHidden: whatever a server quotes of the key does not come out of the codec.
func TestKeyIsHidden(t *testing.T) {
	const key = "sk-very-secret"
	long := strings.Repeat("x", 290) + " " + key // the key would be cut in two, and half of it is too much
	for name, answer := range map[string]func(http.ResponseWriter){
		"401": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided: `+key+`"}}`)
		},
		"cut": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest); _, _ = io.WriteString(w, long) },
		"a page": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, key)
		},
		"in band": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `data: {"error":{"message":"for `+key+`"}}`+"\n\n")
		},
		"no JSON": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "data: "+key+"\n\n") },
		"a partial": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"`+key+`"}}]}`+"\n\n")
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		p, err := openai.New(openai.Config{Name: "test", BaseURL: server.URL + "/v1", APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Open(provider.Head{Model: "m", MaxOutput: 100})
		if err != nil {
			t.Fatal(err)
		}
		c.Append(provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: "go"}}})
		_, err = c.Send(t.Context(), nil)
		var failed *provider.Error
		if !errors.As(err, &failed) || strings.Contains(failed.Message+failed.Partial, "sk-very") {
			t.Errorf("%s: %v (%+v)", name, err, failed)
		}
		server.Close()
	}
}
