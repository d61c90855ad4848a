package workspace

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

// Bounds of a path (spec 12.5).
const (
	maxPath  = 4096 // bytes
	maxName  = 255  // bytes of one element
	maxDepth = 256  // elements
)

// Clean turns a path that a model wrote into a relative, slash-separated one without ".."; "." is
// the root (spec 8.2, 12.5). It looks only at names, never at files, so "a/../b" becomes "b" even
// where a is a link. It drops a slash at the end. It returns CodePathInvalid for an empty path, NUL
// and other control characters, bad UTF-8, a backslash and exceeded limits. It returns
// CodePathOutside for a path that leaves the root.
func Clean(name string) (string, error) {
	if err := checkSpelling(name); err != nil {
		return "", err
	}
	cleaned := path.Clean(name)
	if cleaned == "~" || strings.HasPrefix(cleaned, "~/") {
		return "", regie.Errorf(regie.CodePathOutside, "%s means a home directory, which is outside the workspace",
			name)
	}
	return checkShape(cleaned, name)
}

// checkShape refuses what leads out, and too much of anything.
func checkShape(cleaned, name string) (string, error) {
	parts := strings.Split(cleaned, "/")
	switch {
	case path.IsAbs(cleaned):
		return "", regie.Errorf(regie.CodePathOutside, "%s is outside the workspace: paths are relative to it", name)
	case parts[0] == "..":
		return "", regie.Errorf(regie.CodePathOutside, "%s leads out of the workspace", name)
	case len(parts) > maxDepth:
		return "", regie.Errorf(regie.CodePathInvalid, "the path has %d parts, at most %d are allowed", len(parts),
			maxDepth)
	}
	for _, part := range parts {
		if len(part) > maxName {
			return "", regie.Errorf(regie.CodePathInvalid, "a name in the path has %d bytes, at most %d are allowed",
				len(part), maxName)
		}
	}
	return cleaned, nil
}

// checkSpelling refuses what has no business in any path.
func checkSpelling(name string) error {
	switch {
	case name == "":
		return regie.Errorf(regie.CodePathInvalid, "the path is empty: name a file, or . for the workspace")
	case len(name) > maxPath:
		return regie.Errorf(regie.CodePathInvalid, "the path has %d bytes, at most %d are allowed", len(name), maxPath)
	case strings.IndexByte(name, 0) >= 0:
		return regie.Errorf(regie.CodePathInvalid, "the path contains a NUL character")
	case !utf8.ValidString(name):
		return regie.Errorf(regie.CodePathInvalid, "the path is not valid UTF-8")
	case strings.IndexByte(name, '\\') >= 0:
		return regie.Errorf(regie.CodePathInvalid, "the path %q contains a backslash: separate directories with /", name)
	case strings.IndexFunc(name, isControl) >= 0:
		return regie.Errorf(regie.CodePathInvalid, "the path %q contains a control character", name)
	}
	return nil
}

// isControl reports whether a character could make a path look like something else: controls, and
// marks that turn text around.
func isControl(r rune) bool {
	return r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Clean is the function Clean that also accepts an absolute path where it lies inside the root by
// its letters.
func (r *Root) Clean(name string) (string, error) {
	if !path.IsAbs(name) {
		return Clean(name)
	}
	if err := checkSpelling(name); err != nil {
		return "", err
	}
	cleaned := path.Clean(name)
	if cleaned == r.dir {
		return ".", nil
	}
	inside, ok := strings.CutPrefix(cleaned, strings.TrimSuffix(r.dir, "/")+"/")
	if !ok {
		return "", regie.Errorf(regie.CodePathOutside, "%s is outside the workspace: paths are relative to it", name)
	}
	return checkShape(inside, name)
}
