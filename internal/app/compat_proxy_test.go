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

// passes opens the endpoint with a vendor as provider far.
func passes(t *testing.T, v *vendor, change func(*config.Config)) *door {
	t.Helper()
	b := newHarness(t, newModel(t, replyWith("agent")))
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

// TestCompatProxy passes requests on: with the values as they are but for the model's name, with
// the provider's key, and logs them.
func TestCompatProxy(t *testing.T) {
	t.Parallel()
	v := newVendor(t, answersWhole)
	d := passes(t, v, nil)
	out := d.do(http.MethodPost, passChat, `{ "stop":["x"], "model" : "far/big/one", "messages":[{"role":"user","content":"hi"}],"n":1,"temperature":0.70,"unknown":{"a":1} }`, nil)
	if out.status != http.StatusOK || out.body != wholeReply {
		t.Errorf("%d %s", out.status, out.body)
	}
	if want := `/v1/chat/completions {"stop":["x"],"model":"big/one","messages":[{"role":"user","content":"hi"}],"n":1,"temperature":0.70,"unknown":{"a":1}}`; v.last() != want {
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
	reply := streamedReply + streamedUsage
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, reply+"data: [DONE]\n\n")
	})
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
	reply = streamedReply + "data: {\"choices\": [ ], \"usage\": {\"prompt_tokens\": 40}}\n\n" // with spaces
	if out := d.do(http.MethodPost, passChat, `{"model":"far/x","messages":[],"stream":true}`, nil); out.body != streamedReply+"data: [DONE]\n\n" {
		t.Errorf("%s", out.body)
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

// TestCompatProxyCut cuts a stream for the client where its provider's was cut, so that it does not
// look whole.
func TestCompatProxyCut(t *testing.T) {
	t.Parallel()
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, streamedReply)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	d := passes(t, v, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.server.URL+passChat, strings.NewReader(`{"model":"far/x","stream":true,"messages":[]}`))
	fatal(t, err)
	response, err := http.DefaultClient.Do(r)
	fatal(t, err)
	got, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err == nil || string(got) != streamedReply {
		t.Errorf("it looks whole (%v): %s", err, got)
	}
	if call := d.logged(1)[0]; call.Code != regie.CodeTruncatedStream {
		t.Errorf("%+v", call)
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
	fatal(t, err)
	response, err := http.DefaultClient.Do(r)
	fatal(t, err)
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

// passingHouse serves with a vendor as providers far and near.
func passingHouse(t *testing.T, v *vendor, change func(*config.Config)) *house {
	t.Helper()
	d := passesMessages(t, v, change)
	d.close()
	return d.serve("127.0.0.1:0")
}

// keyed asks with a key and reads the answer.
func (h *house) keyed(path, key, body string) (status int, text string, of http.Header) {
	h.t.Helper()
	response := h.ask(http.MethodPost, path, body, carrying("Idempotency-Key", key))
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	fatal(h.t, err)
	return response.StatusCode, string(data), response.Header
}
