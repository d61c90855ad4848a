package sandbox

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/regie-run/regie/internal/gitconfig"
)

// Bounds of a guard.
const (
	maxKept   = 64 << 20 // bytes of the files that a guard can put back
	maxPlain  = 64 << 10 // bytes of a file that may stay in a new repository
	maxRounds = 4        // looks at a workspace, because what is put back may name more places
)

// guard compares the places that git and Regie run or trust with their state before a command, and
// restores them. It is the last barrier in each tier, and the only one without support from the
// kernel.
type guard struct {
	dir    string
	root   *os.Root
	who    identity // whom files belong to that are put back
	before *picture
	moved  map[string]bool // names that files were moved to
	closed []string        // places that the last look did not look through
}

// identity holds the user and group that a command runs as.
type identity struct {
	uid, gid  int  // those to take on; 0 where they stay
	namespace bool // root's files, without being root
}

// picture is how these places look at one moment, by their paths in the workspace.
type picture struct {
	held  map[string]held
	gits  map[string]bool
	named []string
	left  int64 // bytes that may still be kept
}

// held is one file, link or directory.
type held struct {
	info fs.FileInfo
	data string // a file's content, a link's aim
	kept bool   // the content is known
}

func (h held) equalTo(other held) bool {
	a, b := h.info.Mode(), other.info.Mode()
	switch {
	case a.Type() != b.Type():
		return false
	case !a.IsRegular():
		return h.data == other.data
	case h.kept && other.kept:
		return a == b && h.data == other.data
	default:
		same := os.SameFile(h.info, other.info) && h.info.Size() == other.info.Size()
		return a == b && same && h.info.ModTime().Equal(other.info.ModTime()) &&
			changedAt(h.info) == changedAt(other.info)
	}
}

// newGuard takes a picture of a workspace before a command.
func newGuard(n *nests, who identity) (*guard, error) {
	root, err := os.OpenRoot(n.root)
	if err != nil {
		return nil, err
	}
	g := &guard{dir: n.root, root: root, who: who, before: &picture{}, moved: map[string]bool{}}
	g.before = g.takePicture(n)
	return g, nil
}

// takePicture takes a picture. It includes the places of the earlier one, which configuration may
// no longer name.
func (g *guard) takePicture(n *nests) *picture {
	p := &picture{
		held: map[string]held{}, gits: map[string]bool{}, left: maxKept,
		named: slices.Concat(n.named, g.before.named),
	}
	for _, name := range slices.Concat(n.gits, slices.Collect(maps.Keys(g.before.gits))) {
		if info, err := g.root.Lstat(name); err == nil && info.IsDir() {
			p.gits[name] = true
		}
	}
	gits := slices.Collect(maps.Keys(p.gits))
	// the workspace's own files are kept before those that a command could add below
	slices.SortFunc(gits, func(a, b string) int {
		return cmp.Or(strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
	})
	for _, name := range gits {
		g.addParts(p, name)
	}
	for _, name := range n.marks {
		if info, err := g.root.Lstat(name); err == nil && !p.gits[name] {
			if filepath.Base(name) != ".git" || !info.IsDir() { // a directory without a repository runs nothing
				g.addPlace(p, name)
			}
		}
	}
	for _, name := range p.named {
		g.addPlace(p, name)
	}
	return p
}

// addPlace takes in a place with everything below it.
func (g *guard) addPlace(p *picture, name string) {
	info, err := g.root.Lstat(name)
	// git gc lists references there
	if _, done := p.held[name]; err != nil || done || strings.HasSuffix(name, "/info/refs") {
		return
	}
	h := held{info: info}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		h.data, _ = g.root.Readlink(name) // empty where it is gone
	case info.Mode().IsRegular() && info.Size() <= p.left:
		data, err := g.readFile(name, p.left)
		h.data, h.kept = string(data), err == nil
		p.left -= int64(len(data))
	}
	p.held[name] = h
	if info.IsDir() && p.gits[name] {
		g.addParts(p, name)
	} else if info.IsDir() {
		for _, part := range g.listDir(name) {
			g.addPlace(p, filepath.Join(name, part))
		}
	}
}

