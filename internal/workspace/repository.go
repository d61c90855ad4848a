package workspace

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/regie-run/regie/internal/gitconfig"
)

// gitParts are the names that git gives to what lies in a repository, as folded gives them.
var gitParts = gitconfig.Parts()

// isRepository reports whether git takes a directory for a repository, by the names in it. Git
// would run that directory's hooks and configuration. It does not check the content of the parts:
// they can be written later.
func isRepository(has func(name string) bool) bool {
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// PartOf reports whether name is the repository directory, one of its parts, or inside a part. A
// work tree next to the parts does not count. Both are clean paths.
func PartOf(repository, name string) bool {
	below, inside := name, true
	if repository != "." {
		below, inside = strings.CutPrefix(name, repository+"/")
	}
	first, _, _ := strings.Cut(below, "/")
	return inside && slices.Contains(gitParts, foldName(first)) || name == repository
}

// inRepository reports whether a name in a link-free directory is part of a repository, or would
// complete one. The other parts may have been written before as ordinary files.
func inRepository(root *os.Root, dir []string, name string) bool {
	name = foldName(name)
	return slices.Contains(gitParts, name) && isRepository(func(part string) bool {
		if foldName(part) == name {
			return true
		}
		_, err := root.Lstat(path.Join(path.Join(dir...), part))
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

// protectionOf returns protectedName for a directory entry; full is its path without links. Regie's
// own files are secret under any name.
func (o ownPaths) protectionOf(full, name string) Protection {
	if o.contain(full) {
		return Secret
	}
	return max(protectedName(name, true), protectedPlace(full))
}

// protectionOf returns that of ownPaths for an entry of a directory that is walked.
func (l *level) protectionOf(name string) Protection {
	found := l.root.own.protectionOf(l.entryPath(name), name)
	if l.repository && slices.Contains(gitParts, foldName(name)) {
		found = max(found, Internal)
	}
	return found
}

// gitRuns reports whether git runs or reads a link-free path of dir, or one above it, because its
// configuration names it. It runs before a write and reads the configuration of the repositories on
// the way each time, because a person may have changed it.
func gitRuns(dir, name string) bool {
	root := Resolved(filepath.FromSlash(dir))
	var trees []string
	for above := path.Dir(name); above != "." && above != "/"; above = path.Dir(above) {
		trees = append(trees, filepath.Join(root, filepath.FromSlash(above)))
	}
	name = foldedPath(name)
	return slices.ContainsFunc(gitconfig.Places(root, trees...), func(place string) bool {
		place = foldedPath(place)
		return name == place || strings.HasPrefix(name, place+"/")
	})
}
