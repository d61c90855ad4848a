package engine

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// maxCompactions is how many summaries may follow each other before a step is asked without another
// one. Each hides more than the one before, so a thread that is far above its budget, because its
// model has changed, needs several.
const maxCompactions = 4

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
	// takes is the model's window in tokens, 0 where nobody knows; most is what a refusal has
	// taught, 0 for nothing.
	takes, most int
	refusals    int    // of prompts that were too large, since the last reply
	refused     int    // about how many tokens that was, by our own estimate
	refusal     string // in the words of who refused
	compactions int    // since the last reply
	gaveUp      bool
}

// summary is a CONTEXT_SUMMARY on its way.
type summary struct {
	conversation provider.Conversation
	request      regie.Hash
	size         int // of the request in bytes
	head         regie.Hash
	pieces       []prompt.Piece
	entries      []prompt.Entry
	from, cut    int
	before       int // tokens
	room         prompt.Room
	why          *provider.Error // why no model is asked for it
	// drops is what is left out in place of a summary where the newest batch is most of the thread,
	// left what that leaves.
	drops *regie.Compaction
	left  int
}

// fit looks whether the next prompt is within its budget, before it is sent (spec 3.4). Where it is
// not, the open exchange becomes the summary that has to come first, and the step follows it. It
// costs nothing while the prompt fits but the hash that is stored anyway.
func (r *run) fit(ctx context.Context) error {
	if r.exchange.Purpose == regie.PurposeSummary {
		if r.summary == nil { // another process began it
			return r.resumeSummary(ctx)
		}
		return nil
	}
	t := &r.thread
	t.conversation.EndWith(r.tail())
	t.request, t.size = t.conversation.Request()
	tokens, room := t.gauge.Tokens(t.size), r.room()
	if !room.Over(tokens, t.shown) {
		return nil
	}
	if room.Beyond(room.Fixed) {
		return r.tooLarge(regie.Errorf(regie.CodeContextTooLarge,
			"what every prompt of this agent begins with (instructions and tools) has about %d tokens, and the model %s takes %d: use a model with a larger window, or fewer tools", room.Fixed, r.round.Model, room.Most), room.Fixed)
	}
	s, err := r.planSummary(ctx, tokens, room)
	if err != nil {
		return err
	}
	switch t.smaller(s.drops != nil, s.cut > 0, room.Beyond(tokens)) {
	case sendAll:
		return nil
	case leaveOut:
		s.cut = 0
		if left, _, _ := prompt.WithoutModel(s.pieces, room, t.window, r.round.ID, true); left == nil {
			return r.newestTooLarge(prompt.Heaviest(s.pieces), tokens, room)
		}
	case giveIn:
		return r.newestTooLarge(prompt.Heaviest(s.pieces), tokens, room)
	}
	return r.beginSummary(s)
}

// smallerBy is what becomes of a prompt that is over its budget.
type smallerBy int

const (
	sendAll   smallerBy = iota // what is over the budget is too new, or too little, to be worth a summary
	dropOld                    // the newest batch is most of it: results before it go
	summarise                  // by the model
	leaveOut                   // without a model: it cannot be sent as it is
	giveIn                     // nor can it be made smaller
)

// smaller says it, so that one step never waits for more than a few summaries, and not for a second
// one that failed (spec 3.4).
func (t *contextSize) smaller(drops, cuts, beyond bool) smallerBy {
	switch {
	case drops && t.compactions < 2*maxCompactions:
		return dropOld
	case cuts && t.compactions < maxCompactions && !t.gaveUp:
		return summarise
	case !beyond:
		return sendAll
	case t.compactions < 2*maxCompactions:
		return leaveOut
	default:
		return giveIn
	}
}

// room is how large the round's prompts may be.
func (r *run) room() prompt.Room {
	budget := r.round.Limits.ContextTokens
	if budget == 0 {
		budget = prompt.DefaultBudget(r.session.Type)
	}
	t := &r.thread
	room := prompt.NewRoom(budget, t.takes, r.cfg.MaxOutput, t.gauge.Part(t.fixed), r.round.Limits.ContextMessages)
	if t.most > 0 {
		room.Limit(t.most)
	}
	return room
}

