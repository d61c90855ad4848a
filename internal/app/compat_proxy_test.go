package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/store"
)

// vendor is a provider's server that answers what is passed on to it.
type vendor struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string
	auth []string
}

func newVendor(t *testing.T, answer http.HandlerFunc) *vendor {
	t.Helper()
	v := &vendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		v.mu.Lock()
		v.got, v.auth = append(v.got, r.URL.Path+" "+string(data)), append(v.auth, r.Header.Get("Authorization"))
		v.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) last() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.got[len(v.got)-1]
}

func (v *vendor) asked() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.got)
}

const wholeReply = `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":4000,"completion_tokens":500,"prompt_tokens_details":{"cached_tokens":1000}},"odd":[1e2]}`

func answersWhole(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, wholeReply)
}

const (
	streamedReply = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":null}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
	streamedUsage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":5}}\n\n"
)

func answersStreamed(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, streamedReply+streamedUsage+"data: [DONE]\n\n")
}

// TestCompatProxySpaced passes a stream on of a provider that writes JSON with spaces: what only
// says the usage that nobody asked for is kept back all the same.
func TestCompatProxySpaced(t *testing.T) {
	t.Parallel()
	d := passes(t, newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, streamedReply+"data: {\"choices\": [ ], \"usage\": {\"prompt_tokens\": 40}}\n\ndata: [DONE]\n\n")
	}), nil)
	if out := d.do(http.MethodPost, passChat, `{"model":"far/x","messages":[],"stream":true}`, nil); out.body != streamedReply+"data: [DONE]\n\n" {
		t.Errorf("%s", out.body)
	}
}

// passes opens the endpoint with a vendor as provider far.
func passes(t *testing.T, v *vendor, change func(*config.Config)) *door {
	t.Helper()
	b := newBed(t, newModel(t, says("agent")))
	if b.settings.Providers == nil {
		b.settings.Providers = map[string]config.Provider{}
	}
	dollar, ten := config.Dollars(1_000_000), config.Dollars(10_000_000) // for a million tokens
	b.settings.Providers["far"] = config.Provider{
		Name: "far", Type: config.ProviderOpenAI, API: config.APIChat, BaseURL: v.URL + "/v1", APIKey: "sk-canary-far", Origin: map[string]string{},
		Prices: map[string]config.Rates{config.AnyModel: {Input: &dollar, Output: &ten}},
	}
	if change != nil {
		change(&b.settings)
	}
	d := b.door()
	return d
}

// logged returns the log of what was passed on, once it has so many calls.
func (d *door) logged(want int) []store.Proxied {
	d.t.Helper()
	calls, err := d.conn.Proxied(d.t.Context(), want)
	if err != nil || len(calls) != want {
		d.t.Fatalf("%d calls are logged, %v", len(calls), err)
	}
	return calls
}

const passChat = "/v1/chat/completions"

