package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/regie-run/regie/internal/gitruns"
)

// gitRuns and gitTraps are what of a repository nobody may write, and what of it nobody may make.
var gitRuns, gitTraps = gitruns.Runs(), gitruns.Traps()

// gitStores are directories of a repository in which nobody works.
var gitStores = []string{"objects", "refs", "reftable", "logs", "hooks", "info", "branches", "modules", "worktrees"}

// parts are those by which git takes a directory for a repository, whatever it is called.
type parts struct{ head, objects, refs, common bool }

func (p *parts) see(name string) {
	switch name {
	case "HEAD":
		p.head = true
	case "objects":
		p.objects = true
	case "refs":
		p.refs = true
	case "commondir":
		p.common = true
	}
}

// repository reports whether they are enough.
func (p *parts) repository() bool { return p.head && (p.common || p.objects && p.refs) }

// foundBare notes a directory that is a repository by what lies in it, and leaves of the directories below it those in which work trees may lie.
func (n *nests) foundBare(dir string, below []string) []string {
	n.bare = append(n.bare, dir)
	return slices.DeleteFunc(below, func(name string) bool { return slices.Contains(gitStores, name) })
}

// repositories are the directories of repositories below the top, those at the top under another name than .git, and those that a .git leads to.
func (n *nests) repositories() (out []string) {
	for _, name := range n.marks {
		if filepath.Base(name) == ".git" {
			out = append(out, name)
		}
	}
	return append(append(out, n.aims...), n.bare...)
}

// sign is what makes git or Regie run or believe something: where it lies, and what it was when a command began. Of a directory that is a repository by what
// lies in it that is the directory, because git puts a new HEAD in the place of an old one.
type sign struct {
	name string
	is   fs.FileInfo
	aim  string // of a link: a new one may have the number of one that was removed
}

// signs are those that are there.
func (n *nests) signs() (out []sign) {
	add := func(name, identity string) {
		if info, err := os.Lstat(filepath.Join(n.root, identity)); err == nil {
			aim, _ := os.Readlink(filepath.Join(n.root, identity)) // none where it is no link
			out = append(out, sign{name, info, aim})
		}
	}
	for _, name := range n.marks {
		add(name, name)
	}
	for _, dir := range n.bare {
		add(filepath.Join(dir, "HEAD"), dir)
	}
	for _, dir := range n.repositories() {
		for _, trap := range gitTraps {
			add(filepath.Join(dir, trap), filepath.Join(dir, trap))
		}
	}
	if slices.Contains(n.bare, ".") {
		for _, name := range gitRuns {
			add(name, name)
		}
	}
	for _, name := range n.named {
		add(name, name)
	}
	return out
}

// trees are the directories that hold repositories, or are one.
func (n *nests) trees() (out []string) {
	for _, name := range n.marks {
		out = append(out, filepath.Join(n.root, filepath.Dir(name)))
	}
	for _, name := range slices.Concat(n.aims, n.bare) {
		out = append(out, filepath.Join(n.root, name))
	}
	return out
}

// namedThere are the places that are there of those that configuration names, by their absolute paths. A link is left as it is: what it leads to is another of
// them, and one that was put in its place is taken away afterwards.
func (n *nests) namedThere() (out []string) {
	for _, name := range n.named {
		path := filepath.Join(n.root, name)
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			out = append(out, path)
		}
	}
	return out
}

// appeared are the signs that were not there before a command. What only has another name now was.
func (n *nests) appeared(before []sign) (out []string) {
	for _, now := range n.signs() {
		if !slices.ContainsFunc(before, func(old sign) bool { return os.SameFile(old.is, now.is) && old.aim == now.aim }) && !slices.Contains(out, now.name) {
			out = append(out, now.name)
		}
	}
	return out
}

// guardBare are bubblewrap's arguments for repositories that are not called .git. Of the workspace itself only what makes git run something is kept: a
// person works in it, and what is not there and must not be made is taken away afterwards.
func (n *nests) guardBare() (args []string) {
	for _, dir := range n.bare {
		if dir != "." {
			args = append(args, guardRepository(filepath.Join(n.root, dir))...)
			continue
		}
		for _, path := range n.topParts() {
			args = append(args, "--ro-bind", path, path)
		}
	}
	return args
}

// topParts are the parts of the workspace, where that is a repository itself, that nobody may write.
func (n *nests) topParts() (out []string) {
	for _, name := range gitRuns {
		path := filepath.Join(n.root, name)
		if _, err := os.Lstat(path); err == nil {
			out = append(out, path)
		}
	}
	return out
}
