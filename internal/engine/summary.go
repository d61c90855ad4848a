package engine

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// maxCompactions bounds the consecutive summaries before a model call. Each hides more than the one
// before; a thread far above its budget, after a change of model, needs several.
const maxCompactions = 4

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
	crowded      bool            // most of the thread is its newest batch
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

// planSummary weighs what the model is shown and says where it would be cut.
func (b *contextBudget) planSummary(ctx context.Context, tokens int, room prompt.Room) (*summary, error) {
	stored, err := b.cfg.Store.Thread(ctx, b.session.ID, b.thread.window.After)
	if err != nil {
		return nil, err
	}
	s := &summary{
		entries: prompt.Entries(stored.Messages, stored.Calls),
		from:    b.thread.window.Hidden, before: tokens, room: room,
	}
	s.pieces = b.head.promptView().Pieces(b.thread.window, s.entries, s.from, max(0, tokens-room.Fixed))
	bound := 0
	if room.Most > 0 { // what is summarised must be read
		if bound = room.Most - room.Fixed - b.thread.gauge.Part(
			prompt.Size([]provider.Turn{b.head.promptView().Instruction()})); bound <= 0 {
			bound = 1
		}
	}
	if s.crowded = prompt.Crowded(s.pieces, room); !s.crowded {
		s.cut = prompt.Cut(s.pieces, room, bound)
	}
	return s, nil
}

// resumeSummary goes on with a summary that another process began: it is planned anew from the same
// thread.
func (b *contextBudget) resumeSummary(ctx context.Context) error {
	_, size := b.thread.conversation.Request()
	s, err := b.planSummary(ctx, b.thread.gauge.Tokens(size), b.promptRoom())
	if err != nil {
		return err
	}
	return b.openSummary(s)
}

// openSummary makes the request: the prompt as it was, up to the cut, and the instruction behind
// it, so that a vendor's cache has most of it. Where nothing can be asked, the summary is made
// without a model.
func (b *contextBudget) openSummary(s *summary) error {
	b.summary = s
	if b.policy.NoSummaries {
		s.why = &provider.Error{
			Code:    regie.CodeContextTooLarge,
			Message: "this agent asks for no summaries: its oldest messages are left out",
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
	head, frozen, err := b.head.freezeHead(b.commit, summaryOutput(b.maxOutput(), s.room))
	if err != nil {
		return err
	}
	if s.conversation, err = b.thread.model.Open(head); err != nil {
		return unusableModel{err}
	}
	s.head = frozen
	for i := range s.pieces[:s.cut] {
		s.conversation.Append(b.head.promptView().Show(s.pieces[i].Entry)...)
	}
	s.conversation.Append(b.head.promptView().Instruction())
	s.conversation.EndWith(summaryTail)
	s.request, s.size = s.conversation.Request()
	return nil
}

// beginSummary stores that the open step gives way to a summary.
func (r *run) beginSummary(s *summary) error {
	fault.Point(fault.SummaryBefore)
	if err := r.cfg.Store.BeginSummary(r.commit, r.fence, r.exchange.Number); err != nil {
		return err
	}
	fault.Point(fault.SummaryBegun)
	r.exchange.Purpose = regie.PurposeSummary
	return r.budget.openSummary(s)
}

// acceptSummary stores the model's summary as the end of its exchange and the beginning of the
// step, or does without it where it is of no use.
func (r *run) acceptSummary(ctx context.Context, reply *provider.Reply, exchange regie.Exchange) error {
	s := r.budget.summary
	text, useless := r.head.promptView().SummaryText(reply)
	if useless == "" {
		useless = r.head.promptView().SummaryFault(text, s.pieces[:s.cut])
	}
	hidden := 0
	for i := range s.pieces[:s.cut] {
		hidden += s.pieces[i].Tokens
	}
	size := r.budget.thread.gauge.Part(len(text))
	if useless == "" && size >= hidden {
		useless = "the model's summary is longer than what it is to stand for"
	}
	if useless != "" {
		return r.summarizeWithoutModel(&provider.Error{
			Code: regie.CodeBadReply, Message: useless, Partial: text,
			Usage: reply.Usage,
		}, exchange.ModelUS)
	}
	message := r.systemMessage(regie.SystemContextSummary, text)
	message.Author = r.targets.replyAuthor()
	message.Usage = &reply.Usage
	c := prompt.Compact(s.pieces, s.cut, r.budget.thread.window, r.round.ID, s.room)
	c.Before, c.After = s.before, s.before-hidden+size
	message.System.Compaction = c
	return r.storeSummary(ctx, message, exchange)
}

func (r *run) storeSummary(ctx context.Context, message *regie.Message, exchange regie.Exchange) error {
	// A summary is no step of the loop: the counters stay, but that it is progress.
	in := store.Reply{
		Message: *message, Exchange: exchange,
		Advance: r.targets.nextExchange(r.round.Counters, r.exchange.Reason, nil),
	}
	fault.Point(fault.CompactBefore)
	out, err := r.appendReply(ctx, &in, byPerson)
	if err != nil {
		return err
	}
	fault.Point(fault.CompactAfter)
	message.Seq = out.Seq
	r.budget.learnSize(&exchange)
	r.call.reportReply(&exchange, false)
	return r.applySummary(message, out, in.Advance)
}

// summarizeWithoutModel leaves out what it can where no summary could be made: the oldest results
// first. What is left out is stored, so that a resumed round has the same prompt.
func (r *run) summarizeWithoutModel(failed *provider.Error, modelUS int64) error {
	s := r.budget.summary
	c, cut, left := prompt.WithoutModel(s.pieces, s.room, r.budget.thread.window, r.round.ID)
	r.budget.thread.gaveUp = true
	r.used = r.round.Tokens + failed.Usage.Input + failed.Usage.Output
	attempt := r.call.failedAttempt(failed, 0)
	attempt.ModelUS = modelUS
	in := store.Failure{Attempt: attempt}
	next := r.targets.nextExchange(r.round.Counters, r.exchange.Reason, nil)
	in.Advance = &next
	if c != nil {
		c.Fallback, c.Before, c.After = failed.Message, s.before, s.room.Fixed+left
		in.Message = r.systemMessage(regie.SystemContextSummary, "")
		if cut > 0 {
			in.Message.System.Summary = r.head.promptView().Digest(s.pieces[:cut], r.budget.thread.window, c, s.room,
				failed.Message)
		}
		in.Message.System.Compaction = c
	}
	fault.Point(fault.CompactBefore)
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, in)
	if err != nil {
		return err
	}
	fault.Point(fault.CompactAfter)
	return r.applySummary(in.Message, out, next)
}

// applySummary brings the prompt in line with a stored CONTEXT_SUMMARY: the guard and the ids still
// know what it hides.
func (r *run) applySummary(message *regie.Message, out store.Outcome, next store.Advance) error {
	s := r.budget.summary
	if message != nil {
		r.budget.thread.window = r.budget.thread.window.With(message, s.entries, s.from)
		r.budget.thread.guard.observeMessage(message, nil)
		r.budget.thread.setTip(message)
		if err := r.budget.openConversation(r.commit); err != nil {
			return err
		}
		r.budget.thread.window.Shown(s.entries, s.from, r.budget.showEntry)
		r.budget.thread.lastSeq = max(r.budget.thread.lastSeq, message.Seq)
	}
	r.budget.thread.compactions++
	for i := range out.Admitted {
		r.budget.appendMessage(&out.Admitted[i], nil)
	}
	return r.advance(out, nil, next)
}
