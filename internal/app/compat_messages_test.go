package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/store"
)

const passMessages = "/v1/messages"

// anthropicError is an error in Anthropic's form.
type anthropicError struct {
	Type  string
	Error struct {
		Type, Message string
		Details       struct {
			Code  string `json:"error_code"`
			Param string
		}
	}
}

func errorOf(t *testing.T, body string) (out anthropicError) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &out); err != nil || out.Type != "error" || out.Error.Message == "" {
		t.Errorf("not an error of Anthropic's: %v %.300s", err, body)
	}
	return out
}

// TestMessagesBadInput sends what no client of good will sends (spec 12.5): each is refused in
// Anthropic's form, and nothing is asked or made.
func TestMessagesBadInput(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	d := newHarness(t, m).door()
	const hi = `"max_tokens":9,"messages":[{"role":"user","content":"hi"}]`
	version := header{"Anthropic-Version": "2023-06-01"}
	for name, c := range map[string]struct {
		method, path, body string
		headers            header
		status             int
		kind, param        string
	}{
		"no JSON":                 {http.MethodPost, passMessages, `{"model"`, nil, 400, "invalid_request_error", ""},
		"another agent":           {http.MethodPost, passMessages, `{"model":"other",` + hi + `}`, nil, 404, "not_found_error", "model"},
		"another provider":        {http.MethodPost, passMessages, `{"model":"nobody/x",` + hi + `}`, nil, 404, "not_found_error", "model"},
		"a result of nobody":      {http.MethodPost, passMessages, `{"model":"main","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1"}]}]}`, nil, 400, "invalid_request_error", "messages[0].content[0].tool_use_id"},
		"the assistant's word":    {http.MethodPost, passMessages, `{"model":"main","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`, nil, 400, "invalid_request_error", "messages[1]"},
		"to count for nobody":     {http.MethodPost, passMessages + "/count_tokens", `{"model":"other",` + hi + `}`, nil, 404, "not_found_error", "model"},
		"to count garbage":        {http.MethodPost, passMessages + "/count_tokens", `[1]`, nil, 400, "invalid_request_error", ""},
		"the wrong method":        {http.MethodGet, passMessages, ``, version, 404, "not_found_error", ""},
		"nothing there":           {http.MethodPost, passMessages + "/batches", ``, nil, 404, "not_found_error", ""},
		"nothing anywhere":        {http.MethodPost, "/v1/complete", ``, version, 404, "not_found_error", ""},
		"a model that is not one": {http.MethodGet, "/v1/models/x", ``, version, 404, "not_found_error", "model"},
	} {
		t.Run(name, func(t *testing.T) {
			out := d.do(c.method, c.path, c.body, c.headers)
			got := errorOf(t, out.body)
			if out.status != c.status || got.Error.Type != c.kind || got.Error.Details.Param != c.param || got.Error.Details.Code == "" || out.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%d %.300s", out.status, out.body)
			}
		})
	}
	if m.count() != 0 {
		t.Errorf("the model was asked %d times", m.count())
	}
	if listed, err := d.conn.Sessions(t.Context(), store.SessionFilter{API: true}); err != nil || len(listed) != 0 {
		t.Errorf("%d sessions were made, %v", len(listed), err)
	}
	// The other clients of the paths that both ask for read their own form.
	if out := d.do(http.MethodGet, "/v1/models/x", ``, nil); out.Error.Code != "model_not_found" || strings.Contains(out.body, `"type":"error"`) {
		t.Errorf("%s", out.body)
	}
	if out := d.do(http.MethodPost, passChat, `{}`, version); out.Error.Param != "model" {
		t.Errorf("%s", out.body)
	}
}

