package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/storetest"
)

// fallbackHarness has the providers one, two and three in its file: the first is the agent's, the
// others are its fallbacks.
func fallbackHarness(t *testing.T, one, two, three string) *harness {
	t.Helper()
	file := "providers:\n"
	fallback := []string{}
	for name, address := range map[string]string{"one": one, "two": two, "three": three} {
		if address != "" {
			file += "  " + name + ": {type: openai, base_url: \"" + address + "/v1\", models: {medium: of-" + name + "}}\n"
		}
	}
	for _, name := range []string{"two", "three"} {
		if strings.Contains(file, "  "+name+":") {
			fallback = append(fallback, name)
		}
	}
	file += "agents: {main: {provider: one, model: medium, fallback: [" + strings.Join(fallback, ", ") + "]}}\n"
	path := filepath.Join(t.TempDir(), "regie.yaml")
	fatal(t, os.WriteFile(path, []byte(file), 0o600))
	env := map[string]string{"REGIE_DATA_DIR": filepath.Join(t.TempDir(), "data"), "REGIE_CONFIG": path, "HOME": t.TempDir()}
	settings, err := config.Load(func(name string) string { return env[name] }, config.Flags{})
	fatal(t, err)
	if os.Getenv("REGIE_TEST_STORE") == "postgres" {
		settings.Database = storetest.Postgres(t)
	}
	return &harness{t: t, root: t.TempDir(), settings: settings}
}

