package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store"
)

// caching sets up the agent's cache.
func (b *harness) caching(cache string, temperature *float64) {
	b.settings.File.Agents = map[string]config.Agent{"main": {Cache: cache, Temperature: temperature}}
}

// cachedAt is when the model gave the answer of a run, where it came from the response cache.
func cachedAt(view store.RoundView) time.Time {
	return view.Exchanges[len(view.Exchanges)-1].Reply.AI.Cached
}

// TestCache has the same asked again: the answer comes from the cache, over a restart too, costs
// nothing, and goes through the same steps as any reply. A reply with calls is asked for each time.
func TestCache(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("I look.", call{"a", "files__list_files", `{}`}), replyWith("two files"))
	b := newHarness(t, m)
	b.caching("on", nil)
	first := b.run(everything)
	if !cachedAt(first).IsZero() || m.count() != 2 {
		t.Fatalf("asked %d times", m.count())
	}
	second := b.run(everything) // another engine: from the database
	expect(t, second, regie.EndAnswered, "SUCCEEDED")
	if m.count() != 3 || cachedAt(second).IsZero() {
		t.Fatalf("asked %d times, cached at %v", m.count(), cachedAt(second))
	}
	last := second.Exchanges[1]
	if last.Usage != (regie.Usage{}) || !last.Money.Known || last.Money.Cost != 0 || *last.Reply.Usage != (regie.Usage{}) || last.Reply.AI.Text() != "two files" {
		t.Errorf("%+v, %+v", last.Exchange, last.Reply)
	}
	if second.Round.Tokens >= first.Round.Tokens {
		t.Errorf("tokens: %d, then %d", first.Round.Tokens, second.Round.Tokens)
	}
	conn := b.connect()
	for range 2 {
		view := b.await(conn, b.send(conn, b.request(everything)))
		if cachedAt(view).IsZero() || len(view.Exchanges[1].Attempts) != 0 {
			t.Errorf("asked again: %+v", view.Exchanges[1])
		}
	}
	replayed, err := conn.Replay(t.Context(), second.Round.ID)
	if err != nil || replayed.Difference != 0 || replayed.Identical != 2 || replayed.Steps[0].Cached || !replayed.Steps[1].Cached {
		t.Errorf("%+v, %v", replayed, err)
	}
}

// TestCacheIsTheAgents: it is on where the agent says so, or where the temperature is 0, and the
// model is told the temperature.
func TestCacheIsTheAgents(t *testing.T) {
	t.Parallel()
	zero, half := 0.0, 0.5
	for name, c := range map[string]struct {
		cache       string
		temperature *float64
		on          bool
	}{
		"by default": {"", nil, false}, "auto": {"auto", nil, false}, "auto at 0": {"auto", &zero, true}, "by default at 0": {"", &zero, true},
		"auto above 0": {"auto", &half, false}, "on": {"on", &half, true}, "off": {"off", &zero, false},
	} {
		m := newModel(t, replyWith("hello"))
		b := newHarness(t, m)
		b.caching(c.cache, c.temperature)
		b.run(everything)
		if again := b.run(everything); cachedAt(again).IsZero() == c.on {
			t.Errorf("%s: cached at %v", name, cachedAt(again))
		}
		if told := strings.Contains(m.last(), `"temperature":`); told != (c.temperature != nil) {
			t.Errorf("%s: the model was sent %s", name, m.last())
		}
	}
}

// TestCacheIsNobodyElses: another workspace, another model and other words of the prompt are other
// questions, and with a removed session its answers go.
func TestCacheIsNobodyElses(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("secret"))
	b := newHarness(t, m)
	b.caching("on", nil)
	conn := b.connect()
	asks := func(change func(*dispatch.RunRequest)) (store.RoundView, bool) {
		t.Helper()
		before := m.count()
		in := b.request(everything)
		change(&in)
		run := b.send(conn, in)
		return b.await(conn, run), m.count() > before
	}
	same := func(*dispatch.RunRequest) {}
	first, _ := asks(same)
	if _, asked := asks(same); asked {
		t.Error("asked again")
	}
	for name, change := range map[string]func(*dispatch.RunRequest){
		"another workspace": func(in *dispatch.RunRequest) { in.Root = t.TempDir() },
		"another model":     func(in *dispatch.RunRequest) { in.Model = "other" },
		"other limits":      func(in *dispatch.RunRequest) { in.Limits.Total = 3 }, // which level 1 names
		"other words":       func(in *dispatch.RunRequest) { in.Text = "Do it" },
	} {
		if _, asked := asks(change); !asked {
			t.Errorf("%s has the same answer", name)
		}
	}
	if _, asked := asks(func(in *dispatch.RunRequest) { in.Text = " do it\n" }); asked {
		t.Error("white space makes another question")
	}
	// The sessions that were given the answer keep it; the one that it came from takes it away.
	if _, err := conn.Remove(t.Context(), dispatch.RemoveRequest{SessionID: first.Session.ID}); err != nil {
		t.Fatal(err)
	}
	if _, asked := asks(same); !asked {
		t.Error("an answer of a removed session is given")
	}
}

// TestCacheByTemperature: temperature 0 has answers kept by itself only where the model is told it.
func TestCacheByTemperature(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model, effort, cache string
		cached               bool
	}{
		"told":                      {"claude-haiku-4-5", "", "", true},
		"not told":                  {"claude-opus-5-5", "", "", false},
		"not told with an effort":   {"claude-sonnet-4-6", "high", "auto", false},
		"not told, and on":          {"claude-opus-5-5", "", "on", true},
		"told, since it thinks not": {"claude-sonnet-4-6", "none", "", true},
		"not told in any way":       {"claude-opus-5-5", "none", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range providertest.Formats() {
				if format.Name != config.ProviderAnthropic {
					continue
				}
				server := providertest.NewServer(t, &format, providertest.Scene{Text: []string{"two files"}})
				b := fallbackHarness(t, server.URL, "", "")
				zero := 0.0
				b.settings.Providers["one"] = config.Provider{Name: "one", Type: format.Name, BaseURL: server.URL, Origin: map[string]string{}}
				b.settings.BaseURL, b.settings.Model = server.URL, c.model
				b.settings.File.Agents = map[string]config.Agent{"main": {Provider: "one", Cache: c.cache, Temperature: &zero, ReasoningEffort: c.effort}}
				first, second := b.run(everything), b.run(everything)
				if expect(t, second, regie.EndAnswered); !cachedAt(first).IsZero() || cachedAt(second).IsZero() == c.cached {
					t.Errorf("cached at %v", cachedAt(second))
				}
			}
		})
	}
}