// TestMessagesPing keeps a stream alive in the words of its format while the model thinks; what
// fails then is an event.
func TestMessagesPing(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct{ alive, failed string }{
		passMessages: {"event: ping\ndata: {\"type\":\"ping\"}\n\n", "event: error\ndata: {\"error\":{"},
		passChat:     {": keep-alive\n\n", "data: {\"error\":{"},
	} {
		alive := make(chan struct{})
		m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
			<-alive
			refuses(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`)(w, r)
		})
		d := newHarness(t, m).door(func(c *compat.Config) { c.KeepAlive = time.Millisecond })
		response, err := http.Post(d.server.URL+path, "application/json", strings.NewReader(`{"model":"main","stream":true,"messages":[{"role":"user","content":"hi"}]}`)) //nolint:noctx // it ends
		fatal(t, err)
		first := make([]byte, len(c.alive))
		if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != c.alive {
			t.Errorf("%s: %v %q", path, err, first)
		}
		close(alive)
		rest, err := io.ReadAll(response.Body)
		response.Body.Close()
		if _, last, ok := strings.Cut(string(rest), c.failed); err != nil || !ok || !strings.Contains(last, "PROVIDER_AUTH") || strings.Contains(string(rest), "message_start") {
			t.Errorf("%s: %v %s", path, err, rest)
		}
	}
}

// TestMessagesKey shows a token as Anthropic's clients do: it opens what it was given there and
// nowhere else, and what it does not open is said in their form.
func TestMessagesKey(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("Hello."))).serve("127.0.0.1:0")
	good := h.add(control.TokenRequest{Name: "good", Scopes: []regie.TokenScope{regie.ScopeCompletions}})
	lesser := h.add(control.TokenRequest{Name: "lesser", Scopes: []regie.TokenScope{regie.ScopeRead}})
	for which, c := range map[string]struct{ key, want string }{
		"good":     {good.Secret, `{"text":"Hello."}`},
		"wrong":    {"sk-ant-x", `{"error":["AuthenticationError",401,"authentication_error","NO_TOKEN"]}`},
		"no scope": {lesser.Secret, `{"error":["PermissionDeniedError",403,"permission_error","MISSING_SCOPE"]}`},
	} {
		t.Run(which, func(t *testing.T) {
			newNPMProgram(t, anthropicScript).prints(c.want, h.served.URL+"/v1", "key", c.key)
		})
	}
	const hi = `{"model":"main","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	as := func(key string, more ...func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del("Authorization")
			r.Header.Set("X-Api-Key", key)
			for _, change := range more {
				change(r)
			}
		}
	}
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
	}{
		"no key":                {passMessages, func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"a wrong key":           {passMessages, as(good.Secret + "x"), 401},
		"two keys":              {passMessages, as(good.Secret, func(r *http.Request) { r.Header.Add("X-Api-Key", good.Secret) }), 401},
		"beside a wrong bearer": {passMessages, as(good.Secret, bearer("x")), 401},
		"another host":          {passMessages, as(good.Secret, func(r *http.Request) { r.Host = "evil.example" }), 403},
		"another's page":        {passMessages, as(good.Secret, carrying("Origin", "https://evil.example")), 403},
		"two pages":             {passMessages, as(good.Secret, func(r *http.Request) { r.Header["Origin"] = []string{h.served.URL, "https://evil.example"} }), 403},
		"two words of pages":    {passMessages, as(good.Secret, func(r *http.Request) { r.Header["Sec-Fetch-Site"] = []string{"same-origin", "cross-site"} }), 403},
		"in the address":        {passMessages + "?api_key=" + good.Secret, as(good.Secret), 400},
	} {
		t.Run(name, func(t *testing.T) {
			response := h.ask("POST", c.path, hi, c.change) //nolint:bodyclose // the helper closes it
			said, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != c.status {
				t.Errorf("%d %s %v", response.StatusCode, said, err)
			}
			errorOf(t, string(said))
			// who tries again and again waits for it
			tried := strings.Contains(response.Header.Get("WWW-Authenticate"), "invalid_token")
			if tried != (c.status == http.StatusUnauthorized && name != "no key") {
				t.Errorf("%v", response.Header)
			}
		})
	}
	h.json("GET", "/api/v1/users/me", "", 401, nil, as(good.Secret)) // which is no place of such clients
}

// TestCompatFailedKey: a request that came to nothing leaves its key to the next one, one that was
// stored does not.
func TestCompatFailedKey(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("Hello."))).serve("127.0.0.1:0")
	key := carrying("Idempotency-Key", "k")
	hi := func(session string) string {
		return `{"model":"main","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"metadata":{"session_id":"` + session + `"}}`
	}
	for range 2 {
		h.json("POST", passMessages, hi("0197e0a1-2b3c-7d4e-8f50-61728394a5b6"), 404, nil, key)
	}
	for range 2 { // once it is stored, again
		h.json("POST", passMessages, hi(""), 200, nil, key)
	}
	if status, said := h.said("POST", passChat, hi("")+" ", key); status != http.StatusConflict || !strings.Contains(said, string(regie.CodeKeyReused)) {
		t.Errorf("another request with the key: %d %s", status, said)
	}
	h.json("POST", passMessages, hi(""), 200, nil, key) // what was refused has not freed it
}

