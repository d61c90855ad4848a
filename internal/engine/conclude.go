package engine

import (
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
)

// conclusion is what a settled batch means for its round beside its results.
type conclusion struct {
	completed bool             // the model's own word, and all else succeeded (decision 13)
	refused   regie.SystemType // the message's type where nothing went on as the model wanted
	why       regie.Sentence
	ends      bool // nobody wants the round to go on
}

// conclude reads a settled batch. It is pure.
func (r *run) conclude(calls []regie.Call) conclusion {
	var refused, questions, acted, silent int
	for i := range calls {
		c := &calls[i]
		role := r.role(c)
		switch {
		case role == regie.RoleComplete && c.State == regie.CallSucceeded:
			return conclusion{completed: true}
		case role == regie.RoleComplete && c.State == regie.CallFailed:
			return conclusion{refused: regie.SystemCompleteRefused}
		case cancelled(c):
			refused++
			if role == regie.RoleQuestion {
				questions++
			}
			if quiet(c) {
				silent++
			}
		case c.Kind == regie.KindAction && c.State != regie.CallNotRun:
			acted++
		}
	}
	if refused == 0 || acted > 0 {
		return conclusion{}
	}
	out := conclusion{refused: regie.SystemValidationCancelled, ends: silent == refused &&
		r.session.Type == regie.SessionChat}
	if questions == refused {
		out.refused = regie.SystemCommunicationCancelled
	}
	if out.ends {
		out.why = regie.Say("The person denied it, or did not answer in time. Nothing of it was run.")
	}
	return out
}

// cancelled reports whether a person's word, or their silence, kept a call from running.
func cancelled(c *regie.Call) bool {
	if c.State != regie.CallNotRun {
		return false
	}
	switch c.NotRun {
	case regie.NotRunExpired, regie.NotRunSuperseded:
		return true
	case regie.NotRunDenied:
		return c.Error != nil && c.Error.Code == regie.CodeUserRejected
	default:
		return false
	}
}

// quiet reports whether a refusal came without a word that the model could go on with (decision
// 20): a denial with a reason and another message are such words.
func quiet(c *regie.Call) bool {
	return c.NotRun == regie.NotRunExpired || c.NotRun == regie.NotRunDenied && c.Error.Hint != ""
}

// complete settles the call that ends the round, after all others (decision 13).
func (r *run) complete(call *regie.Call) {
	var open []string
	for i := range r.calls {
		other := &r.calls[i]
		if r.role(other) != regie.RoleComplete && other.State != regie.CallSucceeded &&
			other.NotRun != regie.NotRunDuplicateInBatch {
			open = append(open, other.Tool+": "+string(other.State))
		}
	}
	r.unsaved = append(r.unsaved, call.Ordinal)
	if len(open) == 0 {
		settle(call, regie.CallSucceeded, "completed", nil)
		return
	}
	settle(call, regie.CallFailed, "", &regie.CallError{
		Code: "COMPLETE_REFUSED", Message: "not completed: of this reply " + strings.Join(open, ", "), Retryable: true,
		Hint: "repair or explain what did not succeed, then complete",
	})
}

// newPlan returns the plan that a batch's results changed, or nil.
func (r *run) newPlan(indexes []int) json.RawMessage {
	var plan json.RawMessage
	for _, i := range indexes {
		if call := &r.calls[i]; r.role(call) == regie.RolePlan && call.State == regie.CallSucceeded {
			plan = r.executable(call)
		}
	}
	return plan
}
