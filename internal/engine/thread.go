package engine

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// thread is the round's conversation with its model: rebuilt from the store when the round is claimed, and from then on given
// each message that was stored. It is a cache; a new one from the store has the same bytes (spec 2.3, decision 31).
type thread struct {
	conversation      provider.Conversation
	local             bool // the provider costs nothing by declaration
	firstSeq, lastSeq int64
	// callIDs are the provider's call ids of the thread: one that repeats is issued anew (decision 8).
	callIDs map[string]struct{}
	// guard tells honest repetition from going round in circles; nil until the thread was read.
	guard *guard
}

// unusableModel says that the round's provider is not configured here, or cannot serve what is asked of it.
type unusableModel struct{ err error }

// Error implements error.
func (u unusableModel) Error() string { return u.err.Error() }

// Unwrap returns the reason.
func (u unusableModel) Unwrap() error { return u.err }

// warm opens the conversation, once.
func (r *run) warm(ctx context.Context) error {
	if r.thread.conversation != nil {
		return nil
	}
	model, err := r.cfg.Providers(r.round.Provider)
	if err != nil {
		return unusableModel{err}
	}
	level1, err := r.level(ctx, r.round.Level1)
	if err != nil {
		return err
	}
	level2, err := r.level(ctx, r.round.Level2)
	if err != nil {
		return err
	}
	conversation, err := model.Open(provider.Head{
		Model: r.round.Model, Level1: level1, Level2: level2, Tools: declared(r.cfg.Tools, r.policy.Questions), MaxOutput: r.cfg.MaxOutput, ParallelCalls: true,
	})
	if err != nil {
		return unusableModel{err}
	}
	if r.known == nil {
		stored, err := r.cfg.Store.Thread(ctx, r.session.ID, 0)
		if err != nil {
			return err
		}
		r.known = &stored
	}
	r.thread = thread{conversation: conversation, local: model.Capabilities(r.round.Model).Local, callIDs: map[string]struct{}{}, guard: newGuard(r.cfg.Tools)}
	r.replay(*r.known)
	r.known = nil
	return nil
}

// maxLevels bounds the prompt levels that are kept in memory; each has some kilobytes.
const maxLevels = 256

// level returns a frozen prompt level by its hash. What has a hash never changes, so it is kept.
func (r *run) level(ctx context.Context, hash regie.Hash) (string, error) {
	if hash.IsZero() {
		return "", nil
	}
	r.levelsMu.Lock()
	level, ok := r.levels[hash]
	r.levelsMu.Unlock()
	if ok {
		return level, nil
	}
	data, err := r.cfg.Store.Blob(ctx, hash)
	if err != nil {
		return "", err
	}
	r.levelsMu.Lock()
	defer r.levelsMu.Unlock()
	if len(r.levels) >= maxLevels {
		clear(r.levels)
	}
	r.levels[hash] = string(data)
	return string(data), nil
}

// replay appends stored messages. A message that brings results is given the calls of the reply before it.
func (r *run) replay(stored store.Thread) {
	byID := map[regie.ID]regie.Call{}
	for i := range stored.Messages {
		m := &stored.Messages[i]
		calls := stored.Calls[m.ID]
		for _, c := range calls {
			byID[c.ID] = c
		}
		if m.System != nil {
			calls = make([]regie.Call, 0, len(m.System.CallIDs))
			for _, id := range m.System.CallIDs {
				calls = append(calls, byID[id])
			}
		}
		// A reply whose batch is still open is not part of a prompt: prompts are built from whole batches (decision 4).
		if r.round.Phase == regie.PhaseCalls && r.reply != nil && m.ID == r.reply.ID {
			r.rememberIDs(calls)
			continue
		}
		r.appendMessage(m, calls)
	}
}

// appendMessage adds a stored message to the conversation.
func (r *run) appendMessage(m *regie.Message, calls []regie.Call) {
	r.rememberIDs(calls)
	r.thread.guard.observe(m, calls)
	turns := prompt.Turns(m, calls, tool.WireName)
	if len(turns) == 0 {
		return
	}
	r.thread.conversation.Append(turns...)
	if r.thread.firstSeq == 0 {
		r.thread.firstSeq = m.Seq
	}
	r.thread.lastSeq = m.Seq
}

func (r *run) rememberIDs(calls []regie.Call) {
	for i := range calls {
		r.thread.callIDs[calls[i].ProviderCallID] = struct{}{}
	}
}

// closeBatch adds a settled batch: the reply with its calls, the message with their results, and what steered the round meanwhile.
func (r *run) closeBatch(results *regie.Message, out store.Outcome) {
	if r.thread.conversation == nil {
		return // nothing was asked yet in this process; warm will read the batch from the store
	}
	r.appendMessage(r.reply, r.calls)
	r.appendMessage(results, r.calls)
	for i := range out.Admitted {
		r.appendMessage(&out.Admitted[i], nil)
	}
}

// declared turns the registry into what the model is told, always in the same order. Without anybody to answer no question is offered
// (decision 37).
func declared(tools *tool.Registry, questions bool) []provider.Tool {
	out := make([]provider.Tool, 0, len(tools.Declared()))
	for _, d := range tools.Declared() {
		if d.Role == regie.RoleQuestion && !questions {
			continue
		}
		out = append(out, provider.Tool{Name: d.Name, Description: d.Description, Parameters: d.Parameters})
	}
	return out
}