// newestTooLarge ends the round because of a message that cannot be left out. A person can say
// theirs in less; what the model did, they cannot.
func (r *run) newestTooLarge(m *regie.Message, tokens int, room prompt.Room) error {
	if m.Sender == regie.SenderUser {
		return r.tooLarge(regie.Errorf(regie.CodeContextTooLarge,
			"the newest message alone is more than the model %s takes: about %d tokens of %d; say it in less, or put it into a file", r.round.Model, tokens, room.Most), tokens)
	}
	if m.Enriching() {
		return r.tooLarge(regie.Errorf(regie.CodeContextTooLarge,
			"what your message names with @ is more than the model %s takes: about %d tokens of %d; name less, or let the agent read the parts that it needs", r.round.Model, tokens, room.Most), tokens)
	}
	return r.tooLarge(regie.Errorf(regie.CodeContextTooLarge,
		"what the model %s did last is more than its next prompt can hold: about %d tokens of %d; write again and ask for smaller steps, or use a model with a larger window", r.round.Model, tokens, room.Most), tokens)
}

// tooLarge ends the round: what is left of the prompt, about so many tokens, cannot be sent, and
// nothing more can be left out. What a refusal has taught is an estimate, and is not told as a
// fact: the server's own words are.
func (r *run) tooLarge(err error, tokens int) error {
	if t := &r.thread; t.most > 0 {
		err = regie.Errorf(regie.CodeContextTooLarge,
			"the model %s refused a prompt of about %d tokens, by our estimate, and about %d of it cannot be left out: use a model with a larger window, or say it in less; its server said: %s", r.round.Model, t.refused, tokens, t.refusal)
	}
	failed := &provider.Error{Code: regie.CodeContextTooLarge, Message: err.Error(), Err: err}
	if r.at > 0 { // the next one may take more
		return r.outOfTries(failed, failed, 0)
	}
	return r.giveUp(failed, 0)
}

// planSummary weighs what the model is shown and says where it would be cut.
func (r *run) planSummary(ctx context.Context, tokens int, room prompt.Room) (*summary, error) {
	stored, err := r.cfg.Store.Thread(ctx, r.session.ID, r.thread.window.After)
	if err != nil {
		return nil, err
	}
	s := &summary{
		entries: prompt.Entries(stored.Messages, stored.Calls),
		from:    r.thread.window.Hidden, before: tokens, room: room,
	}
	s.pieces = r.view().Pieces(r.thread.window, s.entries, s.from, max(0, tokens-room.Fixed))
	bound := 0
	if room.Most > 0 { // what is summarised must be read
		if bound = room.Most - room.Fixed - r.thread.gauge.Part(
			prompt.Size([]provider.Turn{r.view().Instruction()})); bound <= 0 {
			bound = 1
		}
	}
	if s.drops, s.left = prompt.Crowded(s.pieces, room); s.drops == nil {
		s.cut = prompt.Cut(s.pieces, room, bound)
	}
	return s, nil
}

// beginSummary stores that the open step gives way to a summary.
func (r *run) beginSummary(s *summary) error {
	fault.Point(fault.SummaryBefore)
	if err := r.cfg.Store.BeginSummary(r.commit, r.fence, r.exchange.Number); err != nil {
		return err
	}
	fault.Point(fault.SummaryBegun)
	r.exchange.Purpose = regie.PurposeSummary
	return r.openSummary(s)
}

// resumeSummary goes on with a summary that another process began: it is planned anew from the same
// thread.
func (r *run) resumeSummary(ctx context.Context) error {
	_, size := r.thread.conversation.Request()
	s, err := r.planSummary(ctx, r.thread.gauge.Tokens(size), r.room())
	if err != nil {
		return err
	}
	return r.openSummary(s)
}

// openSummary makes the request: the prompt as it was, up to the cut, and the instruction behind
// it, so that a vendor's cache has most of it. Where nothing can be asked, the summary is made
// without a model.
func (r *run) openSummary(s *summary) error {
	r.summary = s
	if s.drops != nil {
		s.why = &provider.Error{
			Code:    regie.CodeContextTooLarge,
			Message: "the newest results are most of what there is room for; older ones are left out, and can be read again",
		}
		return nil
	}
	if s.cut == 0 {
		s.why = &provider.Error{
			Code:    regie.CodeContextTooLarge,
			Message: "what would have to be summarised is too new, or more than the model can read",
		}
		return nil
	}
	head, frozen, err := r.head(r.commit, summaryOutput(r.cfg.MaxOutput, s.room))
	if err != nil {
		return err
	}
	if s.conversation, err = r.thread.model.Open(head); err != nil {
		return unusableModel{err}
	}
	s.head = frozen
	for i := range s.pieces[:s.cut] {
		s.conversation.Append(r.view().Show(s.pieces[i].Entry)...)
	}
	s.conversation.Append(r.view().Instruction())
	s.conversation.EndWith(summaryTail)
	s.request, s.size = s.conversation.Request()
	return nil
}

