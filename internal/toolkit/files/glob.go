package files

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/regie-run/regie"
)

// Bounds of a pattern (spec 12.5): with them one match costs some microseconds, whatever the name
// is.
const (
	maxPattern      = 256 // bytes
	maxStars        = 24
	maxAlternatives = 64 // patterns that {a,b} stands for
)

// glob is a set of patterns without braces. The empty one matches everything.
type glob struct {
	patterns []string
	deep     bool // it speaks of more than one directory
	bare     bool // it speaks of names, in whatever directory
}

// compile reads a pattern such as *.go, docs/*.md or **/*.{yml,yaml}. It returns CodeBadPattern for
// one that does not parse, that speaks of what lies outside, or that would take long to match.
func compile(pattern string) (glob, error) {
	g := glob{
		deep: strings.Contains(pattern, "/") || strings.Contains(pattern, "**"),
		bare: !strings.Contains(pattern, "/"),
	}
	switch {
	case pattern == "":
		return g, nil
	case len(pattern) > maxPattern:
		return g, regie.Errorf(regie.CodeBadPattern, "the pattern has %d bytes, at most %d are allowed", len(pattern),
			maxPattern)
	case !utf8.ValidString(pattern), strings.IndexByte(pattern, 0) >= 0:
		return g, regie.Errorf(regie.CodeBadPattern, "the pattern is not text")
	case strings.IndexByte(pattern, '\\') >= 0:
		return g, regie.Errorf(regie.CodeBadPattern, "the pattern %q holds a backslash: separate directories with /",
			pattern)
	case path.IsAbs(pattern), slices.Contains(strings.Split(pattern, "/"), ".."):
		return g, regie.Errorf(regie.CodeBadPattern,
			"the pattern %q leads out of the directory: patterns are relative to path", pattern)
	case strings.Count(pattern, "*") > maxStars:
		return g, regie.Errorf(regie.CodeBadPattern, "the pattern has more than %d stars", maxStars)
	case !doublestar.ValidatePattern(pattern):
		return g, regie.Errorf(regie.CodeBadPattern,
			"the pattern %q does not parse: write it like *.go or docs/**/*.md", pattern)
	}
	var ok bool
	if g.patterns, ok = alternatives(strings.TrimPrefix(pattern, "./")); !ok {
		return g, regie.Errorf(regie.CodeBadPattern, "the pattern stands for more than %d others: use fewer braces",
			maxAlternatives)
	}
	return g, nil
}

// alternatives writes braces out; the library tries their combinations anew for each name. It gives
// up at the bound.
func alternatives(pattern string) ([]string, bool) {
	todo, done := []string{pattern}, []string{}
	for len(todo) > 0 {
		if len(todo)+len(done) > maxAlternatives {
			return nil, false
		}
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		head, choices, tail, found := firstBrace(next)
		if !found {
			if !slices.Contains(done, next) {
				done = append(done, next)
			}
			continue
		}
		for _, choice := range choices {
			todo = append(todo, head+choice+tail)
		}
	}
	slices.Sort(done)
	return done, true
}

// firstBrace cuts a valid pattern at its first {a,b}. Braces in a class, as in [{], stand for
// themselves.
func firstBrace(pattern string) (head string, choices []string, tail string, found bool) {
	depth, start, choice := 0, 0, 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '[':
			if end := strings.IndexByte(pattern[i:], ']'); end > 0 {
				i += end
			}
		case '{':
			if depth == 0 {
				start, choice = i, i+1
			}
			depth++
		case ',':
			if depth == 1 {
				choices = append(choices, pattern[choice:i])
				choice = i + 1
			}
		case '}':
			if depth--; depth == 0 {
				return pattern[:start], append(choices, pattern[choice:i]), pattern[i+1:], true
			}
		}
	}
	return pattern, nil, "", false
}

// matches reports whether a path, relative to the listed directory, is wanted.
func (g glob) matches(relative string) bool {
	if len(g.patterns) == 0 {
		return true
	}
	if g.bare {
		relative = path.Base(relative)
	}
	for _, pattern := range g.patterns {
		if doublestar.MatchUnvalidated(pattern, relative) {
			return true
		}
	}
	return false
}

// mayHold reports whether something below a directory could match: the names up to the first **
// must.
func (g glob) mayHold(dir string) bool {
	if len(g.patterns) == 0 || g.bare {
		return true
	}
	names := strings.Split(dir, "/")
	return slices.ContainsFunc(g.patterns, func(pattern string) bool {
		parts := strings.Split(pattern, "/")
		for i, name := range names {
			switch {
			case i < len(parts) && parts[i] == "**":
				return true
			case i >= len(parts)-1: // the last part is for what lies in the directory
				return false
			case !doublestar.MatchUnvalidated(parts[i], name):
				return false
			}
		}
		return true
	})
}
