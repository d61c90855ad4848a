package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/cache"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// BenchmarkCacheHit is P12: from a thread that is at hand to its answer, with the key, out of 2,000
// answers of a kilobyte each in SQLite.
func BenchmarkCacheHit(b *testing.B) {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	user, err := s.EnsureUser(ctx, "bench")
	if err != nil {
		b.Fatal(err)
	}
	workspace, err := s.EnsureWorkspace(ctx, user.ID, regie.Workspace{Name: "w", Root: "/w"})
	if err != nil {
		b.Fatal(err)
	}
	asker := provider.Asker{Workspace: workspace.ID, User: user.ID, Session: regie.NewID()}
	ask := func(n int) *provider.Key {
		head := provider.Head{Model: "m", Level1: strings.Repeat("level one ", 300), MaxOutput: 8192}
		for i := range 20 {
			head.Tools = append(head.Tools, provider.Tool{Name: fmt.Sprint("t", i), Description: strings.Repeat("does it ", 20), Parameters: json.RawMessage(`{"type":"object"}`)})
		}
		k := provider.NewKey(head, provider.KeyTerms{Asker: asker, Provider: "p", Dialect: regie.DialectNative})
		for i := range 20 {
			k.Append(provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: fmt.Sprint(n, i, strings.Repeat(" word", 100))}}})
		}
		return k
	}
	reply := &provider.Reply{Parts: []provider.Part{{Type: regie.PartText, Text: strings.Repeat("x", 1000)}}, Usage: regie.Usage{Input: 1000, Output: 250}}
	c := cache.New(cache.Config{Store: s})
	var keys []*provider.Key
	for n := range 2000 {
		k := ask(n)
		if n < 50 {
			keys = append(keys, k)
		}
		entry := c.Entry(provider.Question{Asker: asker, Key: k.Sum(provider.Tail{}), Provider: "p", Model: "m"}, reply)
		if err := keep(ctx, s, workspace.ID, user.ID, entry); err != nil {
			b.Fatal(err)
		}
	}
	errMissed := errors.New("missed")
	miss := func() (*provider.Reply, error) { return nil, errMissed }
	n := 0
	for b.Loop() {
		q := provider.Question{Asker: asker, Key: keys[n%len(keys)].Sum(provider.Tail{}), Provider: "p", Model: "m"}
		if _, err := c.Ask(ctx, q, miss, func(*provider.Reply) bool { return true }); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// keep stores an answer with the reply that ends a round, as the engine does.
func keep(ctx context.Context, s *sqlite.Store, workspace, user regie.ID, entry *store.CachedReply) error {
	session := regie.NewID()
	accepted, err := s.Submit(ctx, store.Submission{
		SessionID: session, Holder: "bench",
		New:     &regie.Session{ID: session, WorkspaceID: workspace, UserID: user, Agent: "main", Type: regie.SessionChat, Provider: "p", Model: "m"},
		Message: regie.Message{ID: regie.NewID(), Sender: regie.SenderUser, Author: regie.Author{Kind: regie.AuthorUser, ID: "u"}, Text: "go"},
		Round:   regie.Round{ID: regie.NewID(), Reason: regie.ReasonUserMessage, Agent: "main", Provider: "p", Model: "m", TraceID: "t"},
	})
	if err != nil {
		return err
	}
	entry.Expires = time.Now().Add(time.Hour)
	_, err = s.AppendReply(ctx, accepted.Fence, store.Reply{
		Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderAI, Author: regie.Author{Kind: regie.AuthorAgent, ID: "main"},
			AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: "x"}}},
		},
		Exchange: regie.Exchange{Number: 1}, Keep: entry,
		Advance: store.Advance{Phase: regie.PhaseEnd, End: &store.End{Reason: regie.EndAnswered}},
	})
	return err
}
