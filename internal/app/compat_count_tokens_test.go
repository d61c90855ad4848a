package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// counted are the tokens that a request to an agent is estimated at.
func (h *house) counted(body string) int {
	h.t.Helper()
	var out struct {
		Tokens int `json:"input_tokens"`
	}
	h.json("POST", passMessages+"/count_tokens", body, 200, &out)
	return out.Tokens
}

// TestCountTokens estimates what a request to an agent comes to, without asking its model.
func TestCountTokens(t *testing.T) {
	m := newModel(t)
	h := newHarness(t, m).serve("127.0.0.1:0")
	body := `{"model":"main","messages":[{"role":"user","content":"` + strings.Repeat("word ", 3000) + `"}]}`
	if got := h.counted(body); got != len(body)/3 || m.count() != 0 {
		t.Errorf("%d tokens of %d bytes, the model was asked %d times", got, len(body), m.count())
	}
	h.json("POST", passMessages+"/count_tokens", `{"model":"nobody","messages":[{"role":"user","content":"hi"}]}`, 404, nil)
}

// TestModels lists all models on one page in Anthropic's form.
func TestModels(t *testing.T) {
	v := newVendor(t, answersWhole)
	h := passingHouse(t, v, func(c *config.Config) {
		near := c.Providers["near"]
		near.Models = map[string]string{}
		for i := range 24 {
			near.Models[fmt.Sprint("alias", i)] = fmt.Sprintf("m%02d", i)
		}
		c.Providers["near"] = near
	})
	var whole struct {
		Data []struct{ ID string }
		More bool   `json:"has_more"`
		From string `json:"first_id"`
		To   string `json:"last_id"`
	}
	h.json("GET", "/v1/models?limit=3", "", 200, &whole, carrying("Anthropic-Version", "2023-06-01"))
	if len(whole.Data) != 25 || whole.More || whole.From != "main" || whole.To != whole.Data[24].ID {
		t.Fatalf("%+v", whole)
	}
	var open struct{ Data []struct{ ID string } }
	h.json("GET", "/v1/models", "", 200, &open)
	if len(open.Data) < 2 {
		t.Errorf("%+v", open)
	}
}

// TestCompatRoot: the endpoint's own address is answered by it, in its form, and not by a redirect.
func TestCompatRoot(t *testing.T) {
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	for _, path := range []string{"/v1", "/v1/", "/v1?x=1"} {
		for _, method := range []string{"GET", "POST"} {
			var out answered
			h.json(method, path, `{}`, 404, &out)
			if out.Error.Code != string(regie.CodeNotFound) || out.Error.Message == "" {
				t.Errorf("%s %s: %+v", method, path, out)
			}
		}
		var none answered
		if h.json("GET", path, "", 401, &none, func(r *http.Request) { r.Header.Del("Authorization") }); none.Error.Code != string(regie.CodeNoToken) {
			t.Errorf("%s without a token: %+v", path, none)
		}
	}
}
