package engine

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// Cache is the response cache (spec 6.4): it gives answers again to who asks the same once more.
type Cache interface {
	// Ask returns the answer to a question that is kept, or has send ask the model, once for all
	// who ask the same at a time. answers says of a reply whether others may have it.
	Ask(ctx context.Context, q provider.Question, send func() (*provider.Reply, error),
		answers func(*provider.Reply) bool) (*provider.Reply, error)
	// Entry is what the store keeps of an answer, nil where it is not worth it; Stored tells that
	// it was kept.
	Entry(q provider.Question, reply *provider.Reply) *store.CachedReply
	Stored(ctx context.Context, kept *store.CachedReply)
}

// usesCache reports whether the round's answers may come from the response cache, and go into it.
func (h *promptHead) usesCache() bool { return h.cfg.Cache != nil && h.policy.Cache }

// cacheAsker returns who asks the model.
func (s *roundState) cacheAsker() provider.Asker {
	return provider.Asker{Workspace: s.session.WorkspaceID, User: s.session.UserID, Session: s.session.ID}
}

// newCacheKey begins the key of a conversation that was opened with a head.
func (b *contextBudget) newCacheKey(head provider.Head) *provider.Key {
	if !b.head.usesCache() || b.policy.CacheIfTold &&
		!b.thread.model.Capabilities(head.Model).Temperature.Carried(head.ReasoningEffort) {
		return nil
	}
	return provider.NewKey(head, provider.KeyTerms{
		Asker: b.cacheAsker(), Provider: b.round.Provider, Settings: b.round.Pin, Dialect: b.round.Dialect,
		Fold: b.cfg.CacheFold,
	})
}

// sendOrCached sends the prepared request, or takes the answer from the response cache. Summaries
// are never cached.
func (c *modelCall) sendOrCached(ctx context.Context, conversation provider.Conversation,
	sink func(provider.Delta),
) (*provider.Reply, error) {
	send := func() (*provider.Reply, error) {
		return c.cfg.Breakers.Call(ctx, c.round.Provider, c.session.ID, c.due, func() (*provider.Reply, error) {
			c.sent = true
			return conversation.Send(ctx, sink)
		})
	}
	c.question = provider.Question{}
	if c.budget.thread.key == nil || c.budget.summary != nil {
		return send()
	}
	c.question = provider.Question{
		Asker: c.cacheAsker(), Key: c.budget.thread.key.Sum(c.budget.requestTail()),
		Provider: c.round.Provider, Model: c.round.Model,
	}
	return c.cfg.Cache.Ask(ctx, c.question, send, c.isCacheable)
}

// isCacheable reports whether a reply is a whole answer without calls: only such a one is kept.
func (c *modelCall) isCacheable(reply *provider.Reply) bool {
	parts := reply.Parts
	if c.json != nil {
		turn := c.json.Read(parts)
		if turn.Errors != nil {
			return false
		}
		parts = turn.Parts
	}
	return !reply.Cut && len(parts) > 0 && !slices.ContainsFunc(parts,
		func(p provider.Part) bool { return p.Type == regie.PartCall })
}

// addCacheEntry has an answer stored in the response cache with it, or its use counted.
func (c *modelCall) addCacheEntry(in *store.Reply, reply *provider.Reply) {
	switch {
	case c.question.Key.IsZero():
	case !reply.Cached.IsZero():
		in.Hit = c.question.Key
	case c.isCacheable(reply):
		in.Keep = c.cfg.Cache.Entry(c.question, reply)
	}
}
