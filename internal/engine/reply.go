package engine

import (
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// heard is a model's reply in the canonical form (decision 7), whatever dialect it came in.
type heard struct {
	parts    []provider.Part
	reply    *provider.Reply // as it came
	verbatim string
	// said is what a reply in the JSON dialect says beside its parts, unreadable why it cannot be
	// read; nil in the native one.
	said       *dialect.Reply
	unreadable *dialect.FormatErrors
}

func (r *run) hear(reply *provider.Reply) heard {
	if r.json == nil {
		return heard{parts: withSources(reply.Parts, reply.Sources), reply: reply}
	}
	turn := r.json.Read(reply.Parts)
	if turn.Errors == nil {
		turn.Parts = withSources(turn.Parts, reply.Sources)
	}
	return heard{parts: turn.Parts, reply: reply, verbatim: turn.Verbatim, said: turn.Reply, unreadable: turn.Errors}
}

// accept stores a reply: the answer, or calls with the intent of the first action (decision 4).
func (r *run) accept(ctx context.Context, reply *provider.Reply, took time.Duration) error {
	exchange := r.exchange
	exchange.Provider, exchange.Model = r.round.Provider, r.round.Model
	r.describe(&exchange)
	exchange.Usage, exchange.StopReason = reply.Usage, reply.StopReason
	exchange.FirstByteUS, exchange.ModelUS = reply.FirstByte.Microseconds(), took.Microseconds()
	exchange.Money = r.paid(reply.Usage)
	if !reply.Cached.IsZero() { // nobody was asked
		exchange.Money = regie.Money{Reserved: r.exchange.Money.Reserved, Known: true}
	}
	r.used = r.round.Tokens + reply.Usage.Input + reply.Usage.Output
	if r.summary != nil {
		return r.acceptSummary(ctx, reply, exchange)
	}
	h := r.hear(reply)
	if slices.ContainsFunc(h.parts, func(p provider.Part) bool { return p.Type == regie.PartCall }) {
		if err := r.readRules(); err != nil {
			return err
		}
	}
	message, calls := r.plan(&h)
	switch {
	case h.unreadable != nil:
		return r.correct(ctx, message, exchange, r.system(regie.SystemFormatError,
			h.unreadable.Correction(r.policy.French)))
	case len(calls) == 0:
		return r.answer(ctx, message, exchange, reply)
	}
	err := r.proposed(ctx, message, calls, exchange)
	if regie.CodeOf(err) != regie.CodeStopRequested {
		return err
	}
	// A stopping word came before the reply: it is stored all the same, but not acted on (decision
	// 6).
	if err := r.readStop(); err != nil {
		return err
	}
	return r.accept(ctx, reply, took)
}

// proposed stores calls with the message that owns them, and what becomes of them at once. It
// returns CodeStopRequested where a stopping word came first: nothing is stored then.
func (r *run) proposed(ctx context.Context, message regie.Message, calls []regie.Call, exchange regie.Exchange) error {
	in, err := r.reaction(ctx, message, calls)
	if err != nil {
		return err
	}
	in.Exchange = exchange
	for i := range calls {
		// What nobody was asked about yet is stored as proposed: whoever goes on with the round
		// judges it again.
		if calls[i].State == regie.CallAwaitingApproval && !puts(in.Ask, calls[i].ID) {
			calls[i].State = regie.CallProposed
			delete(r.fresh, calls[i].ID)
		}
	}
	if in.Ask != nil {
		fault.Point(fault.AskBefore)
	}
	out, err := r.cfg.Store.AppendReply(r.commit, r.fence, in)
	if err != nil {
		return err
	}
	fault.Point(fault.ReplyAfter)
	if !r.commanded() {
		r.learned(&exchange)
		r.counts(&exchange, false)
	}
	in.Message.Seq = out.Seq
	r.reply, r.calls, r.parked = &in.Message, calls, out.Parked
	for i := range calls {
		if calls[i].State == regie.CallStarted {
			r.started = calls[i].ID
		}
	}
	r.remember(in.Ask)
	if in.Results != nil {
		r.closeBatch(in.Results, out)
		fault.Point(fault.SettledAfter)
	}
	return r.moved(out, nil, in.Advance)
}

// reaction decides what becomes of a reply's calls: refused as a whole, or the first of them
// started.
func (r *run) reaction(ctx context.Context, message regie.Message, calls []regie.Call) (store.Reply, error) {
	counters, limit := afterReply(r.round.Counters, r.used, r.round.Limits,
		batchOf(calls, r.round.Dialect, r.role, false))
	if r.commanded() { // the limits bound a model
		counters, limit = r.round.Counters, noLimit
	}
	in := store.Reply{Message: message, Calls: calls}
	word, cancelled := r.stopWord(ctx)
	switch {
	case word == regie.StopInterrupt || word == regie.StopStop:
		refuse(calls, regie.NotRunInterrupted, "not run: the run was stopped before")
		in.Results = r.results(calls, "the person stopped the run")
		in.Advance = r.ended(counters, endOf(word), quietly)
	case !limit.IsZero():
		refuse(calls, regie.NotRunOverLimit, "not run: "+limit.String()+" was reached")
		in.Results = r.limitMessage(limit, calls)
		in.Advance = r.ended(counters, regie.EndLimit, limit)
	case !r.circles.IsZero():
		refuse(calls, regie.NotRunOverLimit, "not run: the run ends, "+r.circles.String())
		in.Results = r.circlesMessage(r.circles, calls)
		in.Advance = r.ended(counters, regie.EndEarlyStop, r.circles)
	case r.policyFails(calls):
		refuse(calls, regie.NotRunDenied, "not run: "+failNote.String())
		in.Results = r.results(calls, "")
		in.Advance = r.ended(counters, regie.EndDenied, failNote)
	default:
		// After a pause or a shutdown nothing new starts; whoever goes on with the round starts it.
		if word == "" && cancelled == nil && !r.anyHooked(calls) {
			if err := r.begin(ctx, &in); err != nil {
				return in, err
			}
		}
		counters.Resumes = 0 // a stored step is progress
		in.Advance = store.Advance{Phase: regie.PhaseCalls, Counters: counters}
		switch {
		case in.Park:
		case awaitsClient(calls):
			in.Advance = r.ended(counters, regie.EndClientTools, quietly)
		case allSettled(calls):
			c := r.closing(&in.Message, calls, counters)
			in.Results, in.Advance = c.message, c.advance // what settles here has no post text: no action has run
		}
	}
	return in, nil
}

// begin takes the first step of a batch together with its reply: the first action starts, or people
// are asked and the round lets go.
func (r *run) begin(ctx context.Context, in *store.Reply) error {
	ask, err := r.asked(ctx, in.Calls)
	if err != nil {
		return nil //nolint:nilerr // stopped while asking: nothing was put to anybody
	}
	in.Ask = ask
	for i := range in.Calls {
		if !in.Calls[i].State.Settled() && !r.clients(&in.Calls[i]) {
			in.Park = ask != nil && r.mustWait(in.Calls, i)
			break
		}
	}
	if in.Park {
		return nil
	}
	if _, err = r.startNext(ctx, in.Calls); err == nil {
		r.startEarly(ctx, in.Calls)
	}
	return err
}

// puts reports whether a call is among those that are put to people.
func puts(ask *store.Asked, call regie.ID) bool {
	if ask == nil || ask.Approval == nil {
		return false
	}
	return slices.ContainsFunc(ask.Approval.Reviews, func(review regie.Review) bool { return review.CallID == call })
}

// remember notes what was put to people.
func (r *run) remember(ask *store.Asked) {
	r.reviews, r.questioned = map[regie.ID]regie.Review{}, map[regie.ID]bool{}
	if ask == nil {
		return
	}
	if ask.Approval != nil {
		for _, review := range ask.Approval.Reviews {
			r.reviews[review.CallID] = review
		}
	}
	for i := range ask.Questions {
		r.questioned[ask.Questions[i].CallID] = true
	}
}

// cutNote says why a reply is not whole, and nothing of one that is.
func cutNote(reply *provider.Reply) regie.Sentence {
	switch {
	case !reply.Cut:
		return quietly
	case reply.HeldBack:
		return regie.Say("the model's server held back a part of the reply above (%s)", reply.StopReason)
	default:
		return regie.Say("the reply above reached the limit of its length and is cut off (%s); ask the model to go on",
			reply.StopReason)
	}
}

// answer stores a reply without calls: it ends the round. Where nobody reads it, it is no end, once
// (spec 3.1). reply is as it came.
func (r *run) answer(ctx context.Context, message regie.Message, exchange regie.Exchange, reply *provider.Reply) error {
	if again, err := r.checkAnswer(&message); again != nil || err != nil {
		if err != nil {
			return err
		}
		return r.correct(ctx, message, exchange, again)
	}
	counters, _ := afterReply(r.round.Counters, r.used, r.round.Limits, batch{})
	in := store.Reply{Message: message, Exchange: exchange}
	cut := cutNote(reply)
	r.cached(&in, reply)
	in.Results, in.Advance = r.said(nil, counters)
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
	if err := r.keep(ctx, in); err != nil {
		return err
	}
	if nudged {
		fault.Point(fault.NudgeAfter)
	} else {
		fault.Point(fault.EndAfter)
	}
	return nil
}

// said is what follows an answer: the end, or, where nobody reads it, once a nudge. calls are those
// that came with it.
func (r *run) said(calls []regie.Call, counters regie.Counters) (*regie.Message, store.Advance) {
	switch {
	case !r.automation():
		return nil, r.ended(counters, regie.EndAnswered, quietly)
	case r.exchange.Reason == regie.ExchangeNudge:
		return nil, r.ended(counters, regie.EndAnswered,
			regie.Say("the agent stopped without saying that its work is done"))
	}
	counters, limit := afterFailure(counters, r.round.Limits) // an end that is none (decision 41)
	if used := spent(counters, r.used, r.round.Limits); !used.IsZero() {
		limit = used
	}
	if !limit.IsZero() {
		return r.limitMessage(limit, calls), r.ended(counters, regie.EndLimit, limit)
	}
	nudge := r.system(regie.SystemCompleteRefused, nudgeNote(r.json != nil, r.policy.French))
	nudge.System.CallIDs = ids(calls)
	return nudge, r.nextModel(counters, regie.ExchangeNudge, r.wants(r.reply, calls))
}

func nudgeNote(json, french bool) string {
	if french {
		how := "appelle l'outil qui termine l'exécution"
		if json {
			how = `réponds avec "completed": true`
		}
		return "Personne ne lit cette exécution : un texte seul ne fait ni avancer ni finir le travail. S'il reste du travail, fais maintenant l'étape suivante. Si tout est fait, " + how + "."
	}
	how := "call the tool that completes the run"
	if json {
		how = `reply with "completed": true`
	}
	return "Nobody reads along in this run, so a text alone neither goes on with the work nor ends it. If work is left, take the next step now. If all of it is done, " + how + "."
}

// checkAnswer is the answer check (spec 6.2): an answer after results that a person should not get
// is asked for again, once, as long as corrections are left. It returns what the model is told, or
// nil.
func (r *run) checkAnswer(message *regie.Message) (*regie.Message, error) {
	if !r.policy.AnswerCheck || !r.restitutes() {
		return nil, nil
	}
	if _, limit := afterFormatError(r.round.Counters, r.used, r.round.Limits); !limit.IsZero() {
		return nil, nil
	}
	thread, err := r.cfg.Store.Thread(r.commit, r.session.ID, 0)
	if err != nil {
		return nil, err
	}
	answer := prompt.AnswerTo(prompt.Entries(thread.Messages, thread.Calls), message.AI.Text())
	fault := answer.Check()
	if fault == prompt.FaultNone {
		return nil, nil
	}
	again := r.system(regie.SystemFormatError, fault.Correction(r.policy.French))
	again.System.Said = []regie.Sentence{fault.Notice()}
	return again, nil
}

// correct stores a reply that is not taken, with what the model is told about it, for it to write
// it again (spec 2.2).
func (r *run) correct(ctx context.Context, message regie.Message, exchange regie.Exchange, again *regie.Message) error {
	counters, limit := afterFormatError(r.round.Counters, r.used, r.round.Limits)
	in := store.Reply{Message: message, Exchange: exchange}
	if !limit.IsZero() {
		in.Results, in.Advance = r.limitMessage(limit, nil), r.ended(counters, regie.EndLimit, limit)
	} else {
		in.Results, in.Advance = again, r.nextModel(counters, regie.ExchangeFormatError, r.wants(&message, nil))
	}
	fault.Point(fault.FormatBefore)
	if err := r.keep(ctx, in); err != nil {
		return err
	}
	fault.Point(fault.FormatAfter)
	return nil
}

// keep stores a reply that proposes nothing, with what follows it. Where a stopping word came
// before, it is stored all the same, and the round ends with the word (decision 6).
func (r *run) keep(ctx context.Context, in store.Reply) error {
	if word, _ := r.stopWord(ctx); word == regie.StopInterrupt || word == regie.StopStop {
		in.Advance = r.ended(in.Advance.Counters, endOf(word), quietly)
	}
	out, err := r.cfg.Store.AppendReply(r.commit, r.fence, in)
	if regie.CodeOf(err) == regie.CodeStopRequested {
		if err := r.readStop(); err != nil {
			return err
		}
		return r.keep(ctx, in)
	}
	if in.Keep != nil {
		r.cfg.Cache.Stored(r.commit, in.Keep, err)
	}
	if err == nil {
		r.learned(&in.Exchange)
		r.counts(&in.Exchange, !in.Hit.IsZero())
		in.Message.Seq = out.Seq
	}
	if err == nil && in.Results != nil {
		r.reply, r.calls = &in.Message, nil
		r.closeBatch(in.Results, out)
	}
	return r.moved(out, err, in.Advance)
}
