package files

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/regie-run/regie"
)

// Bounds of a pattern (spec 12.5): with them one match of any name costs some microseconds.
const (
	maxPattern = 256 // bytes
	maxStars   = 24
	maxBraces  = 3
	maxCommas  = 12
)

// glob is a pattern. The empty one matches everything.
type glob struct {
	pattern string
	deep    bool // it speaks of more than one directory
	bare    bool // it speaks of names, in whatever directory
}

// compileGlob reads a pattern such as *.go, docs/*.md or **/*.{yml,yaml}. It returns CodeBadPattern
// for one that does not parse, that speaks of what lies outside, or that would take long to match.
func compileGlob(pattern string) (glob, error) {
	g := glob{
		pattern: strings.TrimPrefix(pattern, "./"),
		deep:    strings.Contains(pattern, "/") || strings.Contains(pattern, "**"),
		bare:    !strings.Contains(pattern, "/"),
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
	case strings.Count(pattern, "{") > maxBraces || strings.Count(pattern, ",") > maxCommas:
		return g, regie.Errorf(regie.CodeBadPattern, "the pattern stands for too many others: use fewer braces")
	case !doublestar.ValidatePattern(pattern):
		return g, regie.Errorf(regie.CodeBadPattern,
			"the pattern %q does not parse: write it like *.go or docs/**/*.md", pattern)
	}
	return g, nil
}

// matchesPath reports whether a path, relative to the listed directory, is wanted.
func (g glob) matchesPath(relative string) bool {
	if g.bare {
		relative = path.Base(relative)
	}
	return g.pattern == "" || doublestar.MatchUnvalidated(g.pattern, relative)
}

// mayHold reports whether something below a directory could match: the names up to the first **
// must. Of a pattern with braces that is not asked.
func (g glob) mayHold(dir string) bool {
	if g.pattern == "" || g.bare || strings.Contains(g.pattern, "{") {
		return true
	}
	parts := strings.Split(g.pattern, "/")
	for i, name := range strings.Split(dir, "/") {
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
}
