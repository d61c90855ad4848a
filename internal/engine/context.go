package engine

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// contextBudget keeps the thread that the model is shown within its budget.
type contextBudget struct {
	*run
	thread  thread
	known   *store.Thread // the stored thread, where the claim or a reading brought it
	summary *summary
	// untempered says that the round's model has refused the temperature of a relaunch.
	untempered bool
	afford     int // the longest reply that a cap pays for, in tokens; 0: as long as ever
}

// contextSize is what a round knows of its prompt's size. All of it follows from the store, but for
// what refusals have taught.
type contextSize struct {
	gauge   prompt.Gauge
	window  prompt.Window
	shown   int // messages of the thread in the prompt
	fixed   int // bytes of the prompt without its thread
	request regie.Hash
	size    int // bytes of the prompt that is about to be sent
	good    int // bytes of the last one that was answered
	// takes is the model's window in tokens, 0 where it is unknown; most is the limit learned from
	// a refusal, 0 for none.
	takes, most int
	refusals    int    // of prompts that were too large, since the last reply
	refusal     string // in the words of who refused
	compactions int    // since the last reply
	gaveUp      bool
}

// checkFit checks the next prompt against its budget before it is sent (spec 3.4). Over the budget
// it returns the summary that has to come first, or why the prompt cannot be sent at all, nor be
// made smaller. It costs nothing while the prompt fits but the hash that is stored anyway.
func (b *contextBudget) checkFit(ctx context.Context) (before *summary, tooLarge, err error) {
	if b.exchange.Purpose == regie.PurposeSummary {
		if b.summary == nil { // another process began it
			return nil, nil, b.resumeSummary(ctx)
		}
		return nil, nil, nil
	}
	t := &b.thread
	t.conversation.EndWith(b.requestTail())
	t.request, t.size = t.conversation.Request()
	tokens, room := t.gauge.Tokens(t.size), b.promptRoom()
	if !room.Over(tokens, t.shown) {
		return nil, nil, nil
	}
	if room.Beyond(room.Fixed) {
		return nil, regie.Errorf(regie.CodeContextTooLarge,
			"the instructions and tools of this agent have about %d tokens, and the model %s takes %d: use a model with a larger window, or fewer tools", room.Fixed, b.round.Model, room.Most), nil
	}
	s, err := b.planSummary(ctx, tokens, room)
	switch {
	case err != nil:
		return nil, nil, err
	case s.cut > 0 && t.compactions < maxCompactions && !t.gaveUp:
		return s, nil, nil
	case (s.crowded || room.Beyond(tokens)) && t.compactions < 2*maxCompactions: // results are left out
		s.cut = 0
		if left, _, _ := prompt.WithoutModel(s.pieces, room, t.window, b.round.ID); left != nil {
			return s, nil, nil
		}
	}
	if !room.Beyond(tokens) { // what is over the budget is too new, or too little, to be worth a summary
		return nil, nil, nil
	}
	return nil, regie.Errorf(regie.CodeContextTooLarge,
		"the newest message or results are too long for the model %s: about %d tokens of %d; shorten it, ask for smaller steps, or use a model with a larger window", b.round.Model, tokens, room.Most), nil
}

// promptRoom returns how large the round's prompts may be.
func (b *contextBudget) promptRoom() prompt.Room {
	budget := b.round.Limits.ContextTokens
	if budget == 0 {
		budget = prompt.DefaultBudget(b.session.Type)
	}
	t := &b.thread
	room := prompt.NewRoom(budget, t.takes, b.maxOutput(), t.gauge.Part(t.fixed), b.round.Limits.ContextMessages)
	if t.most > 0 {
		room.Limit(t.most)
	}
	return room
}

// maxReply returns the longest reply that the next request asks for, where no cap makes it shorter.
func (b *contextBudget) maxReply() int {
	if b.summary != nil {
		return summaryOutput(b.maxOutput(), b.summary.room)
	}
	return prompt.Reply(b.maxOutput(), b.thread.takes)
}

// replyLimit returns the longest reply that a conversation of the round asks for.
func (b *contextBudget) replyLimit() int {
	most := prompt.Reply(b.maxOutput(), b.thread.takes)
	if b.afford > 0 {
		return min(most, b.afford)
	}
	return most
}

// openReplyLimit returns how many tokens the open model call was told to reply with at most.
func (b *contextBudget) openReplyLimit() int {
	if b.summary != nil {
		return b.maxReply()
	}
	return b.replyLimit()
}

// endTooLarge ends the round, or has another provider go on with it, which may take more.
func (r *run) endTooLarge(why error) error {
	if said := r.budget.thread.refusal; said != "" {
		why = regie.Errorf(regie.CodeContextTooLarge, "%v; its server said: %s", why, said)
	}
	failed := &provider.Error{Code: regie.CodeContextTooLarge, Message: why.Error(), Err: why}
	if r.targets.at > 0 {
		return r.handleFailure(failed, failed, 0)
	}
	return r.endUnanswered(failed, 0)
}

// lowerLimit makes the next try of a refused prompt a smaller one: the server knows its model's
// window best.
func (b *contextBudget) lowerLimit(failed *provider.Error) bool {
	t := &b.thread
	if failed.Code != regie.CodeContextTooLarge || b.exchange.Purpose == regie.PurposeSummary || t.refusals > 0 {
		return false
	}
	t.refusals++
	tokens := t.gauge.Tokens(t.size)
	t.refusal = failed.Message
	t.most = tokens * 3 / 4
	if t.good > 0 { // that much it has taken
		t.most = min(max(t.gauge.Tokens(t.good), tokens/2), tokens*7/8)
	}
	return true
}

// learnSize takes what the provider counted for the stored reply, which fitted.
func (b *contextBudget) learnSize(e *regie.Exchange) {
	t := &b.thread
	if !e.Head.IsZero() {
		t.told = e.Head
	}
	if e.Purpose != regie.PurposeSummary {
		t.gauge.Learn(e.Usage, t.size)
		t.good = t.size
		t.compactions, t.refusals, t.gaveUp = 0, 0, false
	}
}

// countUsage returns the tokens of a reply as they are believed. One from the response cache cost
// none.
func (b *contextBudget) countUsage(reply *provider.Reply, size int) regie.Usage {
	if !reply.Cached.IsZero() {
		return regie.Usage{}
	}
	return b.thread.gauge.Counted(reply.Usage, size, replyBytes(reply.Parts), b.maxOutput(), b.openReplyLimit())
}

// answersNobody reports whether a failure is not about the summary: the step would meet it too.
func answersNobody(code regie.Code) bool {
	return code == regie.CodeProviderOffline || code == regie.CodeProviderAuth ||
		code == regie.CodeProviderQuota || code == regie.CodeNoModel
}