// TestCompatProxy passes requests on: as they are but for the model's name, with the provider's
// key, and logs them.
func TestCompatProxy(t *testing.T) {
	t.Parallel()
	v := newVendor(t, answersWhole)
	d := passes(t, v, nil)
	out := d.do(http.MethodPost, passChat, `{ "stop":["x"], "model" : "far/big/one", "messages":[{"role":"user","content":"hi"}],"n":1,"temperature":0.70,"unknown":{"a":1} }`, nil)
	if out.status != http.StatusOK || out.body != wholeReply {
		t.Errorf("%d %s", out.status, out.body)
	}
	if want := `/v1/chat/completions { "stop":["x"], "model" : "big/one", "messages":[{"role":"user","content":"hi"}],"n":1,"temperature":0.70,"unknown":{"a":1} }`; v.last() != want {
		t.Errorf("sent %s", v.last())
	}
	if v.auth[0] != "Bearer sk-canary-far" {
		t.Errorf("key %q", v.auth[0])
	}
	call := d.logged(1)[0]
	if call.Provider != "far" || call.Model != "big/one" || call.Usage != (regie.Usage{Input: 4000, Output: 500, CacheRead: 1000}) || !call.Money.Known || call.Money.Cost == 0 || call.Code != "" {
		t.Errorf("%+v", call)
	}
	if listed, err := d.conn.Sessions(t.Context(), store.SessionFilter{API: true}); err != nil || len(listed) != 0 {
		t.Errorf("%d sessions, %v", len(listed), err)
	}
	for name, body := range map[string]string{
		"a key that stands twice":  `{"model":"far/x","messages":[],"model":"far/y"}`,
		"twice, further down":      `{"model":"far/x","messages":[{"role":"user","role":"system","content":"x"}]}`,
		"two bounds":               `{"model":"far/x","messages":[],"max_tokens":1,"max_completion_tokens":5}`,
		"a bound that is none":     `{"model":"far/x","messages":[],"max_tokens":-1}`,
		"more than one object":     `{"model":"far/x","messages":[]} {}`,
		"options that are no such": `{"model":"far/x","messages":[],"stream_options":7}`,
	} {
		if out := d.do(http.MethodPost, passChat, body, nil); out.status != http.StatusBadRequest && out.status != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, out.status, out.body)
		}
	}
	if v.asked() != 1 {
		t.Errorf("the vendor was asked %d times", v.asked())
	}
}

// TestCompatProxyStream passes a stream on: what the client did not ask for is asked for and not
// passed back.
func TestCompatProxyStream(t *testing.T) {
	t.Parallel()
	v := newVendor(t, answersStreamed)
	d := passes(t, v, nil)
	plain := d.do(http.MethodPost, passChat, `{"model":"far/x","messages":[],"stream":true}`, nil)
	if plain.body != streamedReply+"data: [DONE]\n\n" || !strings.HasSuffix(v.last(), `"stream":true,"stream_options":{"include_usage":true}}`) {
		t.Errorf("%s\nsent %s", plain.body, v.last())
	}
	asked := d.do(http.MethodPost, passChat, `{"model":"far/x","stream_options":{"include_usage":true},"messages":[],"stream":true}`, nil)
	if asked.body != streamedReply+streamedUsage+"data: [DONE]\n\n" {
		t.Errorf("%s", asked.body)
	}
	off := d.do(http.MethodPost, passChat, `{"stream_options":{"include_usage":false},"model":"far/x","messages":[],"stream":true}`, nil)
	if off.body != streamedReply+"data: [DONE]\n\n" || !strings.Contains(v.last(), `{"stream_options":{"include_usage":true},"model":"x"`) {
		t.Errorf("%s\nsent %s", off.body, v.last())
	}
	for _, call := range d.logged(3) {
		if call.Usage.Input != 40 || call.Usage.Output != 5 {
			t.Errorf("%+v", call)
		}
	}
}

// TestCompatProxyRefused passes a refusal on, without the key that it quotes, and follows no
// redirect.
func TestCompatProxyRefused(t *testing.T) {
	t.Parallel()
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), "canary") {
			w.Header().Set("Content-Type", "application/json")
			http.Error(w, `{"error":{"message":"bad key sk-canary-far"}}`, http.StatusUnauthorized)
			return
		}
	})
	d := passes(t, v, nil)
	out := d.do(http.MethodPost, passChat, `{"model":"far/x","messages":[]}`, nil)
	if out.status != http.StatusUnauthorized || strings.Contains(out.body, "canary") || !strings.Contains(out.body, "bad key") {
		t.Errorf("%d %s", out.status, out.body)
	}
	if call := d.logged(1)[0]; call.Code != regie.CodeProviderAuth || call.Money.Cost != 0 || !call.Money.Known {
		t.Errorf("%+v", call)
	}
	away := newVendor(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, v.URL, http.StatusTemporaryRedirect) })
	d = passes(t, away, nil)
	if out := d.do(http.MethodPost, passChat, `{"model":"far/x","messages":[]}`, nil); out.status != http.StatusBadGateway || v.asked() != 1 {
		t.Errorf("%d %s", out.status, out.body)
	}
}

