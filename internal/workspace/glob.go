package workspace

import (
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// unlikeGit matches the syntax that ignore files and package doublestar read in different ways:
// braces, which git takes literally, and several stars next to letters. It matches escapes too, so
// that they stay.
var unlikeGit = regexp.MustCompile(`\\.|\*+|[{}]`)

// translateGlob turns a pattern of an ignore file into one of package doublestar, which matches in
// polynomial time (spec 12.5). A ** at the end matches at least one name. A pattern that does not
// parse, or has an empty part between two slashes, becomes empty and matches no name.
func translateGlob(pattern string) string {
	parts := strings.Split(pattern, "/")
	for i, part := range parts {
		if len(part) > 1 && strings.Trim(part, "*") == "" {
			parts[i] = "**"
			continue
		}
		parts[i] = unlikeGit.ReplaceAllStringFunc(part, func(found string) string {
			switch found[0] {
			case '*':
				return "*"
			case '{', '}':
				return `\` + found
			default:
				return found
			}
		})
	}
	if last := len(parts) - 1; last > 0 && parts[last] == "**" {
		parts = append(parts, "*")
	}
	out := strings.Join(parts, "/")
	if slices.Contains(parts, "") || !doublestar.ValidatePattern(out) {
		return ""
	}
	return out
}
