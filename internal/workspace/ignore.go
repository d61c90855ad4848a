package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/regie-run/regie/internal/gitruns"
)

// Bounds of ignore files (spec 12.5): what is beyond them is not read.
const (
	maxIgnoreFile = 1 << 20
	maxIgnoreRule = 4096    // bytes of one line
	maxIgnoreAll  = 4 << 20 // of the files that hold in one directory: rules take many times their size in memory
)

// ignoreFiles are the names of the files that say what is ignored, the ones that win last: git's,
// the one that search tools share, our own.
var ignoreFiles = [...]string{".gitignore", ".ignore", ".regieignore"}

// ruleKinds counts these and, as the weakest, git's exclude file.
const ruleKinds = 1 + len(ignoreFiles)

// ignoreRule is one line of an ignore file.
type ignoreRule struct {
	glob    glob
	negated bool
	dirOnly bool
	name    bool // it speaks of names in any directory, not of paths
}

// parseIgnore reads an ignore file by git's rules (gitignore(5)). It cannot fail: a line that makes
// no sense matches nothing.
func parseIgnore(data []byte) []ignoreRule {
	var rules []ignoreRule
	text := strings.TrimPrefix(string(data), "\uFEFF")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if i := strings.IndexByte(line, 0); i >= 0 {
			line = line[:i]
		}
		if line == "" || line[0] == '#' || len(line) > maxIgnoreRule {
			continue
		}
		line = trimSpaces(line)
		var r ignoreRule
		if line, r.negated = strings.CutPrefix(line, "!"); line == "" {
			continue
		}
		line, r.dirOnly = strings.CutSuffix(line, "/")
		r.name = !strings.Contains(line, "/")
		if !r.name {
			line = strings.TrimPrefix(line, "/")
		}
		if line == "" {
			continue
		}
		r.glob = compileGlob(line)
		rules = append(rules, r)
	}
	return rules
}

// trimSpaces drops the spaces at the end of a line, but for one behind a backslash.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			if i++; i == len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

// matches compares a rule with the names of a path relative to the rule's directory.
func (r *ignoreRule) matches(names []string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	if r.name { // without slashes ** is nothing but *
		return r.glob[0].any || r.glob[0].matches(names[len(names)-1])
	}
	return r.glob.matches(names)
}

// Ignores says which entries of a directory the ignore files of the workspace name: those of the
// directory itself and of all above it, up to the root, and git's exclude file. Of two files of one
// kind the deeper one wins, of two lines in one file the later one; what .regieignore says wins
// over .ignore, and that over git's files. A directory that is ignored is not looked into, so
// nothing in it can be taken back. Files above the workspace and a person's own, outside of it, are
// not read. A nil Ignores ignores nothing.
type Ignores struct {
	above *Ignores
	names []string                // of the directory, below the root, in Latin-1
	rules [ruleKinds][]ignoreRule // the exclude file's at the root alone
	size  int                     // bytes of the files that hold here
}

// Ignored reports whether an entry of the directory is ignored.
func (g *Ignores) Ignored(entry string, dir bool) bool {
	if g == nil {
		return false
	}
	full := append(slices.Clip(g.names), latin1(entry))
	for kind := ruleKinds - 1; kind >= 0; kind-- {
		for at := g; at != nil; at = at.above {
			if said, ignored := verdict(at.rules[kind], full[len(at.names):], dir); said {
				return ignored
			}
		}
	}
	return false
}

// verdict is what the last rule that matches says.
func verdict(rules []ignoreRule, names []string, dir bool) (said, ignored bool) {
	for i := len(rules) - 1; i >= 0; i-- {
		if rules[i].matches(names, dir) {
			return true, !rules[i].negated
		}
	}
	return false, false
}

// below is what holds in a directory whose ignore files read gives; a name without a file gives
// nothing.
func (g *Ignores) below(name string, read func(name string) []byte) *Ignores {
	next := &Ignores{above: g}
	if g != nil {
		next.names, next.size = append(slices.Clip(g.names), latin1(name)), g.size
	}
	for i, file := range ignoreFiles {
		if data := read(file); next.size+len(data) <= maxIgnoreAll {
			next.rules[1+i] = parseIgnore(data)
			next.size += len(data)
		}
	}
	return next
}

// belowAt is below with the ignore files of an open directory.
func (g *Ignores) belowAt(name string, at *os.Root) *Ignores {
	return g.below(name, func(file string) []byte { return readIgnore(at, file) })
}

// Ignores reads what is ignored in an open directory. Where the directory itself, or one above it,
// is ignored, whoever opened it wanted to see it: then only its own files and those below it count.
func (r *Root) Ignores(dir *Dir) *Ignores {
	g, ignored := r.ignoresAt(dir.Path)
	if ignored {
		return (*Ignores)(nil).belowAt("", dir.at)
	}
	return g
}

// ignoresAt is what holds in a directory, by its path without links, and whether it is ignored
// itself.
func (r *Root) ignoresAt(dir string) (g *Ignores, ignored bool) {
	at, _, err := r.parent("./")
	if err != nil {
		return nil, false
	}
	defer func() { _ = at.Close() }() // nothing was written through it
	g = (*Ignores)(nil).belowAt("", at)
	g.rules[0] = parseIgnore(excluded(at))
	for _, name := range elements(dir) {
		if g.Ignored(name, true) {
			return g, true
		}
		next, err := step(at, name)
		if err != nil {
			return g, false // it does not exist: nothing in it says anything
		}
		_ = at.Close()
		at = next
		g = g.belowAt(name, at)
	}
	return g, false
}

// excluded is what is ignored by no file of the workspace's tree: in a repository what the person
// has git ignore everywhere, and then git's exclude file.
func excluded(at *os.Root) []byte {
	if _, err := at.Lstat(".git"); err != nil {
		return nil
	}
	global, own := gitruns.Ignored(), readIgnore(at, ".git/info/exclude")
	if len(global) == 0 {
		return own
	}
	return slices.Concat(global, []byte("\n"), own)
}

// Enter is what is ignored in a directory of this one.
func (g *Ignores) Enter(dir *Dir) *Ignores {
	return g.belowAt(path.Base(dir.Path), dir.at)
}

// Ignored reports whether the ignore files name a file, by its path without links, or a directory
// that it lies in. It need not exist.
func (r *Root) Ignored(resolved string) bool {
	g, ignored := r.ignoresAt(path.Dir(resolved))
	return ignored || g.Ignored(path.Base(resolved), false)
}

// readIgnore reads an ignore file of an open directory; nothing where there is none, or where a
// link or anything else has its name.
func readIgnore(at *os.Root, name string) []byte {
	seen, err := at.Lstat(name)
	if err != nil || !seen.Mode().IsRegular() {
		return nil
	}
	f, _, err := openSeen(at, name, seen)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	return readRules(f)
}

func readRules(in io.Reader) []byte {
	data, err := io.ReadAll(io.LimitReader(in, maxIgnoreFile))
	if err != nil && !errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return data
}