// TestCompatProxyBudget holds what is passed on to the caps: side by side, no more is spent and
// reserved than they allow.
func TestCompatProxyBudget(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		<-free
		answersWhole(w, r)
	})
	d := passes(t, v, func(c *config.Config) { c.File.Budget = config.Budget{USDPerDay: 100_000} })
	statuses := make(chan int, 4)
	for range 4 { // each may cost $0.05 for 5,000 tokens of an answer, and a little for its prompt
		go func() {
			out := d.do(http.MethodPost, passChat, `{"model":"far/x","messages":[],"max_tokens":4900}`, nil)
			statuses <- out.status
		}()
	}
	first := []int{<-statuses, <-statuses} // those that the cap leaves nothing for
	close(free)
	second := []int{<-statuses, <-statuses}
	if fmt.Sprint(first, second) != "[429 429] [200 200]" {
		t.Errorf("%v, then %v", first, second)
	}
	for _, call := range d.logged(2) {
		if call.Money.Reserved == 0 || call.Money.Reserved > 50_100 || !call.Money.Known {
			t.Errorf("%+v", call.Money)
		}
	}
	spent, err := d.conn.Spent(t.Context(), "")
	if err != nil || spent.All.Cost == 0 || spent.All.Cost > 100_000 {
		t.Errorf("%+v %v", spent, err)
	}
	// What is left shortens the answer, also of one that set no bound itself.
	out := d.do(http.MethodPost, passChat, `{"model":"far/x","messages":[]}`, nil)
	var sent struct {
		MaxTokens int `json:"max_tokens"`
	}
	_, body, _ := strings.Cut(v.last(), " ")
	if err := json.Unmarshal([]byte(body), &sent); err != nil || out.status != http.StatusOK || sent.MaxTokens < 1000 || sent.MaxTokens > 8192 {
		t.Errorf("%d %s, sent %s", out.status, out.body, body)
	}
}

// TestCompatProxyCache answers the same once more where the temperature allows it.
func TestCompatProxyCache(t *testing.T) {
	t.Parallel()
	v := newVendor(t, answersWhole)
	d := passes(t, v, nil)
	if d.settings.Database != "" {
		t.Skip("where several processes share a database nothing is held in memory")
	}
	for i, c := range []struct {
		body string
		asks int
		hit  string
	}{
		{`{"model":"far/x","messages":[{"role":"user","content":"hi"}],"temperature":0}`, 1, ""},
		{`{"temperature":0, "model":"far/x","messages":[{"content":"hi","role":"user"}]}`, 1, "hit"},
		{`{"model":"far/x","messages":[{"role":"user","content":"ho"}],"temperature":0}`, 2, ""},
		{`{"model":"far/x","messages":[{"role":"user","content":"hi"}],"temperature":0.5}`, 3, ""},
		{`{"model":"far/x","messages":[{"role":"user","content":"hi"}],"temperature":0.5}`, 4, ""},
	} {
		out := d.do(http.MethodPost, passChat, c.body, nil)
		if out.body != wholeReply || v.asked() != c.asks || out.header.Get("X-Regie-Cache") != c.hit {
			t.Errorf("%d: asked %d times, %q: %s", i, v.asked(), out.header.Get("X-Regie-Cache"), out.body)
		}
	}
	cached := 0
	for _, call := range d.logged(5) {
		if call.Cached && call.Money.Cost == 0 && call.Usage.Input == 0 {
			cached++
		}
	}
	if cached != 1 {
		t.Errorf("%d calls are logged as cached", cached)
	}
}

