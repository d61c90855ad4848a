package engine

import (
	"context"
	"errors"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/tool"
)

// goOn settles a call that has started: in this process a moment ago, in one that gave it back
// before it ran, or in one that died.
func (r *run) goOn(ctx context.Context, call *regie.Call) error {
	if call.ID == r.started { // judged a moment ago
		r.runAction(call)
	} else if err := r.takeUp(ctx, call); err != nil || !call.State.Settled() {
		return err
	}
	r.unsaved = append(r.unsaved, call.Ordinal)
	r.chained = r.chained && call.State == regie.CallSucceeded
	return nil
}

// mayHaveRun reports whether a call was started by a process that died, or waits for its tool since
// one found that out. Any other call that is STARTED has its intent and nothing more.
func (r *run) mayHaveRun(call *regie.Call) bool {
	return call.State == regie.CallStarted && (r.resumed || call.Recovered)
}

// takeUp settles a call that another process has started, or has the round wait with it. It stays
// as it is, too, where the round is stopped meanwhile.
func (r *run) takeUp(ctx context.Context, call *regie.Call) error {
	if err := errors.Join(r.readRules(), r.warmGuard(ctx)); err != nil || ctx.Err() != nil {
		return err // stopped while the thread was read: the loop sees why
	}
	switch target, _ := r.invocation(call); {
	case r.mayHaveRun(call):
		fault.Point(fault.RecoverBefore)
		if away := r.recoverCall(call); away != nil {
			return r.awaitTool(call, away)
		}
		fault.Point(fault.RecoverAfter)
	// Else its holder let go between the intent and the effect (see giveBack): it certainly did not
	// run.
	case target == nil:
		r.gone(call)
	case r.mayStillRun(call):
		r.runAction(call)
	}
	return nil
}

// mayStillRun judges a started call of which nothing has happened, under the rules of this moment
// (decision 20). It cannot step back to wait for a person, because a start is for ever: where it
// may not run any more it is settled as not run, and proposed again it is asked about.
func (r *run) mayStillRun(call *regie.Call) bool {
	judged, milder := r.stillAllowed(call)
	switch {
	case milder:
		return true
	case judged.Verdict == regie.VerdictForbid || !r.asksPeople():
		r.put(call, judged)
	default:
		notRun(call, regie.NotRunInterrupted, regie.CallError{
			Code: codeApprovalNeeded, Message: "not run: before it began, the run was given to another process, and by now a person has to approve it: " + because(judged.Grounds),
			Hint: "propose it again: then the person is asked", Retryable: true,
		})
	}
	return false
}

// recoverCall decides what becomes of a call that a dead process had started (spec 4.3, 12.2,
// decision 5): what may be repeated is repeated, what can be looked up is looked up, and of the
// rest nobody pretends to know. Whatever would run again is judged again (decision 20). Where that
// cannot be found out for now, because the tool is away, the call stays as it is, and why is
// returned. A call that is neither repeated nor looked up needs no tool for its answer: nothing
// would be learnt by waiting.
func (r *run) recoverCall(call *regie.Call) (away error) {
	class := call.Class
	if fault.Bug(fault.BugRetryOnce) && class == regie.ClassOnce {
		class = regie.ClassKeyed
	}
	target, inv := r.invocation(call)
	switch {
	case class != regie.ClassKeyed && class != regie.ClassVerifiable:
		call.Recovered = true
		r.lose(target, inv, call)
	case target == nil && r.tools.Away(call.Tool) != nil:
		return r.tools.Away(call.Tool)
	case target == nil:
		settle(call, regie.CallUnknown, "", unknownOutcome("its tool is no longer there, or is another one now"))
	case class == regie.ClassVerifiable:
		call.Recovered = true
		r.verify(target, inv, call)
	default:
		return r.repeat(target, inv, call)
	}
	return nil
}

// repeat runs a call again that may have happened, under its key. Where it may not run any more
// nobody knows what became of it. Where it could not be run for now, it stays as it is, and why is
// returned.
func (r *run) repeat(target tool.Tool, inv *tool.Invocation, call *regie.Call) (away error) {
	if judged, milder := r.stillAllowed(call); !milder {
		call.Recovered = true
		settle(call, regie.CallUnknown, "",
			unknownOutcome("the process ended while it ran, and it may not be repeated any more: "+
				because(judged.Grounds)))
		return nil
	}
	if fault.Bug(fault.BugNewKey) {
		inv.CallID = regie.NewID()
	}
	inv.Repeated = true // the first attempt may have taken effect, whatever the second one knows
	outcome, tries := tool.Attempt(r.work, target, inv, r.cfg.Retry)
	call.Attempts += tries
	if outcome.Unreached != nil {
		return outcome.Unreached
	}
	call.Recovered = true
	r.take(call, outcome)
	return nil
}

// verify asks the tool whether the effect happened, and performs it where it certainly did not and
// still may.
func (r *run) verify(target tool.Tool, inv *tool.Invocation, call *regie.Call) {
	evidence, outcome := tool.Probe(r.commit, target, inv)
	switch {
	case evidence == tool.Happened:
		r.take(call, outcome)
	case evidence != tool.NotHappened:
		settle(call, regie.CallUnknown, "",
			unknownOutcome("the process ended while it ran, and what is there now does not tell whether it happened"))
	case r.mayStillRun(call):
		call.Attempts++
		r.take(call, tool.Run(r.work, target, inv))
	}
}

// lose settles a call as UNKNOWN that was started by a process which died. What it changed in files
// is found out all the same, where its tool had that secured: so it can be taken back.
func (r *run) lose(target tool.Tool, inv *tool.Invocation, call *regie.Call) {
	problem := unknownOutcome("the process ended while it ran")
	if target != nil {
		call.Changed = tool.TrackLost(r.commit, target, inv, problem)
	}
	settle(call, regie.CallUnknown, "", problem)
}

func unknownOutcome(why string) *regie.CallError {
	return &regie.CallError{
		Code: regie.CodeOutcomeUnknown, Message: "outcome unknown: " + why, Hint: "verify before you try again",
	}
}