// addParts takes in the parts of a git directory that are kept as they are.
func (g *guard) addParts(p *picture, git string) {
	for _, part := range g.listDir(git) {
		if isProtected(git, part) {
			g.addPlace(p, filepath.Join(git, part))
		}
	}
	for _, state := range gitconfig.States() {
		name := filepath.Join(git, state)
		if info, err := g.root.Lstat(name); err != nil || !info.IsDir() {
			g.addPlace(p, name)
			continue
		}
	}
	for _, file := range gitconfig.StateFiles() {
		g.addPlace(p, filepath.Join(git, file))
	}
}

// readFile returns a regular file of at most most bytes. It does not block on a FIFO.
func (g *guard) readFile(name string, most int64) ([]byte, error) {
	f, err := g.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(data)) > most {
		err = fs.ErrInvalid
	}
	return data, err
}

// listDir returns the names in a directory. It does not wait at a FIFO.
func (g *guard) listDir(dir string) (names []string) {
	if !g.hasDir(dir) {
		return nil
	}
	f, err := g.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	names, _ = f.Readdirnames(-1)    // what was read until then counts
	return names
}

// closeRoot closes the workspace.
func (g *guard) closeRoot() { _ = g.root.Close() }

// settleChanges restores what a command changed, and moves away what it made.
func (g *guard) settleChanges() (out []Moved) {
	for round := range maxRounds + 1 {
		if round == maxRounds {
			out = append(out, Moved{
				From: ".",
				Err:  errors.New("it changed after each look: something goes on writing there"),
			})
			break
		}
		n := findNests(g.dir)
		g.closed = n.closed
		named := n.named
		n.named = nil // while the command's configuration is in place, its names do not count
		moved := g.compareOnce(n)
		if n.named = named; len(moved) == 0 {
			moved = g.compareOnce(n)
		}
		out = append(out, moved...)
		if !slices.ContainsFunc(moved, func(m Moved) bool { return m.Err == nil }) {
			break
		}
	}
	return out
}

