package engine

import (
	"fmt"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// scopeKey identifies a registry without the tools outside of an agent's scopes.
type scopeKey struct {
	all    *tool.Registry
	scopes string
}

// withinScopes returns the tools that an agent is offered: those in its scopes when the round
// began, and by its present definition (decision 66).
func (e *Engine) withinScopes(all *tool.Registry, scopes []regie.ToolScope) (*tool.Registry, error) {
	if len(scopes) == 0 {
		return all, nil
	}
	return e.scoped.get(scopeKey{all, fmt.Sprintf("%q", scopes)}, func() (*tool.Registry, error) {
		return all.Within(scopes), nil
	})
}

// inScope reports whether a call may start by the agent's scopes, which may have changed since the
// call was proposed. What was started already ends as it can.
func (s *roundState) inScope(call *regie.Call) bool {
	return call.State == regie.CallStarted || call.State.Settled() ||
		regie.InScopes(s.policy.Scopes, call.Tool) && regie.InScopes(s.files.Scopes, call.Tool)
}

// maxOutput is the bound of the round's replies in tokens.
func (s *roundState) maxOutput() int {
	if s.policy.MaxOutput > 0 {
		return s.policy.MaxOutput
	}
	return s.cfg.MaxOutput
}

// retry bounds the attempts of one of the round's calls.
func (s *roundState) retry() tool.Retry {
	retry := s.cfg.Retry
	if most := s.round.Limits.CallAttempts; most > 0 && (retry.Max <= 0 || most < retry.Max) {
		retry.Max = most
	}
	return retry
}

// isOverSessionCalls reports whether a further call of a reply is over the limit of its session.
// What ends, plans or asks is no work, and may always be said.
func (s *roundState) isOverSessionCalls(known, ordinal int, checked *tool.Checked) bool {
	most := s.round.Limits.SessionCalls
	return most > 0 && known+ordinal >= most && (checked.Tool == nil || checked.Tool.Definition().Role == "")
}
