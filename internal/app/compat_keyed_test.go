package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
)

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

// TestProxyKey: the same key with the same request has the same answer, streamed or not, cached or
// not, over a restart too, and its provider is asked once.
func TestProxyKey(t *testing.T) {
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		streams := r.Header.Get("Anthropic-Beta") == "streams"
		switch {
		case strings.HasSuffix(r.URL.Path, "/messages") && streams:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, messagesStreamed)
		case strings.HasSuffix(r.URL.Path, "/messages"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, messagesReply)
		default:
			answersWhole(w, r)
		}
	})
	h := passingHouse(t, v, nil)
	requests := []struct {
		path, body, want string
		change           func(*http.Request)
	}{
		{passChat, `{"model":"far/x","messages":[]}`, wholeReply, func(*http.Request) {}},
		{passChat, `{"model":"far/x","messages":[],"temperature":0}`, wholeReply, func(*http.Request) {}},
		{passMessages, `{"model":"near/x","messages":[],"max_tokens":9}`, messagesReply, func(*http.Request) {}},
		{passMessages, `{"model":"near/x","messages":[],"max_tokens":9,"stream":true}`, messagesStreamed, carrying("Anthropic-Beta", "streams")},
		{passMessages, `{"model":"near/x","messages":[],"max_tokens":9,"stream":true,"temperature":0}`, messagesStreamed, carrying("Anthropic-Beta", "streams")},
	}
	for round := range 3 {
		for i, c := range requests {
			status, text, header := h.keyed(c.path, fmt.Sprint("k", i), c.body, c.change)
			if again := header.Get("Idempotent-Replayed") == "true"; status != http.StatusOK || text != c.want || again != (round > 0) {
				t.Errorf("round %d, request %d: %d %s %v", round, i, status, text, header)
			}
		}
		if round == 1 {
			if err := h.engine.Close(); err != nil {
				t.Fatal(err)
			}
			h = h.serve("127.0.0.1:0")
		}
	}
	if v.asked() != len(requests) {
		t.Errorf("the vendor was asked %d times for %d requests", v.asked(), len(requests))
	}
	other := map[string]func() (int, string, http.Header){
		"another body": func() (int, string, http.Header) { return h.keyed(passChat, "k0", requests[0].body+" ") },
		"another header": func() (int, string, http.Header) {
			return h.keyed(passMessages, "k2", requests[2].body, requests[3].change)
		},
		"an agent": func() (int, string, http.Header) {
			return h.keyed(passChat, "k0", `{"model":"main","messages":[{"role":"user","content":"hi"}]}`)
		},
	}
	for name, ask := range other {
		if status, text, _ := ask(); status != http.StatusConflict || !strings.Contains(text, "KEY_REUSED") || v.asked() != len(requests) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, text, _ := h.keyed(passChat, "fresh", requests[0].body); status != http.StatusOK || v.asked() != len(requests)+1 {
		t.Errorf("%d %s", status, text)
	}
}

// TestProxyKeyRefused: a request that a provider refuses, or never had, leaves its key to the next
// one; one that it had keeps it, and is not made again.
func TestProxyKeyRefused(t *testing.T) {
	answer := answersWhole
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) { answer(w, r) })
	h := passingHouse(t, v, func(c *config.Config) {
		gone := c.Providers["far"]
		gone.Name, gone.BaseURL = "gone", "http://127.0.0.1:1/v1"
		c.Providers["gone"] = gone
	})
	for _, body := range []string{`{"model":"far/x","messages":[]}`, `{"model":"far/x","messages":[],"temperature":0}`} {
		key, before := body, v.asked()
		answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		if status, _, of := h.keyed(passChat, key, body); status != http.StatusTooManyRequests || of.Get("Retry-After") != "7" {
			t.Errorf("%s: %d %v", body, status, of)
		}
		answer = func(w http.ResponseWriter, _ *http.Request) { // cut
			w.Header().Set("Content-Length", "999")
			_, _ = io.WriteString(w, "{")
		}
		for range 2 {
			want := map[bool]string{true: "PROVIDER_BROKEN", false: "OUTCOME_UNKNOWN"}[v.asked() == before+1]
			if status, text, of := h.keyed(passChat, key, body); status < 400 || !strings.Contains(text, want) || of.Get("X-Should-Retry") != "false" {
				t.Errorf("%s: %d %s, want %s", body, status, text, want)
			}
		}
		if v.asked() != before+2 {
			t.Errorf("%s: asked %d times", body, v.asked()-before)
		}
	}
	for range 2 {
		if status, text, _ := h.keyed(passChat, "gone", `{"model":"gone/x","messages":[]}`); status != http.StatusBadGateway {
			t.Errorf("%d %s", status, text)
		}
	}
}

