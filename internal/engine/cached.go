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
	// Entry is what the store keeps of an answer, nil where it is not worth it; Stored tells what
	// became of that.
	Entry(q provider.Question, reply *provider.Reply) *store.CachedReply
	Stored(ctx context.Context, kept *store.CachedReply, err error)
	// Forget drops the answers that came from a session.
	Forget(session regie.ID)
}

// caches reports whether the round's answers may come from the response cache, and go into it.
func (r *run) caches() bool { return r.cfg.Cache != nil && r.policy.Cache }

// keyed begins the key of a conversation that was opened with a head.
func (r *run) keyed(head provider.Head) *provider.Key {
	if !r.caches() || r.policy.CacheIfTold &&
		!r.thread.model.Capabilities(head.Model).Temperature.Carried(head.ReasoningEffort) {
		return nil
	}
	return provider.NewKey(head, provider.KeyTerms{
		Asker:    provider.Asker{Workspace: r.session.WorkspaceID, User: r.session.UserID, Session: r.session.ID},
		Provider: r.round.Provider, Settings: r.round.Pin, Dialect: r.round.Dialect, Fold: r.cfg.CacheFold,
	})
}

// send sends what was made ready, or has the answer from the response cache. A summary is nobody's
// answer and is never cached.
func (r *run) send(ctx context.Context, conversation provider.Conversation,
	sink func(provider.Delta),
) (*provider.Reply, error) {
	send := func() (*provider.Reply, error) {
		return r.cfg.Breakers.Call(ctx, r.round.Provider, r.session.ID, r.due, func() (*provider.Reply, error) {
			r.sent = true
			return conversation.Send(ctx, sink)
		})
	}
	r.question = provider.Question{}
	if r.thread.key == nil || r.summary != nil {
		return send()
	}
	r.question = provider.Question{
		Asker: provider.Asker{Workspace: r.session.WorkspaceID, User: r.session.UserID, Session: r.session.ID},
		Key:   r.thread.key.Sum(r.tail()), Provider: r.round.Provider, Model: r.round.Model,
	}
	return r.cfg.Cache.Ask(ctx, r.question, send, r.answers)
}

// answers reports whether a reply is a whole answer without calls: only such a one is kept.
func (r *run) answers(reply *provider.Reply) bool {
	parts := reply.Parts
	if r.json != nil {
		turn := r.json.Read(parts)
		if turn.Errors != nil {
			return false
		}
		parts = turn.Parts
	}
	return !reply.Cut && len(parts) > 0 && !slices.ContainsFunc(parts,
		func(p provider.Part) bool { return p.Type == regie.PartCall })
}

// cached has an answer stored in the response cache with it, or its use counted.
func (r *run) cached(in *store.Reply, reply *provider.Reply) {
	switch {
	case r.question.Key.IsZero():
	case !reply.Cached.IsZero():
		in.Hit = r.question.Key
	case r.answers(reply):
		in.Keep = r.cfg.Cache.Entry(r.question, reply)
	}
}

// counted are the tokens of a reply as they are believed. One from the response cache cost none.
func (r *run) counted(reply *provider.Reply, size int) regie.Usage {
	if !reply.Cached.IsZero() {
		return regie.Usage{}
	}
	return r.thread.gauge.Counted(reply.Usage, size, replyBytes(reply.Parts), r.cfg.MaxOutput, r.replyBound())
}

// say adds turns to the thread that is sent, and to what is known of it as a question.
func (t *thread) say(turns []provider.Turn) {
	t.conversation.Append(turns...)
	if t.key != nil {
		t.key.Append(turns...)
	}
}