// summaryTail forbids calls: a summary is a text.
var summaryTail = provider.Tail{Withheld: true}

// summaryOutput bounds a summary: a quarter of what it makes room for, and no more than any reply.
func summaryOutput(most int, room prompt.Room) int { return min(most, max(256, room.Thread()/4)) }

// span is the part of the log that a conversation shows.
func (s *summary) span() (first, last int64) {
	for i := range s.pieces[:s.cut] {
		seq := s.pieces[i].Message.Seq
		if first == 0 || seq < first {
			first = seq
		}
		last = max(last, seq)
	}
	return first, last
}

// acceptSummary stores the model's summary as the end of its exchange and the beginning of the
// step, or does without it where it is of no use.
func (r *run) acceptSummary(ctx context.Context, reply *provider.Reply, exchange regie.Exchange) error {
	s := r.summary
	text, useless := r.view().SummaryText(reply)
	if useless == "" {
		useless = r.view().SummaryFault(text, s.pieces[:s.cut])
	}
	hidden := 0
	for i := range s.pieces[:s.cut] {
		hidden += s.pieces[i].Tokens
	}
	size := r.thread.gauge.Part(len(text))
	if useless == "" && size >= hidden {
		useless = "the model's summary is longer than what it is to stand for"
	}
	if useless != "" {
		return r.withoutModel(&provider.Error{
			Code: regie.CodeBadReply, Message: useless, Partial: text,
			Usage: reply.Usage,
		}, exchange.ModelUS)
	}
	message := r.system(regie.SystemContextSummary, text)
	message.Author = r.author()
	message.Usage = &reply.Usage
	c := prompt.Compact(s.pieces, s.cut, r.thread.window, r.round.ID, s.room)
	c.Before, c.After = s.before, s.before-hidden+size
	message.System.Compaction = c
	return r.storeSummary(ctx, message, exchange)
}

func (r *run) storeSummary(ctx context.Context, message *regie.Message, exchange regie.Exchange) error {
	next := r.afterSummary()
	if word, err := r.stopWord(ctx); err == nil && (word == regie.StopInterrupt || word == regie.StopStop) {
		next = r.ended(r.round.Counters, endOf(word), byPerson)
	}
	fault.Point(fault.CompactBefore)
	out, err := r.cfg.Store.AppendReply(r.commit, r.fence, store.Reply{
		Message:  *message,
		Exchange: exchange, Advance: next,
	})
	// the word came first: the summary is stored all the same
	if regie.CodeOf(err) == regie.CodeStopRequested && next.End == nil {
		if err := r.readStop(); err != nil {
			return err
		}
		return r.storeSummary(ctx, message, exchange)
	}
	if err != nil {
		return err
	}
	fault.Point(fault.CompactAfter)
	message.Seq = out.Seq
	r.learned(&exchange)
	r.counts(&exchange, false)
	return r.compacted(message, out, next)
}

// withoutModel leaves out what it can where no summary could be made: the oldest results first.
// What is left out is stored, so that a resumed round has the same prompt.
func (r *run) withoutModel(failed *provider.Error, modelUS int64) error {
	s := r.summary
	c, cut, left := s.drops, 0, s.left
	if c == nil {
		c, cut, left = prompt.WithoutModel(s.pieces, s.room, r.thread.window, r.round.ID, true)
		r.thread.gaveUp = true
	}
	r.used = r.round.Tokens + failed.Usage.Input + failed.Usage.Output
	attempt := r.failedAttempt(failed, 0)
	attempt.ModelUS = modelUS
	in := store.Failure{Attempt: attempt}
	next := r.afterSummary()
	in.Advance = &next
	if c != nil {
		c.Fallback, c.Before, c.After = failed.Message, s.before, s.room.Fixed+left
		in.Message = r.system(regie.SystemContextSummary, "")
		if cut > 0 {
			in.Message.System.Summary = r.view().Digest(s.pieces[:cut], r.thread.window, c, s.room, failed.Message)
		}
		in.Message.System.Compaction = c
	}
	fault.Point(fault.CompactBefore)
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, in)
	if err != nil {
		return err
	}
	fault.Point(fault.CompactAfter)
	return r.compacted(in.Message, out, next)
}

