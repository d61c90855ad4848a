package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
)

// Threads that no round holds are kept warm for the next one (spec 2.1, decision 48), within these
// bounds.
const (
	maxWarmBytes = 8 << 20          // about what they take together
	maxWarmIdle  = 30 * time.Minute // older ones go when the next one comes: no clock runs for it
)

// warmKey identifies the inputs of a rendered thread in addition to its session's rows.
type warmKey struct {
	provider, model string
	pin             regie.Hash // the settings of the provider
	head            headKey
	takes           int
	caches          bool
}

// warmThread is a thread between two rounds of its session.
type warmThread struct {
	session regie.ID
	key     warmKey
	thread  thread
	bytes   int
	since   time.Time
}

// warmth keeps the threads of the sessions that ran last. A round takes its session's out, so that
// it has one holder, and gives it back at its end; what is lost of it is read from the store. It
// may be used from many goroutines.
type warmth struct {
	mu    sync.Mutex
	kept  map[regie.ID]*warmThread
	bytes int
}

// takeThread removes a session's thread and returns it, or nil.
func (w *warmth) takeThread(session regie.ID) *warmThread {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.removeThread(session)
}

func (w *warmth) removeThread(session regie.ID) *warmThread {
	k := w.kept[session]
	if k != nil {
		delete(w.kept, session)
		w.bytes -= k.bytes
	}
	return k
}

// keepThread keeps a thread and drops the least recently used ones.
func (w *warmth) keepThread(k *warmThread) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeThread(k.session)
	if w.kept == nil {
		w.kept = map[regie.ID]*warmThread{}
	}
	w.kept[k.session] = k
	w.bytes += k.bytes
	for len(w.kept) > 0 {
		oldest := slices.MinFunc(slices.Collect(maps.Values(w.kept)), func(a, b *warmThread) int {
			return a.since.Compare(b.since)
		})
		if w.bytes <= maxWarmBytes && k.since.Sub(oldest.since) <= maxWarmIdle {
			return
		}
		w.removeThread(oldest.session)
	}
}

// Forget drops what is kept in memory of a session's thread: it was removed.
func (e *Engine) Forget(session regie.ID) { e.warmth.takeThread(session) }

func (b *contextBudget) warmKey(can provider.Capabilities) warmKey {
	return warmKey{
		provider: b.round.Provider, model: b.round.Model, pin: b.round.Pin,
		head: b.head.headKey(prompt.Reply(b.maxOutput(), can.ContextTokens), can.Images), takes: can.ContextTokens,
		caches: b.head.usesCache(),
	}
}

// keepWarm keeps the thread for the session's next round, unless it has a call with an unknown
// outcome: a person may find out (decision 5), which changes the stored rows.
func (b *contextBudget) keepWarm() {
	t := &b.thread
	ended := b.round.Phase == regie.PhaseEnd
	if t.conversation == nil || t.unread != nil || b.afford > 0 || t.tip.IsZero() || len(t.guard.unknown) > 0 ||
		ended && b.isAutomation() {
		return
	}
	if ended {
		t.guard.leaveRound()
		t.asked = prompt.Asked{}
	}
	k := &warmThread{session: b.session.ID, thread: *t, since: time.Now(), bytes: t.memoryBytes()}
	k.key = b.warmKey(provider.Capabilities{ContextTokens: t.takes, Images: t.images})
	b.warmth.keepThread(k)
}

// memoryBytes returns about what the thread takes in memory.
func (t *thread) memoryBytes() int {
	const id, call, entry = 96, 800, 2048
	_, size := t.conversation.Request()
	for _, c := range t.guard.byID {
		size += call + len(c.call.Result)
	}
	return entry + size + t.media*4/3 + id*(len(t.callIDs)+len(t.guard.seen))
}

// resumeWarm takes up the thread that the session's last round left, if it is still what a new one
// from the store would be: the same provider, settings, levels, tools and dialect, and a log that
// goes on where this thread ends. It costs what is new since then. Any other one is dropped.
func (b *contextBudget) resumeWarm(ctx context.Context, can provider.Capabilities) (bool, error) {
	k := b.warmth.takeThread(b.session.ID)
	if k == nil || k.key != b.warmKey(can) {
		return false, nil
	}
	stored, err := b.cfg.Store.Thread(ctx, b.session.ID, k.thread.tipSeq-1)
	if err != nil {
		return false, err
	}
	entries := prompt.Entries(stored.Messages, stored.Calls)
	if len(entries) == 0 || entries[0].Message.ID != k.thread.tip {
		return false, nil
	}
	for i := range entries[1:] {
		if m := entries[i+1].Message; m.System != nil && (m.System.Compaction != nil ||
			m.System.Type == regie.SystemUndone) {
			return false, nil // another holder's: it changes what stands before it
		}
	}
	b.thread = k.thread
	t := &b.thread
	t.told, t.most, t.refusals, t.compactions, t.gaveUp = regie.Hash{}, 0, 0, 0, false
	for i := range entries[1:] {
		e := &entries[i+1]
		if b.isOpenReply(e.Message) { // appendBatch adds it, and what stands behind it is not of the prompt
			b.rememberIDs(e.Calls)
			break
		}
		b.appendMessage(e.Message, e.Calls)
	}
	return true, nil
}