// passesMessages opens the endpoint with a vendor of Anthropic's kind as provider near.
func passesMessages(t *testing.T, v *vendor, change func(*config.Config)) *door {
	t.Helper()
	return passes(t, v, func(c *config.Config) {
		dollar, ten := config.Dollars(1_000_000), config.Dollars(10_000_000)
		c.Providers["near"] = config.Provider{
			Name: "near", Type: config.ProviderAnthropic, BaseURL: v.URL, APIKey: "sk-ant-canary", Models: map[string]string{"fast": "claude"}, Origin: map[string]string{},
			Prices: map[string]config.Rates{config.AnyModel: {Input: &dollar, Output: &ten}},
		}
		if change != nil {
			change(c)
		}
	})
}

const messagesReply = `{"id":"msg_x","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","usage":{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":3000,"output_tokens":50}}`

const messagesStreamed = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":100,\"cache_creation_input_tokens\":20,\"cache_read_input_tokens\":3000,\"output_tokens\":1}}}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi.\"}}\n\n" +
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":50}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

// TestMessagesProxy passes requests on to a provider of Anthropic's kind: as they are, with its key
// and what the client says of the version, and logs what they used.
func TestMessagesProxy(t *testing.T) {
	t.Parallel()
	var got http.Header
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		switch {
		case strings.HasSuffix(r.URL.Path, "/count_tokens"):
			_, _ = io.WriteString(w, `{"input_tokens":77}`)
		case strings.Contains(r.Header.Get("Anthropic-Beta"), "stream"):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, messagesStreamed)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, messagesReply)
		}
	})
	d := passesMessages(t, v, nil)
	body := `{"model":"near/claude","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{}}]}],"stop_sequences":["x"]}`
	out := d.do(http.MethodPost, passMessages, body, header{"X-Api-Key": "ours", "Cookie": "c=1"})
	if out.body != messagesReply || v.last() != passMessages+" "+strings.Replace(body, "near/claude", "claude", 1) {
		t.Errorf("%d %s\nsent %s", out.status, out.body, v.last())
	}
	if got.Get("X-Api-Key") != "sk-ant-canary" || got.Get("Anthropic-Version") != "2023-06-01" || got.Get("Cookie") != "" || got.Get("Authorization") != "" {
		t.Errorf("%v", got)
	}
	out = d.do(http.MethodPost, passMessages, body, header{"Anthropic-Version": "2026-10-21", "Anthropic-Beta": "stream-1"})
	if out.body != messagesStreamed || got.Get("Anthropic-Version") != "2026-10-21" || got.Get("Anthropic-Beta") != "stream-1" {
		t.Errorf("%s %v", out.body, got)
	}
	for _, call := range d.logged(2) {
		if call.Usage != (regie.Usage{Input: 3120, Output: 50, CacheRead: 3000}) || call.Model != "claude" || !call.Money.Known || call.Money.Cost == 0 {
			t.Errorf("%+v", call)
		}
	}
	out = d.do(http.MethodPost, passMessages+"/count_tokens", `{"model":"near/claude","messages":[]}`, nil)
	if out.body != `{"input_tokens":77}` || !strings.HasPrefix(v.last(), "/v1/messages/count_tokens ") {
		t.Errorf("%s", out.body)
	}
	free := 0
	for _, call := range d.logged(3) {
		if call.Usage == (regie.Usage{}) && call.Money.Known && call.Money.Cost == 0 {
			free++
		}
	}
	if free != 1 {
		t.Errorf("%d calls cost nothing", free)
	}
	for path, model := range map[string]string{passMessages: "far/x", passChat: "near/claude", "/v1/responses": "near/claude", passMessages + "/count_tokens": "far/x"} {
		if out := d.do(http.MethodPost, path, `{"model":"`+model+`","messages":[]}`, nil); out.status != http.StatusBadRequest || !strings.Contains(out.body, "does not support /v1/") {
			t.Errorf("%s for %s: %d %s", path, model, out.status, out.body)
		}
	}
	ids := d.do(http.MethodGet, "/v1/models", "", header{"Anthropic-Version": "2023-06-01"})
	if !strings.Contains(ids.body, `"near/claude"`) || strings.Contains(ids.body, `"openai/scripted"`) {
		t.Errorf("%s", ids.body)
	}
	if ids := d.do(http.MethodGet, "/v1/models", "", nil); strings.Contains(ids.body, `"near/claude"`) || !strings.Contains(ids.body, `"openai/scripted"`) {
		t.Errorf("%s", ids.body)
	}
}