// afterSummary opens the step that waited for the summary. A summary is no step of the loop: the
// counters stay, but that it is progress.
func (r *run) afterSummary() store.Advance {
	return r.nextModel(r.round.Counters, r.exchange.Reason, nil)
}

// compacted brings the prompt in line with a stored CONTEXT_SUMMARY: the guard and the ids still
// know what it hides.
func (r *run) compacted(message *regie.Message, out store.Outcome, next store.Advance) error {
	s := r.summary
	if message != nil {
		r.thread.window = r.thread.window.With(message, s.entries, s.from)
		r.thread.guard.observe(message, nil)
		r.thread.reaches(message)
		if err := r.reopen(r.commit); err != nil {
			return err
		}
		r.thread.window.Shown(s.entries, s.from, r.showEntry)
		r.thread.lastSeq = max(r.thread.lastSeq, message.Seq)
	}
	r.thread.compactions++
	for i := range out.Admitted {
		r.appendMessage(&out.Admitted[i], nil)
	}
	return r.moved(out, nil, next)
}

// reopen begins the conversation anew.
func (r *run) reopen(ctx context.Context) error {
	head, frozen, err := r.head(ctx, r.output())
	if err != nil {
		return err
	}
	conversation, err := r.thread.model.Open(head)
	if err != nil {
		return unusableModel{err}
	}
	t := &r.thread
	t.conversation, t.head, t.firstSeq, t.lastSeq, t.shown, t.key = conversation, frozen, 0, 0, 0, r.keyed(head)
	_, t.fixed = conversation.Request()
	return nil
}

// showEntry adds a message to the conversation.
func (r *run) showEntry(e prompt.Entry, place int) {
	turns := r.view().Show(e)
	if len(turns) == 0 {
		return
	}
	t := &r.thread
	t.say(turns)
	if place >= 0 {
		t.shown++
		t.spoken = speaks(t.spoken, e.Message)
	}
	if seq := e.Message.Seq; t.firstSeq == 0 || seq < t.firstSeq {
		t.firstSeq = seq
	}
	t.lastSeq = max(t.lastSeq, e.Message.Seq)
}

// shrink has the next try of a refused prompt be a smaller one: the server knows its model's window
// better than anybody.
func (r *run) shrink(failed *provider.Error) bool {
	t := &r.thread
	if failed.Code != regie.CodeContextTooLarge || r.exchange.Purpose == regie.PurposeSummary || t.refusals > 0 {
		return false
	}
	t.refusals++
	tokens := t.gauge.Tokens(t.size)
	t.refused, t.refusal = tokens, failed.Message
	t.most = tokens * 3 / 4
	if t.good > 0 { // that much it has taken
		t.most = min(max(t.gauge.Tokens(t.good), tokens/2), tokens*7/8)
	}
	return true
}

// learned takes what the provider counted for the stored reply, which fitted.
func (r *run) learned(e *regie.Exchange) {
	t := &r.thread
	if !e.Head.IsZero() {
		t.told = e.Head
	}
	if e.Purpose != regie.PurposeSummary {
		t.gauge.Learn(e.Usage, t.size)
		t.good = t.size
		t.compactions, t.refusals, t.gaveUp = 0, 0, false
	}
}

// countedReply is the newest reply in a prompt whose request was the present one's beginning, and
// was counted by the model.
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

// open reports whether a message is the reply whose batch is still open: no prompt has it (decision
// 4).
func (r *run) open(m *regie.Message) bool {
	return r.round.Phase == regie.PhaseCalls && r.reply != nil && m.ID == r.reply.ID
}

// answersNobody reports whether a failure is not about the summary: the step would meet it too.
func answersNobody(code regie.Code) bool {
	return code == regie.CodeProviderOffline || code == regie.CodeProviderAuth ||
		code == regie.CodeProviderQuota || code == regie.CodeNoModel
}
