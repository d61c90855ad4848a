package engine

import (
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// maxResumes bounds how often a round is taken up again without getting anywhere (spec 5.3):
// something in it kills its process.
const maxResumes = 3

// obey carries a stopping word out, at the border between two steps (decision 6).
func (r *run) obey(word regie.StopRequest) error {
	if word != regie.StopPause {
		return r.endEarly(endOf(word), r.because(word))
	}
	if err := r.giveBack(byPause); err != nil {
		return err
	}
	r.parked = true
	return nil
}

// byPerson is why a round ends whom a person stopped.
var byPerson = regie.Say("stopped by the person")

// because is why a round ends by a word.
func (r *run) because(word regie.StopRequest) regie.Sentence {
	if word != regie.StopWatchdog {
		return byPerson
	}
	return regie.Say("nothing happened in it for %s", r.quiet.Round(time.Second).String())
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

// timedOut is the audit message of a round that the watchdog ends, which no model reads (spec 5.1);
// nil for any other end.
func (r *run) timedOut(reason regie.RoundEnd, note regie.Sentence) *regie.Message {
	if reason != regie.EndWatchdog {
		return nil
	}
	message := r.told(regie.SystemSessionTimeout, regie.SayOf("The run was stopped: %s.", note))
	message.ExcludeFromPrompt = true
	return message
}

// endEarly ends a round before its answer, in whichever phase it stands, and leaves the thread
// legal.
func (r *run) endEarly(reason regie.RoundEnd, note regie.Sentence) error {
	if r.round.Phase == regie.PhaseModel {
		return r.endInModel(reason, note)
	}
	return r.endInCalls(reason, note)
}

// endAtLimit ends a round between two steps, because a limit of all of it is used up (spec 3.2).
func (r *run) endAtLimit(limit regie.Sentence) error {
	if r.round.Phase != regie.PhaseModel {
		return r.endInCalls(regie.EndLimit, limit)
	}
	return r.endAsking(cut{regie.CodeTimeout, "ended: " + limit.String() + " was reached"}, r.limitMessage(limit, nil),
		r.ended(r.round.Counters, regie.EndLimit, limit))
}

// endInModel ends a round whose model call is open.
func (r *run) endInModel(reason regie.RoundEnd, note regie.Sentence) error {
	return r.endAsking(cut{regie.CodeStopRequested, note.String()}, r.timedOut(reason, note),
		r.ended(r.round.Counters, reason, note))
}

// endAsking ends a round whose model call is open. One that may have been sent is booked, with what
// cut it; of one that was not there is no attempt.
func (r *run) endAsking(by cut, message *regie.Message, end store.Advance) error {
	if r.underWay() && !r.sent {
		by = byDeath
	}
	attempt := r.attempt(by.code, by.why)
	if r.sent { // people have seen it
		attempt.Partial = r.streamed.String()
		r.used += attempt.Usage.Input + attempt.Usage.Output
	}
	out, err := r.cfg.Store.FailAttempt(r.commit, r.fence, store.Failure{
		Attempt: attempt, Unasked: !r.underWay(), Message: message, Advance: &end,
	})
	return r.moved(out, err, end)
}

// endInCalls ends a round in the middle of a batch: what has started is settled by evidence, what
// has not is not run. A person's answer may come between looking and storing; then it is looked at
// again.
func (r *run) endInCalls(reason regie.RoundEnd, note regie.Sentence) error {
	for try := 1; ; try++ {
		if err := r.current(); err != nil {
			return err
		}
		if err := r.endBatch(reason, note); regie.CodeOf(err) != regie.CodeConflict || try == 3 {
			return err
		}
	}
}

func (r *run) endBatch(reason regie.RoundEnd, note regie.Sentence) error {
	code, why := regie.NotRunInterrupted, note.String()
	if reason == regie.EndLimit {
		code, why = regie.NotRunOverLimit, note.String()+" was reached"
	}
	for i := range r.calls {
		call := &r.calls[i]
		if call.State.Settled() {
			continue
		}
		if r.mayHaveRun(call) {
			r.settleStarted(call)
		}
		if !call.State.Settled() {
			notRun(call, code, regie.CallError{Code: regie.Code(code), Message: "not run: " + why})
		}
		r.unsaved = append(r.unsaved, i) // kept for the next try where a stronger word refuses this end
	}
	message := r.results(r.calls, "The run ended here: "+note.String()+".")
	if r.askedInVain() {
		message.System.Type = regie.SystemCommunicationCancelled // decision 11
	}
	if reason == regie.EndLimit {
		message = r.limitMessage(note, r.calls)
	}
	end := r.ended(r.round.Counters, reason, note)
	out, err := r.cfg.Store.CommitCalls(r.commit, r.fence, store.Settle{
		Exchange: r.exchange.Number, Settled: r.pick(r.unsaved), Message: message,
		Post: r.timedOut(reason, note), Advance: &end,
	})
	if err == nil {
		r.unsaved = r.unsaved[:0]
	}
	return r.moved(out, err, end)
}

// askedInVain reports whether a question was put to a person, and the end of the round came before
// their answer.
func (r *run) askedInVain() bool {
	return slices.ContainsFunc(r.calls, func(c regie.Call) bool {
		return r.questioned[c.ID] && c.NotRun == regie.NotRunInterrupted
	})
}

// current brings the calls in line with what people did meanwhile: answers, and what a stopping
// word withdrew. Results that are here and not stored yet stay.
func (r *run) current() error {
	if len(r.reviews) == 0 && len(r.questioned) == 0 {
		return nil
	}
	here := make(map[int]regie.Call, len(r.unsaved))
	for _, i := range r.unsaved {
		here[i] = r.calls[i]
	}
	unsaved := slices.Clone(r.unsaved)
	if err := r.reload(); err != nil {
		return err
	}
	for _, i := range unsaved {
		if !r.calls[i].State.Settled() {
			r.calls[i], r.unsaved = here[i], append(r.unsaved, i)
		}
	}
	return nil
}

// settleStarted finds out about a call that another process started, without performing it: a
// probe, or UNKNOWN (decision 5). A call that certainly did not happen stays open.
func (r *run) settleStarted(call *regie.Call) {
	call.Recovered = true
	target, inv := r.invocation(call)
	evidence, outcome := tool.Unsure, tool.Outcome{}
	if target != nil && call.Class == regie.ClassVerifiable {
		evidence, outcome = tool.Probe(r.commit, target, inv)
	}
	switch evidence {
	case tool.Happened:
		r.take(call, outcome)
	case tool.NotHappened:
	default:
		r.lose(target, inv, call)
	}
}
