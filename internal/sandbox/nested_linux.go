package sandbox

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/regie-run/regie/internal/gitruns"
)

// Bounds of looking for repositories in a workspace: what lies beyond them is not written by commands.
const (
	maxEntries = 1_000_000
	maxDeep    = 100
	maxClosed  = 200 // places that stay closed for it, before whole directories of the top do
)

// nests are the places below the top of a workspace that make git, or Regie, run or believe something. git looks into repositories that lie in another
// one by itself, and a person who works in one of them runs what it says. Paths are relative to the workspace.
type nests struct {
	marks  []string // what is called .git or .regie
	aims   []string // directories of the workspace that a .git leads to, under whatever name
	bare   []string // directories that are a repository by what lies in them; "." is the workspace itself
	closed []string // what was not looked through to its end: nothing may be written there
	named  []string // what git runs or believes because its configuration names it, whether it is there or not

	root    string
	entries int
	most    int
}

// mostEntries is maxEntries; the tests have less.
var mostEntries = maxEntries

// nested looks for them.
func nested(root string) *nests {
	n := &nests{root: root, most: mostEntries}
	n.follow(filepath.Join(root, ".git"))
	n.look(".", 0)
	if len(n.closed) > maxClosed {
		for i, name := range n.closed {
			n.closed[i], _, _ = strings.Cut(name, "/")
		}
	}
	slices.Sort(n.closed)
	n.closed = slices.Compact(n.closed)
	inClosed := func(name string) bool {
		return slices.ContainsFunc(n.closed, func(dir string) bool { return dir == "." || within(name, dir) })
	}
	n.marks, n.aims, n.bare = slices.DeleteFunc(n.marks, inClosed), slices.DeleteFunc(n.aims, inClosed), slices.DeleteFunc(n.bare, inClosed)
	n.aims = slices.DeleteFunc(n.aims, func(dir string) bool { return slices.Contains(n.bare, dir) })
	n.named = gitruns.Places(root, n.trees()...)
	return n
}

// look looks through a directory.
func (n *nests) look(dir string, depth int) {
	if n.entries > n.most || depth > maxDeep {
		n.closed = append(n.closed, dir)
		return
	}
	full := filepath.Join(n.root, dir)
	f, err := os.OpenFile(full, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if info, err := os.Lstat(full); err == nil && info.IsDir() && owned(info) { // a command could open it to itself; what is others' it cannot
			n.closed = append(n.closed, dir)
		}
		return
	}
	var below []string
	var has parts
	for {
		entries, err := f.ReadDir(1024)
		for _, entry := range entries {
			has.see(entry.Name())
			switch name := entry.Name(); {
			case name != ".git" && name != ".regie":
				if entry.IsDir() {
					below = append(below, name)
				}
			case dir != ".":
				n.marks = append(n.marks, filepath.Join(dir, name))
				n.follow(filepath.Join(full, name))
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
	if has.repository() {
		below = n.foundBare(dir, below)
	}
	slices.Sort(below)
	for _, name := range below {
		n.look(filepath.Join(dir, name), depth+1)
	}
}

func owned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// follow notes the directories of the workspace that a .git leads to: a link does, and a file that names a directory.
func (n *nests) follow(git string) {
	for _, dir := range gitruns.Directories(git) {
		relative, err := filepath.Rel(n.root, dir)
		if err == nil && filepath.IsLocal(relative) && relative != "." && dir != git && !slices.Contains(n.aims, relative) && !slices.Contains(strings.Split(relative, "/"), ".git") {
			n.aims = append(n.aims, relative)
		}
	}
}

func absolute(name, from string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(from, name)
}

// linked are the directories outside a workspace that git needs in it, where it is a linked work tree: what git has of it in the main repository, and that
// repository. It must name this workspace as its own, or a file in the workspace could have any directory shown to commands.
func linked(root string) []string {
	git := filepath.Join(root, ".git")
	dirs := gitruns.Directories(git)
	info, err := os.Lstat(git)
	if len(dirs) != 2 || err != nil || !info.Mode().IsRegular() || filepath.Dir(dirs[0]) != filepath.Join(dirs[1], "worktrees") {
		return nil
	}
	back, err := os.Stat(absolute(cmp.Or(gitruns.Line(filepath.Join(dirs[0], "gitdir")), "."), dirs[0]))
	if err != nil || !os.SameFile(back, info) {
		return nil
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dirs[1], name)); err != nil {
			return nil
		}
	}
	return dirs
}

// guarded are all places that may not be written as others may.
func (n *nests) guarded() (out []string) {
	for _, name := range slices.Concat(n.marks, n.aims, n.closed, n.bare) {
		if name == "." {
			out = append(out, n.topParts()...)
			continue
		}
		out = append(out, filepath.Join(n.root, name))
	}
	return append(out, n.namedThere()...)
}

// guardArgs are bubblewrap's arguments for what lies below the top. A link is left as it is: nothing can be put in its place, and what it leads to is
// guarded by itself.
func (n *nests) guardArgs() (args []string) {
	for _, name := range n.closed {
		path := filepath.Join(n.root, name)
		args = append(args, "--ro-bind", path, path)
	}
	for _, name := range slices.Concat(n.marks, n.aims) {
		path := filepath.Join(n.root, name)
		info, err := os.Lstat(path)
		switch {
		case err != nil || info.Mode()&fs.ModeSymlink != 0:
		case filepath.Base(path) == ".regie":
			args = append(args, "--ro-bind", path, path)
		default:
			args = append(args, guardRepository(path)...)
		}
	}
	args = append(args, n.guardBare()...)
	for _, path := range n.namedThere() {
		args = append(args, "--ro-bind", path, path)
	}
	return args
}