// compareOnce returns one look at a workspace.
func (g *guard) compareOnce(n *nests) (out []Moved) {
	now := g.takePicture(n)
	before := g.before.held
	names := slices.Collect(maps.Keys(now.held))
	names = slices.AppendSeq(names, maps.Keys(before))
	slices.SortFunc(names, func(a, b string) int { // a directory comes right before what is in it
		return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
	gone, told := "", ""
	for _, name := range slices.Compact(names) {
		old, known := before[name]
		is, there := now.held[name]
		there = there && (gone == "" || !isWithin(name, gone))
		switch {
		case g.isMoved(name), !known && !there, known && there && old.equalTo(is):
			continue
		case !there && (g.before.gits[name] || !g.hasDir(filepath.Dir(name))):
			// it went with its repository, or its directory
			continue
		case !known && g.mayStay(now, name, is), harmlessSteps(name, old, is, there):
			continue
		}
		m := Moved{From: name, Restored: known}
		if there {
			gone = name
			m.To, m.Err = g.moveAside(name)
		}
		if known && m.Err == nil {
			if m.Err = g.restorePlace(name, old); m.Err == nil {
				old.info, m.Err = g.root.Lstat(name)
				before[name] = old
			}
		}
		if m.Err != nil || told == "" || !isWithin(name, told) {
			told = name
			out = append(out, m)
		}
	}
	return out
}

// harmlessSteps reports whether a file holds the steps of a rebase under way, or its strategy, and
// runs no program that it did not run before.
func harmlessSteps(name string, old, is held, there bool) bool {
	isIt := func(file string) bool { return strings.HasSuffix(name, "/"+file) }
	if !slices.ContainsFunc(gitconfig.StateFiles(), isIt) {
		return false
	}
	if !there {
		return true
	}
	lines := strings.Split(old.data, "\n")
	return is.kept && !slices.ContainsFunc(strings.Split(is.data, "\n"), func(line string) bool {
		return gitconfig.RunsProgram(name, line) && !slices.Contains(lines, line)
	})
}

// mayStay reports whether something new may stay: in a new repository what git itself puts there.
func (g *guard) mayStay(now *picture, name string, is held) bool {
	git := filepath.Dir(name)
	for !now.gits[git] && git != "." {
		git = filepath.Dir(git)
	}
	relative, err := filepath.Rel(git, name)
	if !now.gits[git] || g.before.gits[git] {
		return false
	}
	part, below, _ := strings.Cut(relative, "/")
	regular := is.info.Mode().IsRegular()
	switch {
	case err != nil:
		return false
	case regular && is.info.Size() > maxPlain:
		return false
	case part == "config" && below == "":
		return regular && is.kept && gitconfig.Plain([]byte(is.data))
	case part == "hooks":
		return below == "" && is.info.IsDir() || regular && strings.HasSuffix(below, ".sample")
	case part == "info":
		return below == "" && is.info.IsDir() || regular && (below == "exclude" || below == "refs")
	default:
		return part == "branches" && below == "" && is.info.IsDir() || part == "description" && regular
	}
}

// isMoved reports whether a place is below the target of a move.
func (g *guard) isMoved(name string) bool {
	for ; name != "."; name = filepath.Dir(name) {
		if g.moved[name] {
			return true
		}
	}
	return false
}

func (g *guard) hasDir(dir string) bool {
	info, err := g.root.Lstat(dir)
	return err == nil && info.IsDir()
}

// moveAside gives a place another name, under which nothing runs it. A person may have made it
// meanwhile, so it is not deleted.
func (g *guard) moveAside(name string) (to string, err error) {
	dir, base := filepath.Split(name)
	for n := 1; n < 1000; n++ {
		to = dir + strings.TrimPrefix(base, ".") + ".made-by-command-" + strconv.Itoa(n)
		if _, err := g.root.Lstat(to); err == nil {
			continue
		}
		if err := g.root.Rename(name, to); err != nil {
			return "", err
		}
		g.moved[to] = true
		g.keepRepositories(to, 0)
		return to, nil
	}
	return "", errors.New("there are too many names like it")
}

// keepRepositories keeps the repositories in a directory that was moved from being any.
func (g *guard) keepRepositories(dir string, depth int) {
	has := parts{}
	names := g.listDir(dir)
	for _, name := range names {
		has.seeName(name)
	}
	if has.isRepository() {
		// otherwise the next look finds it
		_ = g.root.Rename(filepath.Join(dir, "HEAD"), filepath.Join(dir, "HEAD.made-by-command"))
	}
	for _, name := range names {
		if full := filepath.Join(dir, name); depth < maxDeep && g.hasDir(full) {
			g.keepRepositories(full, depth+1)
		}
	}
}

// restorePlace restores a place to its earlier state.
func (g *guard) restorePlace(name string, was held) error {
	mode := was.info.Mode()
	var err error
	switch {
	case mode.IsDir():
		err = g.root.Mkdir(name, mode.Perm())
	case mode&fs.ModeSymlink != 0:
		err = g.root.Symlink(was.data, name)
	case !was.kept:
		return errors.New("it was too large to be kept")
	default:
		var f *os.File
		if f, err = g.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode.Perm()); err == nil {
			_, err = f.WriteString(was.data)
			err = errors.Join(err, f.Chmod(mode.Perm()), f.Close())
		}
	}
	if err == nil && g.who.uid != 0 {
		err = g.root.Lchown(name, g.who.uid, g.who.gid)
	}
	return err
}
