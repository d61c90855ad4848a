package regie

import (
	"path"
	"slices"
	"strings"
)

// ToolScope is a set of tools by patterns of their canonical names (spec 4.2): * means any
// part, and a pattern behind ! takes tools away. An empty scope, or one that only takes away,
// begins with all tools.
type ToolScope []string

// coreToolkits are in every scope: what ends and plans a round, reads its results, and what a
// client brings.
var coreToolkits = []string{"session", "skills", ToolkitClient}

// Holds reports whether a tool is in the scope.
func (s ToolScope) Holds(tool string) bool {
	toolkit, _, _ := strings.Cut(tool, ".")
	if slices.Contains(coreToolkits, toolkit) {
		return true
	}
	holds := !slices.ContainsFunc(s, func(pattern string) bool { return !strings.HasPrefix(pattern, "!") })
	for _, pattern := range s {
		name, takes := strings.CutPrefix(pattern, "!")
		if ok, err := path.Match(name, tool); ok && err == nil {
			if takes {
				return false
			}
			holds = true
		}
	}
	return holds
}

// InScopes reports whether a tool is in all of several scopes.
func InScopes(scopes []ToolScope, tool string) bool {
	return !slices.ContainsFunc(scopes, func(s ToolScope) bool { return !s.Holds(tool) })
}
