package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// used is what each reply of these tests claims: 4,000 tokens of a prompt, 1,000 of them cached,
// and 500 of a reply.
const used = `{"prompt_tokens":4000,"completion_tokens":500,"prompt_tokens_details":{"cached_tokens":1000}}`

// each is the price of such a reply: 3,000 + 100 + 5,000 millionths.
const each = 8100

// priced has the models of a harness cost something: a dollar for a million tokens of a prompt, a
// tenth of it cached, ten for a reply.
func (b *harness) priced(budget config.Budget) {
	b.t.Helper()
	p := b.settings.Providers[b.settings.Provider]
	dollar, tenth, ten := config.Dollars(1_000_000), config.Dollars(100_000), config.Dollars(10_000_000)
	p.Prices = map[string]config.Rates{config.AnyModel: {Input: &dollar, CachedInput: &tenth, Output: &ten}}
	b.settings.Providers[b.settings.Provider] = p
	b.settings.File.Budget = budget
}

// steps are replies that look around, and then what ends the run.
func steps(n int, last http.HandlerFunc) []http.HandlerFunc {
	var out []http.HandlerFunc
	for range n {
		out = append(out, claims(used, replyWith("", call{"c" + string(rune('a'+len(out))), "files__list_files", `{"pattern":"` + strings.Repeat("*", len(out)+1) + `"}`})))
	}
	return append(out, claims(used, last))
}

// asked is the bound of the reply that each request named.
func (m *model) asked() (out []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, body := range m.requests {
		var request struct {
			MaxTokens           int `json:"max_tokens"`
			MaxCompletionTokens int `json:"max_completion_tokens"`
		}
		if err := json.Unmarshal(body, &request); err != nil {
			m.t.Error(err)
		}
		out = append(out, max(request.MaxTokens, request.MaxCompletionTokens))
	}
	return out
}

// TestCost stores what each call cost, and adds it up by round, session and day.
func TestCost(t *testing.T) {
	t.Parallel()
	m := newModel(t, steps(1, replyWith("Done."))...)
	b := newHarness(t, m)
	b.priced(config.Budget{})
	conn, run := b.start(everything)
	view := b.await(conn, run)
	for _, x := range view.Exchanges {
		if x.Money != (regie.Money{Cost: each, Known: true}) {
			t.Errorf("exchange %d: %+v", x.Number, x.Money)
		}
	}
	whole := regie.Spending{Cost: 2 * each, Known: true}
	session, err := conn.Session(t.Context(), run.SessionID)
	rounds, err2 := conn.List(t.Context(), store.RoundFilter{Root: b.root, Limit: 10})
	today, err3 := conn.Spent(t.Context(), b.root)
	if err != nil || err2 != nil || err3 != nil {
		t.Fatal(err, err2, err3)
	}
	if view.Spent != whole || session.Spent != whole || rounds[0].Spent != whole || today.Workspace != whole || today.All != whole {
		t.Errorf("the run %+v, in the list %+v, the session %+v, today %+v", view.Spent, rounds[0].Spent, session.Spent, today)
	}
	if elsewhere, err := conn.Spent(t.Context(), "/elsewhere"); err != nil || elsewhere.Workspace != (regie.Spending{Known: true}) || elsewhere.All != whole {
		t.Errorf("elsewhere %+v, %v", elsewhere, err)
	}
}

