package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// thread is the round's conversation with its model: rebuilt from the store when the round is
// claimed, and from then on given each message that was stored. It is a cache; a new one from the
// store has the same bytes (spec 2.3, decision 31).
type thread struct {
	conversation provider.Conversation
	// what the conversation asks; nil where the round is not answered from the response cache
	key               *provider.Key
	free              bool  // the provider costs nothing by declaration
	images            bool  // it takes images
	unread            error // why an image could not be read
	media             int   // bytes of the images in the conversation
	leastOutput       int   // the least bound of a reply that it takes, in tokens
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
	guard *loopGuard
	named named
	asked prompt.Asked // what the next answer is about
	// tip is the last stored message up to which all is in here, at its place in the log.
	tip    regie.ID
	tipSeq int64
}

// setTip notes that all up to a stored message is in the thread.
func (t *thread) setTip(m *regie.Message) {
	if m.Seq > t.tipSeq {
		t.tip, t.tipSeq = m.ID, m.Seq
	}
}

// appendTurns adds turns to the thread that is sent, and to what is known of it as a question.
func (t *thread) appendTurns(turns []provider.Turn) {
	images, bytes := provider.CountImages(turns)
	t.gauge.Images, t.media = t.gauge.Images+images, t.media+bytes
	t.conversation.Append(turns...)
	if t.key != nil {
		t.key.Append(turns...)
	}
}

// unusableModel says that the round's provider is not configured here, or cannot serve what is
// asked of it.
type unusableModel struct{ err error }

// Error implements error.
func (u unusableModel) Error() string { return u.err.Error() }

// Unwrap returns the reason.
func (u unusableModel) Unwrap() error { return u.err }

// openThread opens the conversation, once.
func (b *contextBudget) openThread(ctx context.Context) error {
	if b.thread.conversation != nil {
		return nil
	}
	model, err := b.cfg.Providers(b.round.Provider, b.round.Pin)
	if err != nil {
		return unusableModel{err}
	}
	can := model.Capabilities(b.round.Model)
	if b.known == nil && b.afford == 0 {
		if warm, err := b.resumeWarm(ctx, can); warm || err != nil {
			return err
		}
	}
	if err := b.loadThread(ctx); err != nil {
		return err
	}
	before := b.thread
	b.thread = thread{
		model: model, free: can.Free, images: can.Images, leastOutput: can.LeastOutput,
		callIDs: map[string]struct{}{}, guard: newLoopGuard(b.tools),
		contextSize: contextSize{takes: can.ContextTokens},
	}
	if err := b.openConversation(ctx); err != nil {
		b.thread = before
		return err
	}
	b.replayThread(*b.known)
	b.known = nil
	return nil
}

// loadThread has the stored thread at hand.
func (b *contextBudget) loadThread(ctx context.Context) error {
	if b.known != nil {
		return nil
	}
	stored, err := b.cfg.Store.Thread(ctx, b.session.ID, 0)
	if err == nil {
		b.known = &stored
	}
	return err
}

// loadGuard has the guard know a thread without a conversation.
func (b *contextBudget) loadGuard(stored store.Thread) {
	b.thread = thread{callIDs: map[string]struct{}{}, guard: newLoopGuard(b.tools)}
	b.replayThread(stored)
}

// warmGuard reads the thread where this process has not, because what starts is judged by it. A
// model that cannot be reached does not keep a batch from being finished.
func (b *contextBudget) warmGuard(ctx context.Context) error {
	err := b.openThread(ctx)
	if _, unusable := errors.AsType[unusableModel](err); unusable && b.thread.guard == nil {
		if err = b.loadThread(ctx); err == nil {
			b.loadGuard(*b.known)
			b.known = nil // it grows
		}
	} else if unusable {
		err = nil
	}
	if ctx.Err() != nil { // the loop sees why
		err = nil
	}
	return err
}

// openConversation begins the conversation anew.
func (b *contextBudget) openConversation(ctx context.Context) error {
	head, frozen, err := b.head.freezeHead(ctx, b.replyLimit())
	if err != nil {
		return err
	}
	conversation, err := b.thread.model.Open(head)
	if err != nil {
		return unusableModel{err}
	}
	t := &b.thread
	t.conversation, t.head, t.firstSeq, t.lastSeq, t.shown, t.key = conversation, frozen, 0, 0, 0, b.newCacheKey(head)
	t.gauge.Images, t.media = 0, 0
	_, t.fixed = conversation.Request()
	return nil
}

// replayThread appends stored messages: the guard and the ids know all of them, the conversation
// what its window shows.
func (b *contextBudget) replayThread(stored store.Thread) {
	entries := prompt.Entries(stored.Messages, stored.Calls)
	whole := true // up to here
	for i := range entries {
		e := &entries[i]
		b.rememberIDs(e.Calls)
		b.thread.named.seeMessage(e.Message)
		b.thread.asked.Observe(*e)
		if b.isOpenReply(e.Message) {
			whole = false
			continue
		}
		b.thread.guard.observeMessage(e.Message, e.Calls)
		if whole {
			b.thread.setTip(e.Message)
		}
	}
	if b.thread.conversation == nil {
		return
	}
	b.thread.window = prompt.WindowOf(entries)
	counted := countedReply(entries, b.round.Model, b.isOpenReply)
	b.thread.window.Shown(entries, 0, func(e prompt.Entry, place int) {
		switch {
		case b.isOpenReply(e.Message): // prompts are built from whole batches (decision 4)
			return
		case e.Message == counted: // its request is what stands there before it
			_, size := b.thread.conversation.Request()
			b.thread.gauge.Learn(*counted.Usage, size)
		}
		b.showEntry(e, place)
	})
	for i := range entries { // what compacts is part of the prompt without a place in it
		if m := entries[i].Message; m.System != nil && m.System.Compaction != nil {
			b.thread.lastSeq = max(b.thread.lastSeq, m.Seq)
		}
	}
}