// TestCompatProxyCachesStreams gives a stream that came to its end again, byte for byte, and none
// that did not, or that calls something.
func TestCompatProxyCachesStreams(t *testing.T) {
	t.Parallel()
	const calls = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"x"}}]},"finish_reason":null}]}` + "\n\n"
	body := ""
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	})
	d := passes(t, v, nil)
	if d.settings.Database != "" {
		t.Skip("where several processes share a database nothing is held in memory")
	}
	for i, c := range []struct {
		content, says string
		asks          int
		hit           string
	}{
		{"hi", streamedReply + streamedUsage + "data: [DONE]\n\n", 1, ""},
		{"hi", "", 1, "hit"},
		{"no end", streamedReply, 2, ""},
		{"no end", streamedReply, 3, ""},
		{"calls", calls + "data: [DONE]\n\n", 4, ""},
		{"calls", calls + "data: [DONE]\n\n", 5, ""},
		{"fails", strings.Replace(streamedReply, `"stop"`, `"error"`, 1) + "data: [DONE]\n\n", 6, ""},
		{"fails", strings.Replace(streamedReply, `"stop"`, `"error"`, 1) + "data: [DONE]\n\n", 7, ""},
		{"errs", streamedReply + `data: {"error":{"message":"overloaded"}}` + "\n\ndata: [DONE]\n\n", 8, ""},
		{"errs", streamedReply + `data: {"error":{"message":"overloaded"}}` + "\n\ndata: [DONE]\n\n", 9, ""},
		{"unfinished", strings.Replace(streamedReply, `"stop"`, `null`, 1) + "data: [DONE]\n\n", 10, ""},
		{"unfinished", strings.Replace(streamedReply, `"stop"`, `null`, 1) + "data: [DONE]\n\n", 11, ""},
		{"long", "data: " + strings.Repeat("x", 1<<20) + "\n\ndata: [DONE]\n\n", 12, ""},
		{"long", "data: y\n\ndata: [DONE]\n\n", 13, ""},
	} {
		body = c.says
		want := strings.Replace(c.says, streamedUsage, "", 1)
		if c.hit != "" {
			want = streamedReply + "data: [DONE]\n\n"
		}
		out := d.do(http.MethodPost, passChat, `{"model":"far/x","stream":true,"messages":[{"role":"user","content":"`+c.content+`"}],"temperature":0}`, nil)
		if out.body != want || v.asked() != c.asks || out.header.Get("X-Regie-Cache") != c.hit || out.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%d: asked %d times, %q: %.300s", i, v.asked(), out.header, out.body)
		}
	}
	cached := 0
	for _, call := range d.logged(14) {
		if call.Cached && call.Usage == (regie.Usage{}) && call.Money.Known {
			cached++
		}
	}
	if cached != 1 {
		t.Errorf("%d calls are logged as cached", cached)
	}
}

// TestCompatProxyCut cuts a stream for the client where its provider's was cut, so that it does not
// look whole, cached or not.
func TestCompatProxyCut(t *testing.T) {
	t.Parallel()
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, streamedReply)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	d := passes(t, v, nil)
	for _, temperature := range []string{"1", "0"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.server.URL+passChat, strings.NewReader(`{"model":"far/x","stream":true,"messages":[],"temperature":`+temperature+`}`))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil || string(got) != streamedReply {
			t.Errorf("at temperature %s it looks whole (%v): %s", temperature, err, got)
		}
	}
	for _, call := range d.logged(2) {
		if call.Code != regie.CodeTruncatedStream {
			t.Errorf("%+v", call)
		}
	}
}

// TestCompatProxyLeft books a stream that its client leaves at what was sent and received, and
// frees its reservation (decision 72).
func TestCompatProxyLeft(t *testing.T) {
	t.Parallel()
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 40 {
			chunk(w, map[string]any{"content": "word "})
		}
		<-r.Context().Done()
	})
	d := passes(t, v, func(c *config.Config) {
		far, dollar := c.Providers["far"], config.Dollars(1_000_000)
		far.Prices = map[string]config.Rates{config.AnyModel: {Input: &dollar, Output: &dollar}}
		c.Providers["far"] = far
		capped(c)
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	question := strings.Repeat("why ", 1000)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.server.URL+passChat, strings.NewReader(`{"model":"far/x","stream":true,"messages":[{"role":"user","content":"`+question+`"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for words := 0; words < 40 && lines.Scan(); {
		if strings.Contains(lines.Text(), "word ") {
			words++
		}
	}
	leave()
	call := d.logged(1)[0]
	if call.Code != regie.CodeStopRequested && call.Code != regie.CodeTruncatedStream || call.Usage.Output != 40 || call.Usage.Input < 1000 || call.Usage.Input > 1200 ||
		!call.Money.Known || call.Money.Cost != call.Usage.Input+40 || call.Money.Reserved <= call.Money.Cost {
		t.Errorf("booked %+v", call)
	}
}

// TestProxyCachesWhole: an answer that says itself that it is none, or not all of one, is given to
// nobody else, in any API, whatever its status is.
func TestProxyCachesWhole(t *testing.T) {
	t.Parallel()
	const answer = `{"id":"r","object":"response","status":"STATUS","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi."}]}],"usage":{"input_tokens":1,"output_tokens":1}}`
	body := ""
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		kind := "application/json"
		if strings.HasPrefix(body, "event:") {
			kind = "text/event-stream"
		}
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	})
	d := passesMessages(t, v, func(c *config.Config) {
		all := c.Providers["far"]
		all.Name, all.API = "all", config.APIResponses
		c.Providers["all"] = all
	})
	if d.settings.Database != "" {
		t.Skip("where several processes share a database nothing is held in memory")
	}
	status := func(word string) string { return strings.Replace(answer, "STATUS", word, 1) }
	event := func(name, word string) string {
		return "event: " + name + "\ndata: {\"type\":\"" + name + "\",\"response\":" + status(word) + "}\n\n"
	}
	asked := 0
	for name, c := range map[string]struct {
		path, model, says string
		kept              bool
	}{
		"completed":         {"/v1/responses", "all/x", status("completed"), true},
		"incomplete":        {"/v1/responses", "all/x", status("incomplete"), false},
		"failed":            {"/v1/responses", "all/x", status("failed"), false},
		"in progress":       {"/v1/responses", "all/x", status("in_progress"), false},
		"incomplete stream": {"/v1/responses", "all/x", event("response.incomplete", "incomplete"), false},
		"completed stream":  {"/v1/responses", "all/x", event("response.created", "in_progress") + event("response.completed", "completed"), true},
		"chat":              {passChat, "far/x", wholeReply, true},
		"chat, error":       {passChat, "far/x", strings.Replace(wholeReply, `"stop"`, `"error"`, 1), false},
		"chat, filtered":    {passChat, "far/x", strings.Replace(wholeReply, `"stop"`, `"content_filter"`, 1), false},
		"chat, an error":    {passChat, "far/x", `{"error":{"message":"overloaded","code":"529"}}`, false},
		"messages":          {passMessages, "near/claude", messagesReply, true},
		"messages, full":    {passMessages, "near/claude", strings.Replace(messagesReply, "end_turn", "model_context_window_exceeded", 1), false},
	} {
		body = c.says
		hits := 0
		for range 2 {
			request := `{"model":"` + c.model + `","temperature":0,"max_tokens":9,"metadata":{"name":"` + name + `"},"messages":[]}`
			out := d.do(http.MethodPost, c.path, request, nil)
			if out.status != http.StatusOK || out.body != c.says {
				t.Errorf("%s: %d %s", name, out.status, out.body)
			}
			if out.header.Get("X-Regie-Cache") == "hit" {
				hits++
			}
		}
		if kept := v.asked() == asked+1; kept != c.kept || hits == 1 != c.kept {
			t.Errorf("%s: asked %d times, %d hits", name, v.asked()-asked, hits)
		}
		asked = v.asked()
	}
}

// passingHouse serves with a vendor as providers far and near.
func passingHouse(t *testing.T, v *vendor, change func(*config.Config)) *house {
	t.Helper()
	d := passesMessages(t, v, change)
	d.close()
	return d.serve("127.0.0.1:0")
}

// keyed asks with a key and reads the answer.
func (h *house) keyed(path, key, body string, changes ...func(*http.Request)) (status int, text string, of http.Header) {
	h.t.Helper()
	response := h.ask(http.MethodPost, path, body, append(changes, carrying("Idempotency-Key", key))...)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return response.StatusCode, string(data), response.Header
}