// TestCostOfOwn is nothing, by declaration, for a model of a server that people run themselves and
// of which the settings say no price. What else answers at an address of this machine may be a
// gateway to somebody who is paid: what it costs is unknown, and where a budget holds it is refused
// before anything is stored or sent (decision 29).
func TestCostOfOwn(t *testing.T) {
	t.Parallel()
	for vendor, known := range map[string]bool{"vllm": true, "lmstudio": true, "llamacpp": true, "": false, "groq": false} {
		m := newModel(t, claims(used, replyWith("Done.")))
		b := newHarness(t, m)
		p := b.settings.Providers[b.settings.Provider]
		ten := config.Dollars(10_000_000)
		p.Prices = map[string]config.Rates{"another": {Input: &ten, Output: &ten}}
		p.Vendor = vendor
		b.settings.Providers[b.settings.Provider] = p
		if view := b.run(everything); view.Spent.Cost != 0 || view.Spent.Known != known {
			t.Errorf("a model of %q cost %+v", vendor, view.Spent)
		}
		b.settings.File.Budget = config.Budget{USDPerDay: 1_000_000}
		conn := b.connect()
		run, err := conn.Submit(t.Context(), b.request(everything))
		if known {
			fatal(t, err)
			expect(t, b.await(conn, run), regie.EndAnswered)
			continue
		}
		if regie.CodeOf(err) != regie.CodePriceUnknown || !strings.Contains(err.Error(), "providers.openai.prices") || len(b.rounds(conn, 1)) != 1 || m.count() != 1 {
			t.Errorf("under a budget %q: %v", vendor, err)
		}
	}
}

// TestCapEndsChat makes replies shorter where a cap leaves little, stops before the call that could
// cost more than it leaves, and goes on when the person writes again under a higher one (decision
// 29).
func TestCapEndsChat(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]config.Budget{
		"session":   {USDPerSession: 30_000},
		"workspace": {USDPerWorkspace: 30_000},
		"day":       {USDPerDay: 30_000, USDPerRound: 900_000},
		"round":     {USDPerRound: 30_000, USDPerDay: 900_000},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, steps(4, replyWith("Done."))...)
			b := newHarness(t, m)
			b.priced(budget)
			conn := b.connect()
			request := b.request(everything)
			run := b.send(conn, request)
			view := b.await(conn, run)
			asked := m.asked()
			if view.Round.End != regie.EndLimit || len(asked) != 2 || asked[0] <= asked[1] || asked[1] < 1000 || asked[0] >= 8192 {
				t.Errorf("%s %s after requests for %v tokens", view.Round.End, view.Round.EndNote, asked)
			}
			if view.Spent != (regie.Spending{Cost: 2 * each, Known: true}) {
				t.Errorf("it cost %+v", view.Spent)
			}
			last := view.Exchanges[2]
			if last.State != regie.ExchangeFailed || len(last.Attempts) != 1 || last.Attempts[0].Code != regie.CodeOverBudget || last.Attempts[0].Money != (regie.Money{Known: true}) {
				t.Errorf("the call that was not made: %s %+v", last.State, last.Attempts)
			}
			said := limitSaid(t, conn, run)
			if !strings.Contains(said, "$0.03 ") || !strings.Contains(said, "budget.usd_per_"+name) || !strings.Contains(said, "Done: files.list_files (2).") || !strings.Contains(said, "rite again") {
				t.Errorf("said: %s", said)
			}
			for _, x := range view.Exchanges[:2] {
				if p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{RoundID: x.RoundID, Exchange: x.Number}); err != nil || !p.Exact() {
					t.Errorf("exchange %d cannot be shown: %v", x.Number, err)
				}
			}
			fatal(t, conn.Close())
			b.priced(config.Budget{USDPerSession: 900_000, USDPerDay: 900_000, USDPerRound: 900_000})
			conn = b.connect()
			request.ClientID, request.Text = regie.NewID().String(), "go on"
			run = b.send(conn, request)
			if view = b.await(conn, run); view.Round.End != regie.EndAnswered || view.Spent.Cost != 3*each {
				t.Errorf("%s %s, it cost %+v", view.Round.End, view.Round.EndNote, view.Spent)
			}
			if asked = m.asked(); !slices.Equal(asked[2:], []int{8192, 8192, 8192}) {
				t.Errorf("replies of %v tokens were asked for", asked)
			}
		})
	}
}