// refusesWith is a model server that refuses everything.
func refusesWith(status int, words string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"`+words+`"}}`, status)
	}
}

// fallbacksOf are the fallbacks that a session's log tells.
func fallbacksOf(events []regie.Event) (out []regie.Fallback) {
	for i := range events {
		var f regie.Fallback
		if events[i].Type == regie.EventFallback && json.Unmarshal(events[i].Body, &f) == nil {
			out = append(out, f)
		}
	}
	return out
}

// TestFallback has a provider fail until its tries are used up: the next one goes on with the same
// exchange and with the round, under its own name; what each was sent is shown byte for byte, and a
// replay compares it. The next round begins with the first provider again.
func TestFallback(t *testing.T) {
	t.Parallel()
	broken := newModel(t)
	for range 3 { // whatever the thread holds
		broken.steps = append(broken.steps, refusesWith(500, "on fire"))
	}
	answers := newModel(t, replyWith("I look.", call{"a", "files__list_files", `{}`}), replyWith("nothing here"))
	b := fallbackHarness(t, broken.server.URL, answers.server.URL, "")
	conn := b.impatient()
	in := b.request(everything)
	run := b.send(conn, in)
	view := b.await(conn, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED")
	if broken.count() != 3 || answers.count() != 2 || len(view.Exchanges) != 2 || len(view.Exchanges[0].Attempts) != 3 {
		t.Fatalf("asked %d and %d times, %+v", broken.count(), answers.count(), view.Exchanges)
	}
	for _, e := range view.Exchanges {
		if e.Provider != "two" || e.Model != "of-two" || e.Reply.Author.Provider != "two" || e.Reply.Author.Model != "of-two" {
			t.Errorf("exchange %d was answered by %s / %s, says %+v", e.Number, e.Provider, e.Model, e.Reply.Author)
		}
		for _, a := range e.Attempts {
			if a.Provider != "one" || a.Model != "of-one" || a.Request.IsZero() {
				t.Errorf("%+v", a)
			}
		}
	}
	if view.Round.Provider != "one" || view.Session.Provider != "one" {
		t.Errorf("the round is of %s, the session of %s", view.Round.Provider, view.Session.Provider)
	}
	said := fallbacksOf(b.eventsOf(conn, view))
	if len(said) != 1 || said[0].Provider != "two" || said[0].Instead != "one" || said[0].Code != regie.CodeProviderBusy || !strings.Contains(said[0].Text, "on fire") || said[0].Exchange != 1 {
		t.Errorf("told: %+v", said)
	}
	if replayed, err := conn.Replay(t.Context(), run.RoundID); err != nil || replayed.Identical != 2 || replayed.Difference != 0 {
		t.Errorf("%+v, %v", replayed, err)
	}
	// What would be sent now is the first provider's again, and so is what is sent.
	now, err := conn.Prompt(t.Context(), dispatch.PromptRequest{SessionID: run.SessionID})
	if err != nil || now.Provider != "one" || now.Model != "of-one" {
		t.Errorf("next: %s / %s, %v", now.Provider, now.Model, err)
	}
	in.ClientID, in.Text = regie.NewID().String(), "and now?"
	run = b.send(conn, in)
	before := broken.count()
	answers.steps = append(answers.steps, replyWith("still nothing"))
	if view = b.await(conn, run); broken.count() == before || view.Exchanges[0].Provider != "two" {
		t.Errorf("the next round did not begin with its own provider: %+v", view.Exchanges[0].Exchange)
	}
}

// TestFallbackWhen is for which failures another provider is asked, and what people are told where
// none answers.
func TestFallbackWhen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		one, two, three http.HandlerFunc
		asked           [3]int
		by              string
		note            []string
	}{
		"no key":        {refusesWith(401, "no key"), replyWith("hi"), nil, [3]int{1, 1, 0}, "two", nil},
		"no credit":     {refusesWith(402, "pay"), replyWith("hi"), nil, [3]int{1, 1, 0}, "two", nil},
		"no such model": {refusesWith(404, "no such model"), replyWith("hi"), nil, [3]int{1, 1, 0}, "two", nil},
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>sign in</html>"))
		}, replyWith("hi"), nil, [3]int{1, 1, 0}, "two", nil},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, replyWith("hi"), nil, [3]int{1, 1, 0}, "two", nil},
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+strings.Repeat("x", 9<<20)+"\n\n")
		}, replyWith("hi"), nil, [3]int{1, 1, 0}, "two", nil},
		"an unprocessable request": {refusesWith(422, "what?"), replyWith("hi"), nil, [3]int{1, 0, 0}, "", []string{"what?"}},
		"a bad request":            {refusesWith(400, "what?"), replyWith("hi"), nil, [3]int{1, 0, 0}, "", []string{"what?"}},
		"two of three":             {refusesWith(503, "busy"), refusesWith(404, "no such model"), replyWith("hi"), [3]int{3, 1, 1}, "three", nil},
		"none":                     {refusesWith(503, "busy"), refusesWith(401, "no key"), refusesWith(500, "broken"), [3]int{3, 1, 3}, "", []string{"one: ", "busy", "two: ", "no key", "three: ", "broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			models := make([]*model, 3)
			for i, step := range []http.HandlerFunc{c.one, c.two, c.three} {
				if models[i] = newModel(t, step); step == nil {
					models[i] = newModel(t, replyWith("not asked"))
				}
			}
			b := fallbackHarness(t, models[0].server.URL, models[1].server.URL, models[2].server.URL)
			conn := b.impatient()
			run := b.send(conn, b.request(everything))
			view := b.await(conn, run)
			if got := [3]int{models[0].count(), models[1].count(), models[2].count()}; got != c.asked {
				t.Errorf("asked %v", got)
			}
			if c.by != "" {
				expect(t, view, regie.EndAnswered)
				if view.Exchanges[0].Provider != c.by {
					t.Errorf("answered by %s", view.Exchanges[0].Provider)
				}
				return
			}
			expect(t, view, regie.EndProviderError)
			for _, words := range c.note {
				if !strings.Contains(view.Round.EndNote.String(), words) {
					t.Errorf("%q is not in %q", words, view.Round.EndNote)
				}
			}
		})
	}
}

// TestFallbackDialect: a fallback is asked in its own dialect, with its own first level, and what
// it calls runs; what it was sent is rebuilt.
func TestFallbackDialect(t *testing.T) {
	t.Parallel()
	one := newModel(t, replyWith("I look.", call{"a", "files__list_files", `{}`}), refusesWith(401, "no credit"))
	two := newModel(t, refusesWith(400, "no step"), replyWith(`{"pre_text":"Once more.","data_commands":[{"type":"files.list_files","params":{"path":"."}}]}`), replyWith(`{"pre_text":"done"}`))
	b := fallbackHarness(t, one.server.URL, two.server.URL, "")
	models := func(name string) (provider.Provider, error) {
		address, vendor := one.server.URL, ""
		if name == "two" {
			address, vendor = two.server.URL, "perplexity" // whose models make no calls
		}
		p, err := openai.New(openai.Config{Name: name, BaseURL: address + "/v1", Vendor: vendor})
		if err != nil {
			return nil, err
		}
		return providertest.Watch(p, func(err error) { t.Errorf("a prompt that some vendor refuses: %v", err) }), nil
	}
	conn := b.attach(app.Options{Models: models, TuneEngine: func(c *engine.Config) {
		c.Backoff = func(int, time.Duration) time.Duration { return 0 }
	}})
	run := b.send(conn, b.request(everything))
	view := b.await(conn, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
	if len(view.Exchanges) != 3 || view.Exchanges[0].Provider != "one" || view.Exchanges[2].Provider != "two" || view.Exchanges[2].Reply.AI.Text() != "done" {
		t.Fatalf("%+v", view.Exchanges)
	}
	if !strings.Contains(string(two.requests[0]), "data_commands") || strings.Contains(string(two.requests[0]), `"tools"`) {
		t.Errorf("the fallback was sent %s", two.requests[0])
	}
	p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{RoundID: run.RoundID, Exchange: 1})
	if err != nil || !p.Exact() || string(p.Body) != string(one.requests[0]) {
		t.Errorf("the first request: %v\n%s\n%s", err, p.Body, one.requests[0])
	}
}

// TestFallbackIsResumed has an engine end while a fallback is asked: the next one goes on with the
// fallback, and the first provider is not asked again. Under other settings of the fallback it is
// not asked at all.
func TestFallbackIsResumed(t *testing.T) {
	t.Parallel()
	for name, changed := range map[string]bool{"as it was": false, "under other settings": true} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan struct{}, 1)
			var mu sync.Mutex
			hangs := true
			one := newModel(t, refusesWith(401, "no key"))
			two := newModel(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				hang := hangs
				mu.Unlock()
				if hang {
					arrived <- struct{}{}
					<-r.Context().Done()
					return
				}
				replyWith("hi")(w, r)
			})
			b := fallbackHarness(t, one.server.URL, two.server.URL, "")
			conn := b.impatient()
			run := b.send(conn, b.request(everything))
			<-arrived
			fatal(t, conn.Close())
			mu.Lock()
			hangs = false
			mu.Unlock()
			if changed {
				p := b.settings.Providers["two"]
				p.APIKeyEnv = "ANOTHER"
				b.settings.Providers["two"] = p
			}
			conn = b.impatient()
			view := b.await(conn, run)
			if changed {
				if expect(t, view, regie.EndProviderError); one.count() != 2 || two.count() != 1 {
					t.Errorf("asked %d and %d times", one.count(), two.count())
				}
				return
			}
			if expect(t, view, regie.EndAnswered); one.count() != 1 || two.count() != 2 || view.Exchanges[0].Provider != "two" || len(view.Exchanges[0].Attempts) != 2 {
				t.Errorf("asked %d and %d times, %+v", one.count(), two.count(), view.Exchanges)
			}
		})
	}
}

// TestFallbackFormats goes on from each wire format in each other one, in the middle of a loop with
// calls.
func TestFallbackFormats(t *testing.T) {
	t.Parallel()
	for _, from := range providertest.Formats() {
		for _, to := range providertest.Formats() {
			if from.Name == to.Name {
				continue
			}
			t.Run(from.Name+" to "+to.Name, func(t *testing.T) {
				first := providertest.NewServer(t, &from,
					providertest.Scene{Thinking: "hm", Signature: "s", Text: []string{"I look."}, Calls: []provider.Call{{ID: "a", Name: "files__list_files", Arguments: "{}"}}}, providertest.Scene{Status: 401, Message: "no key"})
				second := providertest.NewServer(t, &to, providertest.Scene{Text: []string{"?"}}, providertest.Scene{Text: []string{"done"}})
				b := fallbackHarness(t, "http://127.0.0.1:1", "http://127.0.0.1:2", "")
				for name, p := range map[string]config.Provider{
					"one": {Name: "one", Type: from.Name, BaseURL: first.URL + from.Path}, "two": {Name: "two", Type: to.Name, BaseURL: second.URL + to.Path},
				} {
					if p.Type == "responses" { // which is no type, but an API of one
						p.Type, p.API = config.ProviderOpenAI, config.APIResponses
					}
					p.Origin, p.Models = map[string]string{}, map[string]string{"medium": "scripted"}
					b.settings.Providers[name] = p
				}
				b.settings.BaseURL, b.settings.Model = first.URL+from.Path, "scripted"
				view := b.run(everything)
				expect(t, view, regie.EndAnswered, "SUCCEEDED")
				if view.Exchanges[1].Provider != "two" || view.Exchanges[1].Reply.AI.Text() != "done" {
					t.Errorf("%+v", view.Exchanges[1])
				}
				exact(t, b, view)
			})
		}
	}
}

// exact asserts that each model call of a run is rebuilt as it was sent.
func exact(t *testing.T, b *harness, view store.RoundView) {
	t.Helper()
	conn := b.attach(app.Options{ReadOnly: true})
	if out, err := conn.Replay(t.Context(), view.Round.ID); err != nil || out.Difference != 0 || out.Identical < len(view.Exchanges) {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestUnpricedFallback refuses a fallback of unknown price where a budget holds: it would never be
// asked, and nobody would know (decision 29).
func TestUnpricedFallback(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Done."))
	b := fallbackHarness(t, m.server.URL, "http://127.0.0.1:1", "")
	b.settings.File.Budget = config.Budget{USDPerDay: 1_000_000}
	dollar := config.Dollars(1_000_000)
	price := func(name string) {
		p := b.settings.Providers[name]
		p.Prices = map[string]config.Rates{config.AnyModel: {Input: &dollar, Output: &dollar}}
		b.settings.Providers[name] = p
	}
	price("one")
	conn := b.connect()
	request := b.request(everything)
	if _, err := conn.Submit(t.Context(), request); regie.CodeOf(err) != regie.CodePriceUnknown || !strings.Contains(err.Error(), "providers.two.prices") {
		t.Error(err)
	}
	fatal(t, conn.Close())
	price("two")
	if view := b.ask(request); view.Round.End != regie.EndAnswered {
		t.Errorf("%s %s", view.Round.End, view.Round.EndNote)
	}
}
