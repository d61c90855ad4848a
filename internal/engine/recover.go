package engine

import (
	"context"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// recovery finds out about calls that another process had started.
type recovery struct{ *run }

// mayHaveRun reports whether a call was started by a process that died, or waits for its tool since
// one found that out. Any other call that is STARTED has its intent and nothing more.
func (v *recovery) mayHaveRun(call *regie.Call) bool {
	return call.State == regie.CallStarted && (v.resumed || call.Recovered)
}

// runStarted settles a call that has started: in this process a moment ago, in one that gave it
// back before it ran, or in one that died.
func (cb *callBatch) runStarted(ctx context.Context, call *regie.Call) error {
	if call.ID == cb.started { // judged a moment ago
		cb.runner.runAction(call)
	} else if err := cb.takeOverCall(ctx, call); err != nil || !call.State.Settled() {
		return err
	}
	cb.unsaved = append(cb.unsaved, call.Ordinal)
	return nil
}

// takeOverCall settles a call that another process has started, or has the round wait with it. It
// stays as it is, too, where the round is stopped meanwhile.
func (cb *callBatch) takeOverCall(ctx context.Context, call *regie.Call) error {
	if err := cb.judge.refresh(ctx); err != nil || ctx.Err() != nil {
		return err // stopped while the thread was read: the loop sees why
	}
	switch target, _ := cb.runner.newInvocation(call); {
	case cb.recovery.mayHaveRun(call):
		fault.Point(fault.RecoverBefore)
		if away := cb.recovery.recoverCall(call); away != nil {
			return cb.awaitTool(call, away)
		}
		fault.Point(fault.RecoverAfter)
	// Else its holder let go between the intent and the effect (see releaseRound): it certainly did
	// not run.
	case target == nil:
		cb.runner.settleMissing(call)
	case cb.recovery.mayStillRun(call):
		cb.runner.runAction(call)
	}
	return nil
}

// awaitTool parks the round with a started call of a dead process that can be repeated or looked
// up, but has no tool at hand because its server is down (decisions 5, 12 and 42): the call is
// neither failed nor unknown for that. It is tried again, at first every 30 s.
func (cb *callBatch) awaitTool(call *regie.Call, away error) error {
	if err := cb.saveResults(); err != nil {
		return err
	}
	toolkit, _, _ := strings.Cut(call.Tool, ".")
	fault.Point(fault.AskBefore)
	out, err := cb.cfg.Store.Note(cb.commit, cb.fence, store.Note{
		Message: cb.toolNotice(regie.ToolNotice{
			Missing: []regie.Missing{{Toolkit: toolkit, Why: away.Error()}},
			CallID:  call.ID,
		}),
		Waits: call.ID, Until: time.Now().Add(networkBackoff(cb.cfg.NetworkRetry, call.Attempts)),
	})
	if err != nil {
		return err
	}
	fault.Point(fault.AskAfter)
	call.Recovered, cb.parked = true, out.Parked
	return nil
}

// recoverCall settles a call that a dead process had started (spec 4.3, 12.2, decision 5): it
// repeats a repeatable call, looks up one with a probe, and leaves the rest UNKNOWN. A call that
// would run again is judged again (decision 20). If its tool is down, the call stays as it is and
// the reason is returned. A call that can be neither repeated nor looked up does not need its tool.
func (v *recovery) recoverCall(call *regie.Call) (away error) {
	class := call.Class
	if fault.Bug(fault.BugRetryOnce) && class == regie.ClassOnce {
		class = regie.ClassKeyed
	}
	target, inv := v.runner.newInvocation(call)
	switch {
	case class != regie.ClassKeyed && class != regie.ClassVerifiable:
		call.Recovered = true
		v.settleUnknown(target, inv, call)
	case target == nil && v.tools.Away(call.Tool) != nil:
		return v.tools.Away(call.Tool)
	case target == nil:
		settleCall(call, regie.CallUnknown, "", unknownOutcome("its tool is no longer there, or is another one now"))
	case class == regie.ClassVerifiable:
		call.Recovered = true
		v.verifyCall(target, inv, call)
	default:
		return v.repeatCall(target, inv, call)
	}
	return nil
}

// repeatCall runs a call that may have happened again, under its key. If it may not run any more
// its outcome is unknown. If it cannot run for now, it stays as it is, and the reason is returned.
func (v *recovery) repeatCall(target tool.Tool, inv *tool.Invocation, call *regie.Call) (away error) {
	if judged, milder := v.judge.stillAllowed(call); !milder {
		call.Recovered = true
		settleCall(call, regie.CallUnknown, "",
			unknownOutcome("the process ended while it ran, and it may not be repeated any more: "+
				joinGrounds(judged.Grounds)))
		return nil
	}
	if fault.Bug(fault.BugNewKey) {
		inv.CallID = regie.NewID()
	}
	inv.Repeated = true // the first attempt may have taken effect, whatever the second one knows
	outcome, tries := tool.Attempt(v.work, target, inv, v.retry())
	call.Attempts += tries
	if outcome.Unreached != nil {
		return outcome.Unreached
	}
	call.Recovered = true
	v.runner.settleOutcome(call, outcome)
	return nil
}

// verifyCall asks the tool whether the effect happened, and performs it where it certainly did not
// and still may.
func (v *recovery) verifyCall(target tool.Tool, inv *tool.Invocation, call *regie.Call) {
	evidence, outcome := tool.Probe(v.commit, target, inv)
	switch {
	case evidence == tool.Happened:
		v.runner.settleOutcome(call, outcome)
	case evidence != tool.NotHappened:
		settleCall(call, regie.CallUnknown, "",
			unknownOutcome("the process ended while it ran, and what is there now does not tell whether it happened"))
	case v.mayStillRun(call):
		call.Attempts++
		v.runner.settleOutcome(call, tool.Run(v.work, target, inv))
	}
}

// settleUnknown settles a call as UNKNOWN that was started by a process which died. What it changed
// in files is found out all the same, where its tool had that secured: so it can be taken back.
func (v *recovery) settleUnknown(target tool.Tool, inv *tool.Invocation, call *regie.Call) {
	problem := unknownOutcome("the process ended while it ran")
	if target != nil {
		call.Changed = tool.TrackLost(v.commit, target, inv, problem)
	}
	settleCall(call, regie.CallUnknown, "", problem)
}

// mayStillRun judges a started call without any effect so far, under the present rules (decision
// 20). A started call cannot wait for a person: if it may not run any more it is settled as not
// run, and a new proposal of it needs an approval.
func (v *recovery) mayStillRun(call *regie.Call) bool {
	judged, milder := v.judge.stillAllowed(call)
	switch {
	case milder:
		return true
	case judged.Verdict == regie.VerdictForbid || !v.asksPeople():
		v.judge.applyVerdict(call, judged)
	default:
		settleNotRun(call, regie.NotRunInterrupted, regie.CallError{
			Code: codeApprovalNeeded, Message: "not run: before it began, the run was given to another process, and by now a person has to approve it: " + joinGrounds(judged.Grounds),
			Hint: "propose it again: then the person is asked", Retryable: true,
		})
	}
	return false
}

// settleStarted finds out about a call that another process started, without performing it: a
// probe, or UNKNOWN (decision 5). A call that certainly did not happen stays open.
func (v *recovery) settleStarted(call *regie.Call) {
	call.Recovered = true
	target, inv := v.runner.newInvocation(call)
	evidence, outcome := tool.Unsure, tool.Outcome{}
	if target != nil && call.Class == regie.ClassVerifiable {
		evidence, outcome = tool.Probe(v.commit, target, inv)
	}
	switch evidence {
	case tool.Happened:
		v.runner.settleOutcome(call, outcome)
	case tool.NotHappened:
	default:
		v.settleUnknown(target, inv, call)
	}
}

func unknownOutcome(why string) *regie.CallError {
	return &regie.CallError{
		Code: regie.CodeOutcomeUnknown, Message: "outcome unknown: " + why, Hint: "verify before you try again",
	}
}