// TestProxyKeyTogether: who asks again while the first one is with its provider, or after that has
// left, has its answer.
func TestProxyKeyTogether(t *testing.T) {
	began, on := make(chan struct{}), make(chan struct{})
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-on
		answersWhole(w, r)
	})
	h := passingHouse(t, v, nil)
	const body = `{"model":"far/x","messages":[]}`
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(leaving, http.MethodPost, h.served.URL+passChat, strings.NewReader(body))
		if err == nil {
			r.Header.Set("Authorization", "Bearer "+h.token)
			r.Header.Set("Idempotency-Key", "k")
			var response *http.Response
			if response, err = http.DefaultClient.Do(r); err == nil {
				_ = response.Body.Close()
			}
		}
		left <- err
	}()
	<-began
	leave()
	if err := <-left; err == nil {
		t.Error("it has not left")
	}
	texts := make(chan string, 4)
	for range cap(texts) {
		go func() {
			_, text, _ := h.keyed(passChat, "k", body)
			texts <- text
		}()
	}
	close(on)
	for range cap(texts) {
		if text := <-texts; text != wholeReply {
			t.Errorf("%s", text)
		}
	}
	if v.asked() != 1 {
		t.Errorf("asked %d times", v.asked())
	}
}

// proxyKilled is what a child process of TestProxyKeyKilled is told.
type proxyKilled struct {
	Settings config.Config
	Body     string
}

// TestProxyKeyKilled kills a server with SIGKILL while its provider has a request with a key, or
// when it has answered it: the provider is not asked again.
func TestProxyKeyKilled(t *testing.T) {
	if said := os.Getenv("REGIE_TEST_PROXY_KILLED"); said != "" {
		passAndDie(t, said)
		return
	}
	for _, body := range []string{`{"model":"far/x","messages":[]}`, `{"model":"far/x","messages":[],"stream":true}`} {
		for name, early := range map[string]bool{"answered": false, "asked": true} {
			t.Run(name, func(t *testing.T) {
				started := make(chan *os.Process, 1)
				want := wholeReply
				v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
					if early {
						_ = (<-started).Kill()
						<-r.Context().Done()
						return
					}
					if strings.Contains(body, "stream") {
						answersStreamed(w, r)
						return
					}
					answersWhole(w, r)
				})
				if strings.Contains(body, "stream") {
					want = streamedReply + "data: [DONE]\n\n"
				}
				d := passes(t, v, nil)
				d.close()
				said, err := json.Marshal(proxyKilled{d.settings, body})
				if err != nil {
					t.Fatal(err)
				}
				child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxyKeyKilled$", "-test.count=1")
				child.Env = append(os.Environ(), "REGIE_TEST_PROXY_KILLED="+string(said))
				var out bytes.Buffer
				child.Stdout, child.Stderr = &out, &out
				if err := child.Start(); err != nil {
					t.Fatal(err)
				}
				started <- child.Process
				err = child.Wait()
				if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
					t.Fatalf("the child was not killed: %v\n%s", err, &out)
				}
				h := d.serve("127.0.0.1:0")
				status, text, of := h.keyed(passChat, "k", body)
				if early && (status != http.StatusConflict || !strings.Contains(text, "OUTCOME_UNKNOWN") || of.Get("X-Should-Retry") != "false") || !early && text != want {
					t.Errorf("%d %s", status, text)
				}
				if status, text, _ := h.keyed(passChat, "k", body+" "); status != http.StatusConflict || !strings.Contains(text, "KEY_REUSED") {
					t.Errorf("%d %s", status, text)
				}
				if v.asked() != 1 {
					t.Errorf("the vendor was asked %d times", v.asked())
				}
			})
		}
	}
}

func passAndDie(t *testing.T, said string) {
	t.Helper()
	var in proxyKilled
	if err := json.Unmarshal([]byte(said), &in); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	engine, err := app.OpenEngine(ctx, app.Options{Config: in.Settings})
	if err != nil {
		t.Fatal(err)
	}
	served, err := engine.Serve(ctx, app.ServeConfig{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	token, err := app.ReadToken(in.Settings.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, served.URL+passChat, strings.NewReader(in.Body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Idempotency-Key", "k")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", response.StatusCode, err)
	}
	die(t)
}