// limitSaid is what the person was told when the run stopped.
func limitSaid(t *testing.T, conn service, run dispatch.Run) string {
	t.Helper()
	session, err := conn.Session(t.Context(), run.SessionID)
	fatal(t, err)
	for _, m := range slices.Backward(session.Thread) {
		if s := m.Message.System; s != nil && s.Type == regie.SystemLimitReached {
			return s.Summary
		}
	}
	return ""
}

// TestCapPausesAutomation leaves a run that nobody watches paused, says so, and goes on with it
// once the cap is raised (decision 44).
func TestCapPausesAutomation(t *testing.T) {
	t.Parallel()
	m := newModel(t, steps(4, replyWith("", call{"done", "session__complete", `{"summary":"All is seen."}`}))...)
	b := newHarness(t, m)
	b.priced(config.Budget{USDPerRound: 30_000})
	conn := b.connect()
	run := b.send(conn, b.unattended(""))
	for range 2 { // resumed under the same cap it is paused again
		b.state(conn, run.SessionID, regie.SessionPaused)
		view, err := conn.Get(t.Context(), run.RoundID)
		if err != nil || view.Round.State != regie.RoundRunning || view.Round.Stop != regie.StopPause || m.count() != 2 || view.Spent.Cost != 2*each {
			t.Fatalf("%s %s after %d requests, %+v, %v", view.Round.State, view.Round.Stop, m.count(), view.Spent, err)
		}
		fatal(t, conn.Wait(t.Context(), run.RoundID))
		fatal(t, conn.Resume(t.Context(), run.RoundID))
		fatal(t, conn.Wait(t.Context(), run.RoundID))
	}
	notices := 0
	paused := b.round(conn, run.RoundID)
	for _, e := range b.eventsOf(conn, paused) {
		var n regie.Notice
		if e.Type == regie.EventNotice && json.Unmarshal(e.Body, &n) == nil && n.Kind == regie.NoticeBudget {
			if notices++; len(n.Said) != 3 || !strings.Contains(n.Said[2].String(), "budget.usd_per_round") || !strings.Contains(n.Said[2].String(), "resume") {
				t.Errorf("told: %v", n.Said)
			}
		}
	}
	if notices < 2 {
		t.Errorf("people were told %d times", notices)
	}
	fatal(t, conn.Close())
	b.priced(config.Budget{USDPerRound: 900_000})
	conn = b.connect()
	fatal(t, conn.Resume(t.Context(), run.RoundID))
	view := b.await(conn, run)
	closed(t, view, regie.SessionCompleted)
	if view.Spent != (regie.Spending{Cost: 5 * each, Known: true}) {
		t.Errorf("it cost %+v", view.Spent)
	}
}

// TestPriceUnknown refuses a model of unknown price where a budget holds, before anything is stored
// or sent.
func TestPriceUnknown(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Done."))
	b := newHarness(t, m)
	dollar := config.Dollars(1_000_000)
	p := b.settings.Providers[b.settings.Provider]
	p.Prices = map[string]config.Rates{"another": {Input: &dollar, Output: &dollar}}
	p.Vendor = "vllm"
	b.settings.Providers[b.settings.Provider] = p
	b.settings.File.Budget = config.Budget{USDPerDay: 1_000_000}
	if view := b.run(everything); view.Round.End != regie.EndAnswered { // it is their own, and costs nothing
		t.Errorf("%s %s", view.Round.End, view.Round.EndNote)
	}
	p.Vendor = "groq" // somebody else's, whose address is of this machine
	b.settings.Providers[b.settings.Provider] = p
	conn := b.connect()
	_, err := conn.Submit(t.Context(), b.request(everything))
	if regie.CodeOf(err) != regie.CodePriceUnknown || !strings.Contains(err.Error(), "providers.openai.prices") {
		t.Errorf("%v", err)
	}
	if rounds, err := conn.List(t.Context(), store.RoundFilter{Root: b.root, Limit: 10}); err != nil || len(rounds) != 1 {
		t.Errorf("%d rounds, %v", len(rounds), err)
	}
}
