package workspace

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/regie-run/regie/internal/gitruns"
)

// gitParts are the names that git gives to what lies in a repository, as folded gives them.
var gitParts = gitruns.Parts()

// isRepository reports whether git takes a directory for a repository, whatever it is called, by
// what lies in it: it would run what its hooks and its configuration say for everybody who calls
// git there, or below. What the parts hold is not looked at: it can be written later.
func isRepository(has func(name string) bool) bool {
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// PartOf reports whether a place is a repository, given by the directory in which its parts lie, or
// one of its parts, or lies in one: not a work tree beside them. Both are clean paths.
func PartOf(repository, name string) bool {
	below, inside := name, true
	if repository != "." {
		below, inside = strings.CutPrefix(name, repository+"/")
	}
	first, _, _ := strings.Cut(below, "/")
	return inside && slices.Contains(gitParts, foldName(first)) || name == repository
}

// inRepository reports whether a name in a directory, given without links, is git's own, or would
// become so by being made: a file could complete a repository of which the other parts were written
// before, as files like any other.
func (r *Root) inRepository(dir []string, name string) bool {
	name = foldName(name)
	return slices.Contains(gitParts, name) && isRepository(func(part string) bool {
		if foldName(part) == name {
			return true
		}
		_, err := r.root.Lstat(path.Join(path.Join(dir...), part))
		return err == nil
	})
}

// holdsRepository reports whether the entries of a directory make it a repository.
func holdsRepository(entries []fs.DirEntry) bool {
	if !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "HEAD" }) { // as in most directories
		return false
	}
	return isRepository(func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
	})
}

// protectionOf returns protectedName for an entry of a directory, full with its path without links:
// Regie's own is secret, whatever it is called.
func (r *Root) protectionOf(full, name string) Protection {
	if r.isOwn(full) {
		return Secret
	}
	return max(protectedName(name, true), protectedPlace(full))
}

// protectionOf returns that of Root for an entry of a directory that is walked.
func (l *level) protectionOf(name string) Protection {
	found := l.root.protectionOf(l.entryPath(name), name)
	if l.repository && slices.Contains(gitParts, foldName(name)) {
		found = max(found, Internal)
	}
	return found
}

// gitRuns reports whether a path without links is one that git runs or believes because
// configuration names it, or lies below one. It is asked when something is written, and reads the
// configuration of the repositories on the way each time: a person may have changed it.
func (r *Root) gitRuns(name string) bool {
	root := Resolved(filepath.FromSlash(r.dir))
	var trees []string
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		trees = append(trees, filepath.Join(root, filepath.FromSlash(dir)))
	}
	name = foldedPath(name)
	return slices.ContainsFunc(gitruns.Places(root, trees...), func(place string) bool {
		place = foldedPath(place)
		return name == place || strings.HasPrefix(name, place+"/")
	})
}
