package engine

import (
	"errors"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// maxResumes bounds how often a round is taken up again without getting anywhere (spec 5.3):
// something in it kills its process.
const maxResumes = 3

// byPerson is why a round ends whom a person stopped.
var byPerson = regie.Say("stopped by the person")

// obeyStop carries a stopping word out, at the border between two steps (decision 6).
func (r *run) obeyStop(word regie.StopRequest) error {
	if word != regie.StopPause {
		return r.endEarly(endOf(word), r.stopReason(word))
	}
	if err := r.releaseRound(byPause); err != nil {
		return err
	}
	r.parked = true
	return nil
}

// releaseRound stores what is done and releases the round cleanly: nothing of it is under way, so a
// started call without a result did not run. A call of a dead process that was not recovered yet
// stays as it is; the store knows it as a call that waits for its tool.
func (r *run) releaseRound(by cut) error {
	if err := errors.Join(r.batch.saveResults(), r.call.bookOpenCall(by)); err != nil {
		return err
	}
	if r.resumed && slices.ContainsFunc(r.batch.calls, func(c regie.Call) bool {
		return c.State == regie.CallStarted && !c.Recovered
	}) {
		return nil
	}
	return r.cfg.Store.Release(r.commit, r.fence)
}

// shouldYield reports whether the round lets another one go first. It does so between two
// exchanges, where nothing of it is under way.
func (r *run) shouldYield() bool {
	return r.round.Phase == regie.PhaseModel && len(r.batch.unsaved) == 0 && r.cfg.Yields != nil &&
		r.cfg.Yields(r.round.ID)
}

// yieldRound releases the round cleanly: it is queued, and goes on when it gets a slot.
func (r *run) yieldRound() error {
	if err := errors.Join(r.batch.saveResults(), r.call.bookOpenCall(byDeath)); err != nil {
		return err
	}
	if err := r.cfg.Store.Yield(r.commit, r.fence); err != nil {
		return err
	}
	fault.Point(fault.YieldAfter)
	r.parked = true
	return nil
}

// endEarly ends a round before its answer, in any phase, and leaves the thread legal. It books a
// model call that may have been sent, with what cut it; one that was not sent has no attempt.
func (r *run) endEarly(reason regie.RoundEnd, note regie.Sentence) error {
	if r.round.Phase != regie.PhaseModel {
		return r.endInCalls(reason, note)
	}
	by, message := cut{regie.CodeStopRequested, note.String()}, r.timeoutMessage(reason, note)
	if reason == regie.EndLimit {
		by = cut{regie.CodeTimeout, "ended: " + note.String() + " was reached"}
		message = r.limitMessage(note, nil)
	}
	if r.call.maybeSent() && !r.call.sent {
		by = byDeath
	}
	attempt := r.call.newAttempt(by.code, by.why)
	if r.call.sent { // people have seen it
		attempt.Partial = r.call.streamed.String()
		r.used += attempt.Usage.Input + attempt.Usage.Output
	}
	end := r.endRound(r.round.Counters, reason, note)
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: attempt, Unasked: !r.call.maybeSent(), Message: message, Advance: &end,
	})
	return r.advance(out, err, end)
}

// endInCalls ends a round in the middle of a batch: what has started is settled by evidence, what
// has not is not run. A person's answer may come between looking and storing; then it is looked at
// again.
func (r *run) endInCalls(reason regie.RoundEnd, note regie.Sentence) error {
	for try := 1; ; try++ {
		if err := r.batch.syncAnswers(); err != nil {
			return err
		}
		if err := r.endBatch(reason, note); regie.CodeOf(err) != regie.CodeConflict || try == 3 {
			return err
		}
	}
}

// endBatch settles what is left of the batch and ends the round with it.
func (r *run) endBatch(reason regie.RoundEnd, note regie.Sentence) error {
	code, why := regie.NotRunInterrupted, note.String()
	if reason == regie.EndLimit {
		code, why = regie.NotRunOverLimit, note.String()+" was reached"
	}
	for i := range r.batch.calls {
		call := &r.batch.calls[i]
		if call.State.Settled() {
			continue
		}
		if r.recovery.mayHaveRun(call) {
			r.recovery.settleStarted(call)
		}
		if !call.State.Settled() {
			settleNotRun(call, code, regie.CallError{Code: regie.Code(code), Message: "not run: " + why})
		}
		r.batch.unsaved = append(r.batch.unsaved, i) // kept for the next try where a stronger word refuses this end
	}
	message := r.resultsMessage(r.batch.calls, "The run ended here: "+note.String()+".")
	if r.batch.askedInVain() {
		message.System.Type = regie.SystemCommunicationCancelled // decision 11
	}
	if reason == regie.EndLimit {
		message = r.limitMessage(note, r.batch.calls)
	}
	end := r.endRound(r.round.Counters, reason, note)
	in := r.batch.unsavedResults()
	in.Message, in.Post, in.Advance = message, r.timeoutMessage(reason, note), &end
	out, err := r.cfg.Store.CommitCalls(r.commit, r.fence, in)
	if err == nil {
		r.batch.unsaved = r.batch.unsaved[:0]
	}
	return r.advance(out, err, end)
}

func endOf(word regie.StopRequest) regie.RoundEnd {
	switch word {
	case regie.StopStop:
		return regie.EndStopped
	case regie.StopWatchdog:
		return regie.EndWatchdog
	default:
		return regie.EndInterrupted
	}
}

// askedInVain reports whether a question was put to a person, and the end of the round came before
// their answer.
func (cb *callBatch) askedInVain() bool {
	return slices.ContainsFunc(cb.calls, func(c regie.Call) bool {
		return cb.asker.questioned[c.ID] && c.NotRun == regie.NotRunInterrupted
	})
}

// syncAnswers brings the calls in line with what people did meanwhile: answers, and what a stopping
// word withdrew. Results that are here and not stored yet stay.
func (cb *callBatch) syncAnswers() error {
	if len(cb.reviews) == 0 && len(cb.asker.questioned) == 0 {
		return nil
	}
	var here []regie.Call
	for _, i := range cb.unsaved {
		here = append(here, cb.calls[i])
	}
	if err := cb.reloadBatch(); err != nil {
		return err
	}
	for _, call := range here {
		if i := call.Ordinal; !cb.calls[i].State.Settled() {
			cb.calls[i], cb.unsaved = call, append(cb.unsaved, i)
		}
	}
	return nil
}
