package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/invariant"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/tool"
	sessiontools "github.com/regie-run/regie/internal/toolkit/session"
)

// check asserts what is to hold of a session at its end, and adds its log to the transcript.
func (s *session) check() {
	s.checkCanary()
	if s.acked == 0 {
		return // nothing was said
	}
	ctx := context.Background()
	db, err := s.openStore(ctx)
	if err != nil {
		s.violate("what is left cannot be opened: %v", err)
		return
	}
	defer db.Close()
	shown := map[string]bool{}
	for _, n := range s.notes {
		mark, _, _ := strings.Cut(n.Text, " ")
		shown[n.Text] = s.shown[mark+" "+n.ID+":"]
	}
	of := invariant.Case{
		Store: db, DB: s.db, Session: s.id, Effects: s.effects, Told: s.told, Notes: s.notes, Shown: shown, Acked: max(s.acked, s.heard()), MayWait: s.plan.Left,
		Allows: s.plan.policy, Saw: s.saw, Fail: s.violate,
	}
	views, err := invariant.Check(ctx, of)
	if err != nil {
		s.violate("what is left cannot be read: %v", err)
		return
	}
	rebuilt := s.reader(db)
	for i := range views {
		s.checkRequests(ctx, rebuilt, &views[i])
	}
	events, err := db.Events(ctx, s.id, 0, 1_000_000)
	if err != nil {
		s.violate("the log cannot be read: %v", err)
	}
	s.checkStream(events)
	for i := range events {
		s.lines[byEngine] = append(s.lines[byEngine], fmt.Sprintf("%d %s %s", events[i].Seq, events[i].Type, events[i].Body))
	}
	for i := range views {
		s.list(&views[i])
	}
	from, to := int64(1), int64(len(events))
	if s.plan.Seed%forkEach != 0 {
		from += int64(s.plan.Seed*7919) % to
		to = from
	}
	invariant.Forks(ctx, of, from, to, providertest.Check)
}

// forkEach is how many sessions are forked at every event of them: one of as many. The others are
// forked at one.
const forkEach = 100

// checkCanary looks for what must not be known in everything that the engine wrote (invariant 16).
func (s *session) checkCanary() {
	files, err := filepath.Glob(filepath.Join(s.dir, "data", "*"))
	if err != nil {
		s.violate("the data directory cannot be read: %v", err)
	}
	for _, name := range files {
		if data, err := os.ReadFile(name); err != nil || bytes.Contains(data, []byte(canary)) {
			s.violate("%s has the canary (invariant 16): %v", filepath.Base(name), err)
		}
	}
}

// checkStream asserts that what was streamed, over all lives, is the log (invariant 6).
func (s *session) checkStream(events []regie.Event) {
	if len(s.stream) > len(events) {
		s.violate("%d events were streamed, the log has %d (invariant 6)", len(s.stream), len(events))
		return
	}
	for i := range s.stream {
		if s.stream[i].Seq != events[i].Seq || !bytes.Equal(s.stream[i].Body, events[i].Body) {
			s.violate("event %d was streamed as %d: %s (invariant 6)", events[i].Seq, s.stream[i].Seq, s.stream[i].Body)
		}
	}
	if s.life.at.Moment == 0 && len(s.stream) < len(events) {
		s.violate("the stream ends at %d, the log at %d (invariant 6)", len(s.stream), len(events))
	}
}

// reader is an engine that only rebuilds prompts from what is stored.
func (s *session) reader(db *sqlite.Store) *engine.Engine {
	model, err := openai.New(openai.Config{Name: "sim", BaseURL: "http://model.invalid/v1", APIKey: canary})
	if err != nil {
		s.t.Fatal(err)
	}
	own, err := s.life.tools()
	if err != nil {
		s.t.Fatal(err)
	}
	house, err := sessiontools.Tools(db.WholeResult)
	if err != nil {
		s.t.Fatal(err)
	}
	registry, err := tool.NewRegistry(slices.Concat(house, own)...)
	if err != nil {
		s.t.Fatal(err)
	}
	return engine.New(engine.Config{
		Store: db, Providers: func(string, regie.Hash) (provider.Provider, error) { return model, nil }, Tools: func(context.Context) *tool.Registry { return registry },
	})
}

// checkRequests asserts that each reply is stored with the hash of a prompt that was sent (decision
// 14), and that what is stored gives the same bytes again, however long the thread was kept warm
// (spec 2.3).
func (s *session) checkRequests(ctx context.Context, reader *engine.Engine, view *store.RoundView) {
	for i := range view.Exchanges {
		e := &view.Exchanges[i]
		if e.State == regie.ExchangeReplied && !s.bodies[e.Request] {
			s.violate("exchange %d of round %d has the hash %s, and no such prompt was sent", e.Number, view.Round.Number, e.Request)
		}
		// which is not rebuilt
		if e.Request.IsZero() || e.State == regie.ExchangeFailed && e.Purpose == regie.PurposeSummary {
			continue
		}
		sent, err := reader.Prompt(ctx, engine.PromptRequest{RoundID: e.RoundID, Exchange: e.Number})
		if err != nil || !sent.Exact() {
			s.violate("what was sent in exchange %d of round %d is rebuilt otherwise (decision 14): %v %.2000s", e.Number, view.Round.Number, err, sent.Body)
		}
		s.saw("prompt rebuilt")
	}
}

// list adds a round's rows to the transcript.
func (s *session) list(view *store.RoundView) {
	s.lines[byEngine] = append(s.lines[byEngine], fmt.Sprintf("round %d: %s %s %q %+v", view.Round.Number, view.Round.State, view.Round.End, view.Round.EndNote, view.Round.Counters))
	for i := range view.Exchanges {
		e := &view.Exchanges[i]
		for k := range e.Attempts {
			s.lines[byEngine] = append(s.lines[byEngine], fmt.Sprintf("attempt %d.%d: %s %s %q", e.Number, e.Attempts[k].Number, e.Attempts[k].Code, e.Attempts[k].Error, e.Attempts[k].Partial))
		}
		for k := range e.Calls {
			data, err := json.Marshal(&e.Calls[k])
			if err != nil {
				s.violate("a call cannot be shown: %v", err)
			}
			s.lines[byEngine] = append(s.lines[byEngine], fmt.Sprintf("call %d.%d: %s", e.Number, k, data))
		}
	}
}

// names are ids, ends of ids, and hashes: they come from chance, and hashes of what holds them.
var names = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|\b(call_)?[0-9a-f]{32,64}\b|/[^" ]*regie-sim-[0-9]+|/show [0-9a-f]{8}`)

// transcript is all that happened, with ids and hashes numbered in the order in which they come.
func (s *session) transcript() string {
	numbers := map[string]string{}
	return names.ReplaceAllStringFunc(strings.Join(slices.Concat(s.lines[:]...), "\n"), func(name string) string {
		if numbers[name] == "" {
			numbers[name] = fmt.Sprintf("#%d", len(numbers)+1)
		}
		return numbers[name]
	})
}
