package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/regie-run/regie/internal/gitconfig"
)

// Bounds of the search for repositories in a workspace: commands cannot write beyond them.
const (
	maxEntries = 1_000_000
	maxDeep    = 100
	maxClosed  = 200 // places that stay closed for it, before whole directories of the top do
)

// nests are the places of a workspace that make git, or Regie, run or believe something. Paths are
// relative to the workspace.
type nests struct {
	marks  []string // entries called .git or .regie
	gits   []string // directories that git takes for repositories; "." is the workspace itself
	closed []string // directories that were not looked through to their end: read-only
	named  []string // places that configuration names, whether they are there or not

	root    string
	entries int
	most    int
}

// mostEntries is maxEntries; the tests have less.
var mostEntries = maxEntries

// findNests looks for them.
func findNests(root string) *nests {
	n := &nests{root: root, most: mostEntries}
	n.lookThrough(".", 0)
	if len(n.closed) > maxClosed {
		for i, name := range n.closed {
			n.closed[i], _, _ = strings.Cut(name, "/")
		}
	}
	slices.Sort(n.closed)
	n.closed = slices.Compact(n.closed)
	inClosed := func(name string) bool {
		return slices.ContainsFunc(n.closed, func(dir string) bool { return dir == "." || isWithin(name, dir) })
	}
	n.marks, n.gits = slices.DeleteFunc(n.marks, inClosed), slices.DeleteFunc(n.gits, inClosed)
	slices.Sort(n.gits)
	n.gits = slices.Compact(n.gits)
	var trees []string
	for _, name := range n.marks {
		trees = append(trees, filepath.Join(root, filepath.Dir(name)))
	}
	for _, name := range n.gits {
		trees = append(trees, filepath.Join(root, name))
	}
	n.named = gitconfig.Places(root, trees...)
	return n
}

// parts are the entries that make git take a directory for a repository, under any name.
type parts map[string]bool

func (p parts) seeName(name string) {
	if name == "HEAD" || name == "objects" || name == "refs" || name == "commondir" {
		p[name] = true
	}
}

// isRepository reports whether they are enough.
func (p parts) isRepository() bool { return p["HEAD"] && (p["commondir"] || p["objects"] && p["refs"]) }

// lookThrough searches a directory, including git's own, which may hold a submodule's store.
func (n *nests) lookThrough(dir string, depth int) {
	if n.entries > n.most || depth > maxDeep {
		n.closed = append(n.closed, dir)
		return
	}
	full := filepath.Join(n.root, dir)
	f, err := os.Open(full)
	if err != nil {
		if info, err := os.Lstat(full); err == nil && info.IsDir() && owned(info) { // a command could open it to itself
			n.closed = append(n.closed, dir)
		}
		return
	}
	var below []string
	has := parts{}
	for {
		entries, err := f.ReadDir(1024)
		for _, entry := range entries {
			name := entry.Name()
			has.seeName(name)
			if name == ".git" || name == ".regie" {
				n.marks = append(n.marks, filepath.Join(dir, name))
			}
			if name == ".git" {
				n.followGit(filepath.Join(full, name))
			}
			if entry.IsDir() && name != ".regie" {
				below = append(below, name)
			}
		}
		n.entries += len(entries)
		if err != nil && err != io.EOF || n.entries > n.most && err == nil {
			n.closed = append(n.closed, dir)
			_ = f.Close() // it was only read
			return
		}
		if err != nil {
			break
		}
	}
	_ = f.Close() // it was only read
	if has.isRepository() {
		n.gits = append(n.gits, dir)
	}
	slices.Sort(below)
	for _, name := range below {
		n.lookThrough(filepath.Join(dir, name), depth+1)
	}
}

// followGit notes the directories of the workspace that a .git is or leads to.
func (n *nests) followGit(git string) {
	for _, dir := range gitconfig.Directories(git) {
		if relative, err := filepath.Rel(n.root, dir); err == nil && filepath.IsLocal(relative) {
			n.gits = append(n.gits, relative)
		}
	}
}

// isProtected reports whether a part of a git directory is kept as it is. In a directory called
// .git that is all but what ordinary work writes; in one of another name a person may have files of
// their own.
func isProtected(git, part string) bool {
	if slices.Contains(strings.Split(git, "/"), ".git") {
		return !gitconfig.Written(part)
	}
	return slices.Contains(gitconfig.Runs(), part)
}
