package engine

import (
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/tool"
)

// recoverCall decides what becomes of a call that a dead process had started (spec 4.3, 12.2, decision 5): what may be repeated
// is repeated, what can be looked up is looked up, and of the rest nobody pretends to know.
func (r *run) recoverCall(call *regie.Call) {
	target, inv := r.invocation(call)
	if target == nil {
		settle(call, regie.CallUnknown, "", unknownOutcome("its tool is no longer there"))
		return
	}
	call.Recovered = true
	class := call.Class
	if fault.Bug(fault.BugRetryOnce) && class == regie.ClassOnce {
		class = regie.ClassKeyed
	}
	switch class {
	case regie.ClassRead, regie.ClassKeyed:
		if fault.Bug(fault.BugNewKey) {
			inv.CallID = regie.NewID()
		}
		inv.Repeated = true // the first attempt may have taken effect, whatever the second one knows
		outcome, tries := tool.Attempt(r.work, target, inv, r.cfg.Retry)
		call.Attempts += tries
		r.take(call, outcome)
	case regie.ClassVerifiable:
		r.verify(target, inv, call)
	default:
		settle(call, regie.CallUnknown, "", unknownOutcome("the process ended while it ran"))
	}
}

// verify asks the tool whether the effect happened, and performs it where it certainly did not.
func (r *run) verify(target tool.Tool, inv *tool.Invocation, call *regie.Call) {
	evidence, outcome := tool.Probe(r.commit, target, inv)
	switch evidence {
	case tool.Happened:
		r.take(call, outcome)
	case tool.NotHappened:
		call.Attempts++
		r.take(call, tool.Run(r.work, target, inv))
	default:
		settle(call, regie.CallUnknown, "", unknownOutcome("the process ended while it ran, and what is there now does not tell whether it happened"))
	}
}

func unknownOutcome(why string) *regie.CallError {
	return &regie.CallError{
		Code: regie.CodeOutcomeUnknown, Message: "outcome unknown: " + why, Hint: "verify before you try again",
	}
}
