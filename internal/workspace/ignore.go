package workspace

import (
	"io"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of ignore files (spec 12.5): content beyond them is not read.
const (
	maxIgnoreFile = 1 << 20
	maxIgnoreRule = 4096    // bytes of one line
	maxIgnoreAll  = 4 << 20 // of the files that hold in one directory: rules take many times their size in memory
)

// ignoreFiles names the ignore files in rising priority: git's, the one that search tools share,
// Regie's.
var ignoreFiles = [...]string{".gitignore", ".ignore", ".regieignore"}

// IsIgnoreFile reports whether a path is that of an ignore file that agents can write.
func IsIgnoreFile(name string) bool { return slices.Contains(ignoreFiles[:], path.Base(name)) }

// Rules are the ignore files of one directory: those of ignoreFiles, and at the root git's exclude
// file.
type Rules [len(ignoreFiles) + 1][]byte

// excludeRules is the place of git's exclude file in Rules, and the weakest.
const excludeRules = len(ignoreFiles)

var excludeFile = []string{".git", "info", "exclude"}

// ignoreRule is one line of an ignore file.
type ignoreRule struct {
	glob    string
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
		r.glob = translateGlob(line)
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

// matchesPath compares a rule with a path relative to the rule's directory.
func (r *ignoreRule) matchesPath(name string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	if r.name {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(r.glob, name)
}

// ignores says which entries of a directory the ignore files of the workspace name: those of the
// directory itself and of all above it, up to the root, and git's exclude file. Of two files of one
// kind the deeper one wins, of two lines in one file the later one; what .regieignore says wins
// over .ignore, and that over git's files. A directory that is ignored is not looked into, so
// nothing in it can be taken back. Files above the workspace and a person's own, outside of it, are
// not read. A nil ignores names nothing.
type ignores struct {
	above *ignores
	dir   string // the directory, below the root; empty for the root
	rules [len(Rules{})][]ignoreRule
	size  int // bytes of the files that hold here
}

// Ignored reports whether an entry of the directory is ignored.
func (g *ignores) Ignored(entry string, dir bool) bool {
	if g == nil {
		return false
	}
	full := path.Join(g.dir, entry)
	for _, kind := range [...]int{2, 1, 0, excludeRules} {
		for at := g; at != nil; at = at.above {
			relative := strings.TrimPrefix(full[len(at.dir):], "/")
			if said, ignored := lastVerdict(at.rules[kind], relative, dir); said {
				return ignored
			}
		}
	}
	return false
}

// lastVerdict returns the verdict of the last rule that matches.
func lastVerdict(rules []ignoreRule, name string, dir bool) (said, ignored bool) {
	for i := len(rules) - 1; i >= 0; i-- {
		if rules[i].matchesPath(name, dir) {
			return true, !rules[i].negated
		}
	}
	return false, false
}

// inDirectory adds the ignore files of a subdirectory to the rules above it.
func (g *ignores) inDirectory(name string, rules *Rules) *ignores {
	next := &ignores{above: g}
	if g != nil {
		next.dir, next.size = path.Join(g.dir, name), g.size
	}
	for kind, data := range rules {
		if next.size+len(data) <= maxIgnoreAll {
			next.rules[kind] = parseIgnore(data)
			next.size += len(data)
		}
	}
	return next
}

// ignoresAt returns what holds in a directory, by its path without links, and whether it is ignored
// itself.
func (r *Root) ignoresAt(dir string) (g *ignores, ignored bool) {
	at, err := newHandle(r.root)
	if err != nil {
		return nil, false
	}
	defer func() { at.close() }()
	rules := at.ignoreRules()
	rules[excludeRules] = at.readIgnore(excludeFile...)
	g = (*ignores)(nil).inDirectory("", rules)
	for _, name := range splitPath(dir) {
		if g.Ignored(name, true) {
			return g, true
		}
		next, err := at.enterDir(name)
		if err != nil {
			return g, false // it does not exist: nothing in it says anything
		}
		at.close()
		at = next
		g = g.inDirectory(name, at.ignoreRules())
	}
	return g, false
}

// Ignored reports whether the ignore files name a file, by its path without links, or a directory
// that it lies in. It need not exist.
func (r *Root) Ignored(resolved string) bool {
	g, ignored := r.ignoresAt(path.Dir(resolved))
	return ignored || g.Ignored(path.Base(resolved), false)
}

// ignoreRules returns the ignore files of a directory.
func (h handle) ignoreRules() *Rules {
	var rules Rules
	for kind, file := range ignoreFiles {
		rules[kind] = h.readIgnore(file)
	}
	return &rules
}

// readIgnore reads the ignore file at a path of names; it returns nil where no regular file has
// that name.
func (h handle) readIgnore(names ...string) []byte {
	if len(names) > 1 {
		next, err := h.enterDir(names[0])
		if err != nil {
			return nil
		}
		defer next.close()
		return next.readIgnore(names[1:]...)
	}
	f, _, err := h.openFile(names[0])
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	if err != nil {
		return nil
	}
	return data
}