// countedReply returns the newest reply in a prompt that the model counted and that began with the
// present beginning.
func countedReply(entries []prompt.Entry, model string, open func(*regie.Message) bool) *regie.Message {
	for _, e := range slices.Backward(entries) {
		m := e.Message
		switch {
		case m.System != nil && (m.System.Compaction != nil || m.System.Undone != nil):
			return nil // before it the prompts were others
		case m.AI != nil && m.Usage != nil && m.AI.Cached.IsZero() && m.Author.Model == model && !open(m):
			return m
		}
	}
	return nil
}

// showEntry adds a message to the conversation.
func (b *contextBudget) showEntry(e prompt.Entry, place int) {
	turns := b.head.promptView().Show(e)
	if len(turns) == 0 {
		return
	}
	t := &b.thread
	t.appendTurns(turns)
	if place >= 0 {
		t.shown++
		t.spoken = endsWithPerson(t.spoken, e.Message)
	}
	if seq := e.Message.Seq; t.firstSeq == 0 || seq < t.firstSeq {
		t.firstSeq = seq
	}
	t.lastSeq = max(t.lastSeq, e.Message.Seq)
}

// appendMessage adds a stored message to the conversation.
func (b *contextBudget) appendMessage(m *regie.Message, calls []regie.Call) {
	b.rememberIDs(calls)
	b.thread.named.seeMessage(m)
	b.thread.asked.Observe(prompt.Entry{Message: m, Calls: calls})
	b.thread.guard.observeMessage(m, calls)
	b.thread.setTip(m)
	if b.thread.conversation == nil {
		return
	}
	b.showEntry(prompt.Entry{Message: m, Calls: calls}, 0)
}

func (b *contextBudget) rememberIDs(calls []regie.Call) {
	for i := range calls {
		if id := calls[i].ProviderCallID; id != "" { // a person's enrichments have none
			b.thread.callIDs[id] = struct{}{}
		}
	}
}

// appendBatch adds a settled batch: the reply with its calls, the message with their results, and
// what steered the round meanwhile.
func (b *contextBudget) appendBatch(calls []regie.Call, results *regie.Message, out store.Outcome) {
	if b.thread.conversation == nil {
		return // nothing was asked yet in this process; warm will read the batch from the store
	}
	b.appendMessage(b.reply, calls)
	given := calls
	if fault.Bug(fault.BugHalf) && len(given) > 1 {
		given = given[:len(given)-1]
	}
	b.appendMessage(results, given)
	if fault.Bug(fault.BugTwice) {
		b.appendMessage(results, calls)
	}
	for i := range out.Admitted {
		b.appendMessage(&out.Admitted[i], nil)
	}
}

// toolsWithheld reports whether the model may only answer now. What a person has said since is a
// new reason to act.
func (b *contextBudget) toolsWithheld() bool {
	return b.exchange.Reason == regie.ExchangeAnswer && !b.thread.spoken
}

// relaunchTemperature is that of a request after results: it restates, and invents nothing (spec
// 6.2).
var relaunchTemperature = 0.2

// requestTail returns what the next request says behind the thread (spec 6.2).
func (b *contextBudget) requestTail() provider.Tail {
	out, mode := provider.Tail{Withheld: b.toolsWithheld()}, b.policy.Restitution
	reason := b.exchange.Reason
	follows := !b.thread.spoken && (reason == regie.ExchangeAnswer || reason == regie.ExchangeData)
	guides := mode != approval.RestitutionOff && (mode != "" || !b.isAutomation()) || out.Withheld
	if !follows || !guides {
		return out
	}
	out.Guidance = prompt.Restitution{
		Dialect: b.round.Dialect, Withheld: out.Withheld, Completes: b.isAutomation(),
		Strict: mode == approval.RestitutionStrict, French: b.policy.French,
	}.Text()
	if own := b.policy.Temperature; mode.Checks() && !b.untempered && (own == nil || *own > relaunchTemperature) {
		out.Temperature = &relaunchTemperature
	}
	return out
}

// dropTemperature has the next try go without the temperature that Regie set, where the model takes
// none.
func (b *contextBudget) dropTemperature(failed *provider.Error) bool {
	if b.requestTail().Temperature == nil || !refusesTemperature(failed.Code, failed.Message) {
		return false
	}
	b.untempered = true
	return true
}

func refusesTemperature(code regie.Code, message string) bool {
	return code == regie.CodeProviderRejected && strings.Contains(strings.ToLower(message), "temperature")
}

// lastRequest returns the request that was made last.
func (b *contextBudget) lastRequest() (first, last int64, request, head regie.Hash) {
	if s := b.summary; s != nil {
		first, last = s.span()
		return first, last, s.request, s.head
	}
	return b.thread.firstSeq, b.thread.lastSeq, b.thread.request, b.thread.head
}
