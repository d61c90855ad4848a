package snapshot

import (
	"path"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// besides notes what a command did that is no change of a file which an undo covers: what became of
// the places that are left out, and of directories in which there is nothing to put back. It comes
// last, when it is known which files are.
func (c *compared) besides(before, now *tree, others []regie.FileChange) {
	if before == now {
		return
	}
	c.aside(before, now)
	c.directories(before, now, others)
}

// aside compares the places that are left out. Where they are too many to be known one by one
// nothing is said of those that the other list may have lost.
func (c *compared) aside(before, now *tree) {
	was := make(map[string]*workspace.Aside, len(before.aside))
	for i := range before.aside {
		was[before.aside[i].Path] = &before.aside[i]
	}
	for i := range now.aside {
		n := &now.aside[i]
		b := was[n.Path]
		delete(was, n.Path)
		switch {
		case b == nil && (before.more || before.hidden(n.Path)):
		case b == nil || *b != *n:
			c.uncovered(n.Path)
		}
	}
	if now.more {
		return
	}
	for i := range before.aside { // in their order
		if b := &before.aside[i]; was[b.Path] == b && !now.hidden(b.Path) {
			c.uncovered(b.Path)
		}
	}
}

// directories notes the directories that came or went where no file that is put back, or taken away
// again, brings that about: the topmost of each.
func (c *compared) directories(before, now *tree, others []regie.FileChange) {
	used := map[string]bool{}
	for i := range c.Files {
		use(used, c.Files[i].Path)
	}
	for i := range others { // what others did is not the command's
		use(used, others[i].Path)
	}
	for _, name := range c.Names { // which say it already
		use(used, name)
	}
	note := func(in, not *tree) {
		noted := map[string]bool{} // or in one of those
		for i := range in.nodes {
			n := &in.nodes[i]
			if there := not.byPath()[n.Path]; !n.Mode.IsDir() || there != nil && there.Mode.IsDir() || used[n.Path] ||
				not.hidden(n.Path) || not.inRepository(n.Path) {
				continue
			}
			if noted[n.Path] = true; !noted[path.Dir(n.Path)] {
				c.uncovered(n.Path + "/")
			}
		}
	}
	note(before, now)
	note(now, before)
}

// use marks the directories in which a path lies.
func use(used map[string]bool, name string) {
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		if used[name[:i]] {
			return
		}
		used[name[:i]] = true
	}
}
