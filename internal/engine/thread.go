package engine

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// thread is the round's conversation with its model: rebuilt from the store when the round is
// claimed, and from then on given each message that was stored. It is a cache; a new one from the
// store has the same bytes (spec 2.3, decision 31).
type thread struct {
	conversation provider.Conversation
	// what the conversation asks; nil where the round is not answered from the response cache
	key               *provider.Key
	free              bool // the provider costs nothing by declaration
	leastOutput       int  // the least bound of a reply that it takes, in tokens
	model             provider.Provider
	head              regie.Hash // names what of the prompt is not the thread; told is the one that is stored already
	told              regie.Hash
	firstSeq, lastSeq int64
	contextSize
	// callIDs are the provider's call ids of the thread: one that repeats is issued anew (decision
	// 8).
	callIDs map[string]struct{}
	// spoken says that the last message of the thread is a person's, with what it names.
	spoken bool
	// guard tells honest repetition from going round in circles; nil until the thread was read.
	guard *guard
	named named
	// tip is the last stored message up to which all is in here, at its place in the log.
	tip    regie.ID
	tipSeq int64
}

// unusableModel says that the round's provider is not configured here, or cannot serve what is
// asked of it.
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
	can := model.Capabilities(r.round.Model)
	if r.known == nil && r.afford == 0 {
		if warm, err := r.rewarm(ctx, can); warm || err != nil {
			return err
		}
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	before := r.thread
	r.thread = thread{
		model: model, free: can.Free, leastOutput: can.LeastOutput,
		callIDs: map[string]struct{}{}, guard: newGuard(r.tools),
		contextSize: contextSize{takes: can.ContextTokens},
	}
	if err := r.reopen(ctx); err != nil {
		r.thread = before
		return err
	}
	r.replay(*r.known)
	r.known = nil
	return nil
}

// read has the stored thread at hand.
func (r *run) read(ctx context.Context) error {
	if r.known != nil {
		return nil
	}
	stored, err := r.cfg.Store.Thread(ctx, r.session.ID, 0)
	if err == nil {
		r.known = &stored
	}
	return err
}

// watch has the guard know a thread without a conversation.
func (r *run) watch(stored store.Thread) {
	r.thread = thread{callIDs: map[string]struct{}{}, guard: newGuard(r.tools)}
	r.replay(stored)
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

// replay appends stored messages: the guard and the ids know all of them, the conversation what its
// window shows.
func (r *run) replay(stored store.Thread) {
	entries := prompt.Entries(stored.Messages, stored.Calls)
	whole := true // up to here
	for i := range entries {
		e := &entries[i]
		r.rememberIDs(e.Calls)
		r.thread.named.see(e.Message)
		if r.open(e.Message) {
			whole = false
			continue
		}
		r.thread.guard.observe(e.Message, e.Calls)
		if whole {
			r.thread.reaches(e.Message)
		}
	}
	if r.thread.conversation == nil {
		return
	}
	r.thread.window = prompt.WindowOf(entries)
	counted := countedReply(entries, r.round.Model, r.open)
	r.thread.window.Shown(entries, 0, func(e prompt.Entry, place int) {
		switch {
		case r.open(e.Message): // prompts are built from whole batches (decision 4)
			return
		case e.Message == counted: // its request is what stands there before it
			_, size := r.thread.conversation.Request()
			r.thread.gauge.Learn(*counted.Usage, size)
		}
		r.showEntry(e, place)
	})
	for i := range entries { // what compacts is part of the prompt without a place in it
		if m := entries[i].Message; m.System != nil && m.System.Compaction != nil {
			r.thread.lastSeq = max(r.thread.lastSeq, m.Seq)
		}
	}
}

// appendMessage adds a stored message to the conversation.
func (r *run) appendMessage(m *regie.Message, calls []regie.Call) {
	r.rememberIDs(calls)
	r.thread.named.see(m)
	r.thread.guard.observe(m, calls)
	r.thread.reaches(m)
	if r.thread.conversation == nil {
		return
	}
	r.showEntry(prompt.Entry{Message: m, Calls: calls}, 0)
}

// reaches notes that all up to a stored message is in the thread.
func (t *thread) reaches(m *regie.Message) {
	if m.Seq > t.tipSeq {
		t.tip, t.tipSeq = m.ID, m.Seq
	}
}

func (r *run) rememberIDs(calls []regie.Call) {
	for i := range calls {
		if id := calls[i].ProviderCallID; id != "" { // a person's enrichments have none
			r.thread.callIDs[id] = struct{}{}
		}
	}
}

// closeBatch adds a settled batch: the reply with its calls, the message with their results, and
// what steered the round meanwhile.
func (r *run) closeBatch(results *regie.Message, out store.Outcome) {
	if r.thread.conversation == nil {
		return // nothing was asked yet in this process; warm will read the batch from the store
	}
	r.appendMessage(r.reply, r.calls)
	given := r.calls
	if fault.Bug(fault.BugHalf) && len(given) > 1 {
		given = given[:len(given)-1]
	}
	r.appendMessage(results, given)
	if fault.Bug(fault.BugTwice) {
		r.appendMessage(results, r.calls)
	}
	for i := range out.Admitted {
		r.appendMessage(&out.Admitted[i], nil)
	}
}

// declarations are what a model is told of one registry: worked out once for all rounds that begin
// with it.
type declarations struct {
	registry                   *tool.Registry
	asking, silent, unattended told // a chat, one in which nobody can be asked, an automation
}

// told is a list of tools with what the providers' codecs have made of it.
type told struct {
	tools   []provider.Tool
	encoded *provider.Encoded
}

// declared returns what the model is told of the round's tools, always in the same order. Without
// anybody to answer no question is offered (decision 37).
func (r *run) declared() told {
	if r.json != nil { // level 1 says what there is
		return told{}
	}
	d := r.declarations.Load()
	if d == nil || d.registry != r.tools {
		d = &declarations{
			registry: r.tools, asking: tell(r.tools, regie.RoleQuestion), silent: tell(r.tools, ""),
			unattended: tell(r.tools, regie.RoleComplete),
		}
		r.declarations.Store(d)
	}
	switch {
	case r.automation():
		return d.unattended
	case r.policy.Questions:
		return d.asking
	default:
		return d.silent
	}
}

// tell declares a registry's tools. Of those that ask a person, and of those that end a run that
// nobody watches, only the role that is named is there (spec 2.2, decision 37).
func tell(registry *tool.Registry, role regie.ToolRole) told {
	out := told{encoded: &provider.Encoded{}}
	for _, d := range registry.Declared() {
		if d.Role == role || d.Role != regie.RoleQuestion && d.Role != regie.RoleComplete {
			out.tools = append(out.tools, provider.Tool{
				Name:        d.Name,
				Description: d.Description, Parameters: d.Parameters,
			})
		}
	}
	return out
}
