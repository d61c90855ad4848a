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
// call was proposed. What was started already ends as it can, and the scopes do not bind a person's
// own commands and mentions.
func (s *roundState) inScope(call *regie.Call) bool {
	return call.State == regie.CallStarted || call.State.Settled() || s.isCommand() ||
		call.Origin == regie.OriginUser ||
		regie.InScopes(s.policy.Scopes, call.Tool) && regie.InScopes(s.files.Scopes, call.Tool)
}
