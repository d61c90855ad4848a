package automation

import (
	"github.com/bmatcuk/doublestar/v4"

	"github.com/regie-run/regie"
)

// CheckPatterns returns CodeBadPattern for a pattern of paths that is malformed or has more than
// limit bytes.
func CheckPatterns(patterns []string, limit int) error {
	for _, pattern := range patterns {
		if pattern == "" || len(pattern) > limit || !doublestar.ValidatePattern(pattern) {
			return regie.Errorf(regie.CodeBadPattern, "%q is not a pattern of paths: write docs/** or *.csv", pattern)
		}
	}
	return nil
}

// Matches reports whether a path matches one of the patterns.
func Matches(patterns []string, path string) bool {
	for _, pattern := range patterns {
		if ok, err := doublestar.Match(pattern, path); ok && err == nil {
			return true
		}
	}
	return false
}
