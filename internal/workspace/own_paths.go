package workspace

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// own are the directories and files that are Regie's: its data and its settings, with keys in them.
var own struct {
	sync.Mutex
	paths []string // absolute, with and without links, as foldedPath gives them
}

// Keep reserves absolute paths and everything below them for Regie, in every Root that this process
// opens from now on above them. Such files are not listed, searched, indexed or surveyed. No
// approval allows a write, and a read needs a person's approval. The reservation lasts as long as
// the process. A Root at one of the paths, or below, is not affected. Keep ignores empty paths.
func Keep(paths ...string) {
	own.Lock()
	defer own.Unlock()
	for _, name := range paths {
		if !filepath.IsAbs(name) {
			continue
		}
		for _, name := range []string{filepath.Clean(name), Resolved(name)} {
			if name = foldedPath(filepath.ToSlash(name)); !slices.Contains(own.paths, name) {
				own.paths = append(own.paths, name)
			}
		}
	}
}

// Resolved is an absolute path without links, as far as it is there.
func Resolved(name string) string {
	missing := ""
	for at := filepath.Clean(name); ; at = filepath.Dir(at) {
		if found, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(found, missing)
		}
		if at == filepath.Dir(at) {
			return filepath.Clean(name)
		}
		missing = filepath.Join(filepath.Base(at), missing)
	}
}

// ownPaths are Regie's own paths below a directory, as foldedPath gives them.
type ownPaths []string

// ownBelow returns Regie's own paths below a directory.
func ownBelow(dir string) (out ownPaths) {
	own.Lock()
	defer own.Unlock()
	for _, dir := range []string{filepath.FromSlash(dir), Resolved(filepath.FromSlash(dir))} {
		top := strings.TrimSuffix(foldedPath(filepath.ToSlash(dir)), "/") + "/"
		for _, name := range own.paths {
			if below, is := strings.CutPrefix(name, top); is && !slices.Contains(out, below) {
				out = append(out, below)
			}
		}
	}
	return out
}

// foldedPath folds each name of a clean path.
func foldedPath(name string) string {
	parts := strings.Split(path.Clean(name), "/")
	for i := range parts {
		parts[i] = foldName(parts[i])
	}
	return strings.Join(parts, "/")
}

// contain reports whether a path without links is Regie's own.
func (o ownPaths) contain(name string) bool {
	if len(o) == 0 { // as in most workspaces
		return false
	}
	name = foldedPath(name)
	return slices.ContainsFunc(o, func(at string) bool { return name == at || strings.HasPrefix(name, at+"/") })
}
