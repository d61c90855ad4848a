package engine

import (
	"context"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// decodedReply is a model's reply in the canonical form (decision 7), from any dialect.
type decodedReply struct {
	parts    []provider.Part
	reply    *provider.Reply // as it came
	verbatim string
	// said is the content of a reply in the JSON dialect apart from its parts, unreadable why it
	// cannot be read; nil in the native one.
	said       *dialect.Reply
	unreadable *dialect.FormatErrors
}

func (s *roundState) decodeReply(reply *provider.Reply) decodedReply {
	if s.json == nil {
		return decodedReply{parts: withSources(reply.Parts, reply.Sources), reply: reply}
	}
	turn := s.json.Read(reply.Parts)
	if turn.Errors == nil {
		turn.Parts = withSources(turn.Parts, reply.Sources)
	}
	return decodedReply{
		parts: turn.Parts, reply: reply, verbatim: turn.Verbatim, said: turn.Reply, unreadable: turn.Errors,
	}
}

// storeAnswer stores a reply without calls: it ends the round, or in an unattended run leads to one
// nudge (spec 3.1). reply is the original.
func (r *run) storeAnswer(ctx context.Context, message regie.Message, exchange regie.Exchange,
	reply *provider.Reply,
) error {
	draft := message.AI.Text()
	if again := r.closer.judgeAnswer(&message); again != nil {
		return r.requestCorrection(ctx, message, exchange, again)
	}
	counters, _ := afterReply(r.round.Counters, r.used, r.round.Limits, batch{})
	in := store.Reply{Message: message, Exchange: exchange}
	cut := quietly
	if message.AI.Text() == draft {
		cut = cutNote(reply)
		r.call.addCacheEntry(&in, reply)
	}
	in.Results, in.Advance = r.closer.afterAnswer(nil, counters)
	// half an answer is not taken for one
	if in.Advance.End != nil && in.Advance.End.Reason == regie.EndAnswered && !cut.IsZero() {
		in.Advance.End.Note = cut
	}
	nudged := in.Results != nil
	if nudged {
		fault.Point(fault.NudgeBefore)
	} else {
		fault.Point(fault.EndBefore)
	}
	if err := r.storeReply(ctx, in); err != nil {
		return err
	}
	if nudged {
		fault.Point(fault.NudgeAfter)
	} else {
		fault.Point(fault.EndAfter)
	}
	return nil
}

// requestCorrection stores a rejected reply with a correction for the model, which writes it again
// (spec 2.2).
func (r *run) requestCorrection(ctx context.Context, message regie.Message, exchange regie.Exchange,
	again *regie.Message,
) error {
	counters, limit := afterFormatError(r.round.Counters, r.used, r.round.Limits)
	in := store.Reply{Message: message, Exchange: exchange}
	if !limit.IsZero() {
		in.Results, in.Advance = r.limitMessage(limit, nil), r.endRound(counters, regie.EndLimit, limit)
	} else {
		in.Results = again
		in.Advance = r.targets.nextExchange(counters, regie.ExchangeFormatError, r.money.nextReservation(&message, nil))
	}
	fault.Point(fault.FormatBefore)
	if err := r.storeReply(ctx, in); err != nil {
		return err
	}
	fault.Point(fault.FormatAfter)
	return nil
}

// appendReply stores a reply. Where a stopping word came first, it is stored all the same, and the
// round ends with the word (decision 6).
func (r *run) appendReply(ctx context.Context, in *store.Reply, note regie.Sentence) (store.Outcome, error) {
	for {
		if word, _ := r.stopWord(ctx); word == regie.StopInterrupt || word == regie.StopStop {
			in.Advance = r.endRound(in.Advance.Counters, endOf(word), note)
		}
		out, err := r.cfg.Store.AppendReply(r.commit, r.fence, *in)
		if regie.CodeOf(err) != regie.CodeStopRequested {
			return out, err
		}
		if err := r.readStop(); err != nil {
			return out, err
		}
	}
}

// storeReply stores a reply that proposes nothing, with what follows it. Where a stopping word came
// before, it is stored all the same, and the round ends with the word (decision 6).
func (r *run) storeReply(ctx context.Context, in store.Reply) error {
	out, err := r.appendReply(ctx, &in, quietly)
	if err == nil {
		if in.Keep != nil {
			r.cfg.Cache.Stored(r.commit, in.Keep)
		}
		r.budget.learnSize(&in.Exchange)
		r.call.reportReply(&in.Exchange, !in.Hit.IsZero())
		in.Message.Seq = out.Seq
	}
	if err == nil && in.Results != nil {
		r.reply, r.batch.calls = &in.Message, nil
		r.budget.appendBatch(nil, in.Results, out)
	}
	return r.advance(out, err, in.Advance)
}

// cutNote says why a reply is not whole, and nothing of one that is.
func cutNote(reply *provider.Reply) regie.Sentence {
	switch {
	case !reply.Cut:
		return quietly
	case reply.HeldBack:
		return regie.Say("the model's server filtered a part of the reply above (%s)", reply.StopReason)
	default:
		return regie.Say("the reply above reached the limit of its length and is cut off (%s); ask the model to go on",
			reply.StopReason)
	}
}

// asksAbout reports whether a call is among those that are put to people.
func asksAbout(ask *store.Asked, call regie.ID) bool {
	if ask == nil || ask.Approval == nil {
		return false
	}
	return slices.ContainsFunc(ask.Approval.Reviews, func(review regie.Review) bool { return review.CallID == call })
}
