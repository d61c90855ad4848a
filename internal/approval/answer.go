package approval

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/regie-run/regie"
)

// ScopeFor returns the scope of an answer for a session or for always (decision 20): the one that
// the person chose, as the preview proposed it, or the first proposed one, the narrowest, where
// they chose none. The zero Scope belongs to the answers that have none. It returns CodeBadRequest
// for a scope that was not proposed, for one with an answer that takes none, where nothing was
// proposed, and for an unknown answer.
func ScopeFor(answer regie.Answer, proposed []regie.Scope, chosen *regie.Scope) (regie.Scope, error) {
	if err := CheckAnswer(answer); err != nil {
		return regie.Scope{}, err
	}
	if answer == regie.AnswerAllow || answer == regie.AnswerDeny {
		if chosen != nil {
			return regie.Scope{}, regie.Errorf(regie.CodeBadRequest,
				"the answer %s takes no scope: use allow_session or allow_always", string(answer))
		}
		return regie.Scope{}, nil
	}
	if len(proposed) == 0 {
		return regie.Scope{}, regie.Errorf(regie.CodeBadRequest,
			"this call can only be allowed once: its tool proposes no scope")
	}
	if chosen == nil {
		return proposed[0], nil
	}
	for _, scope := range proposed {
		if scope.Tool == chosen.Tool && scope.Field == chosen.Field && scope.Kind == chosen.Kind &&
			scope.Value == chosen.Value {
			return scope, nil // with the sentence that was shown, not the one that was sent
		}
	}
	return regie.Scope{}, regie.Errorf(regie.CodeBadRequest,
		"this scope was not proposed for the call: choose one of those that the approval lists")
}

// CheckAnswer returns CodeBadRequest for an unknown answer.
func CheckAnswer(answer regie.Answer) error {
	switch answer {
	case regie.AnswerAllow, regie.AnswerDeny, regie.AnswerSession, regie.AnswerAlways:
		return nil
	default:
		return regie.Errorf(regie.CodeBadRequest, "%q is not an answer: use allow, allow_session, allow_always or deny",
			string(answer))
	}
}

// MaxStanding bounds how long an answer that expires may hold (spec 11.3): what is to hold longer
// has no expiry.
const MaxStanding = 10 * 365 * 24 * time.Hour

// CheckExpiry returns CodeBadRequest for an invalid expiry of an answer given at a time: one with
// an answer that makes no rule, one in the past, and one after MaxStanding. The zero expiry is
// valid.
func CheckExpiry(answer regie.Answer, at, expires time.Time) error {
	switch {
	case expires.IsZero():
		return nil
	case answer != regie.AnswerSession && answer != regie.AnswerAlways:
		return regie.Errorf(regie.CodeBadRequest, "the answer %s does not expire: use allow_session or allow_always",
			string(answer))
	case !expires.After(at):
		return regie.Errorf(regie.CodeBadRequest, "the expiry is in the past: give a future time")
	case expires.Sub(at) > MaxStanding:
		return regie.Errorf(regie.CodeBadRequest,
			"the answer would expire after more than ten years: leave the expiry out")
	}
	return nil
}

// RuleFrom returns the standing rule that an answer for a session or for always makes (spec 4.4):
// an ALLOW until the answer's expiry, for the session or for every session of the workspace. id and
// at are the rule's. review is that of the allowed arguments: a decision that edits them needs a
// review of the edited ones, else the rule would allow what the person changed. Errors are those of
// ScopeFor and CheckExpiry, CodeBadRequest for answers that make no rule, for a mismatched review
// and for a scope of another tool, and CodeInternal where the rule would lack its owner and could
// count for more than was meant.
func RuleFrom(id, workspace, session regie.ID, at time.Time, review regie.Review,
	decision regie.Decision,
) (regie.Rule, error) {
	scope, err := ScopeFor(decision.Answer, review.Preview.Scopes, decision.Scope)
	if err == nil {
		err = CheckExpiry(decision.Answer, at, decision.ExpiresAt)
	}
	if err != nil {
		return regie.Rule{}, err
	}
	switch {
	case decision.Answer != regie.AnswerSession && decision.Answer != regie.AnswerAlways:
		return regie.Rule{}, regie.Errorf(regie.CodeBadRequest, "the answer %s makes no rule", string(decision.Answer))
	case len(decision.Arguments) > 0 && !sameJSON(decision.Arguments, review.Arguments):
		return regie.Rule{}, regie.Errorf(regie.CodeBadRequest,
			"the arguments were edited, and the scopes belong to the original ones: allow the edited call once")
	case scope.Tool != review.Tool:
		return regie.Rule{}, regie.Errorf(regie.CodeBadRequest,
			"the scope is for %q and the call is of %q: allow it once", scope.Tool, review.Tool)
	case id.IsZero() || workspace.IsZero() || session.IsZero() || review.CallID.IsZero() ||
		decision.By == "" || at.IsZero():
		return regie.Rule{}, regie.Errorf(regie.CodeInternal, "the rule would not say whose it is")
	case review.CallID != decision.CallID:
		return regie.Rule{}, regie.Errorf(regie.CodeInternal, "the decision is about another call")
	}
	rule := regie.Rule{
		ID: id, WorkspaceID: workspace, Verdict: regie.VerdictAllow, Scope: scope, Author: decision.By, CreatedAt: at,
		ExpiresAt: decision.ExpiresAt,
		FromCall:  review.CallID,
	}
	if decision.Answer == regie.AnswerSession {
		rule.SessionID = session
	}
	return rule, nil
}

// sameJSON compares values, not letters: a person's editor writes spaces that the canonical form
// has not.
func sameJSON(a, b []byte) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}
