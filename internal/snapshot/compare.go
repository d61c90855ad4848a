package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// Changes are a command's changes to its workspace.
type Changes struct {
	// Files are its changes to files and links, by path; the store has the earlier content of each.
	Files []regie.FileChange `json:"files,omitempty"`
	// Uncovered counts changes that cannot be undone; Names are some of their paths.
	Uncovered int      `json:"uncovered,omitempty"`
	Names     []string `json:"uncovered_names,omitempty"`
	// Aside says that ignored or special files changed.
	Aside bool `json:"aside,omitempty"`
	// Git says that the history of the repository is another one: a commit, a checkout.
	Git bool `json:"git,omitempty"`
}

// Empty reports whether nothing was seen to have changed.
func (c *Changes) Empty() bool { return len(c.Files) == 0 && c.Uncovered == 0 && !c.Git && !c.Aside }

const maxUncovered = 100 // names of what is not covered

// Comparison holds the arguments of Compare.
type Comparison struct {
	Call regie.ID
	Tree regie.Hash // of the snapshot that was taken for the call
	// Others are the known changes of other writers meanwhile, in order.
	Others []regie.FileChange
	// Keep stores a content as a blob. Several goroutines call it with the earlier content of each
	// changed or deleted file; nil keeps none.
	Keep func(context.Context, []byte) (regie.Hash, error)
}

// Compare returns what changed in a workspace since a snapshot was taken for a call. The snapshot
// stays, so that a call can be compared again if its result could not be stored.
//
// All changes between Take and Compare count as the call's, except those known to be others': a
// file does not tell its writer. If another writer and then the call changed a file, both changes
// are the call's.
func (s *Store) Compare(ctx context.Context, at regie.Workspace, in Comparison) (Changes, error) {
	p, err := s.openPlace(at.ID)
	if err != nil {
		return Changes{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, err := p.readTree(in.Tree)
	if err != nil {
		return Changes{}, err
	}
	now, _, err := p.takeSnapshot(ctx, at.Root, before)
	if err != nil {
		return Changes{}, err
	}
	var began int64
	if info, err := os.Lstat(filepath.Join(p.dir, "calls", in.Call.String())); err == nil {
		began = info.ModTime().UnixNano()
	}
	c := compareTrees(before, now, began)
	c.removeOthers(in.Others)
	if err := p.saveContents(ctx, &c, in.Keep); err != nil {
		return Changes{}, err
	}
	p.markDone(in.Call)
	return c.Changes, nil
}

// change is one file of two trees.
type change struct {
	regie.FileChange
	target string // of a link that was there before
	theirs bool   // others have done it
}

// compared are the differences of two trees.
type compared struct {
	Changes
	all  []change
	made []string // directories
}

// noteUncovered notes something that cannot be put back.
func (c *compared) noteUncovered(name string) {
	if c.Uncovered++; len(c.Names) < maxUncovered {
		c.Names = append(c.Names, name)
	}
}

// isHidden reports whether a place is, or lies in, a place that could not be read completely.
func (t *tree) isHidden(name string) bool {
	return slices.ContainsFunc(t.blind, func(dir string) bool {
		return name == dir || dir == "." ||
			strings.HasPrefix(name, dir+"/")
	})
}

// inRepository reports whether a place now belongs to git: it is no longer surveyed, but not gone.
func (t *tree) inRepository(name string) bool {
	return slices.ContainsFunc(t.repositories, func(dir string) bool { return workspace.PartOf(dir, name) })
}

// wasBrought reports whether a file that appeared may have been there before a call that began
// then, in a place that is not covered: moved out of an ignored directory, out of one that could
// not be read, or from beyond the bounds. It may be the only copy, so no undo removes it.
func (t *tree) wasBrought(n *node, began int64) bool {
	return t.isHidden(n.Path) || n.Born != 0 && n.Born <= began && !slices.ContainsFunc(t.nodes, func(m node) bool {
		return m.Ino == n.Ino && m.Dev == n.Dev && m.isHeld()
	})
}

// compareTrees finds the differences of two trees. began is the time at which the first was done,
// in nanoseconds since 1970; 0 if unknown.
func compareTrees(before, now *tree, began int64) compared {
	c := compared{Changes: Changes{Git: before.git != now.git, Aside: before.aside != now.aside}}
	if before == now {
		return c
	}
	was := maps.Clone(before.byPath())
	for i := range now.nodes {
		n := &now.nodes[i]
		b := was[n.Path]
		if b != nil && b.Mode.IsDir() == n.Mode.IsDir() {
			delete(was, n.Path)
		}
		switch {
		case n.Mode.IsDir():
			if b == nil || !b.Mode.IsDir() {
				c.made = append(c.made, n.Path)
			}
		case (b == nil || b.Mode.IsDir()) && before.wasBrought(n, began):
			c.noteUncovered(n.Path)
		case b == nil || b.Mode.IsDir():
			c.addAppeared(n)
		default:
			c.addChanged(b, n)
		}
	}
	for i := range before.nodes { // in their order
		b := &before.nodes[i]
		switch {
		case was[b.Path] != b || b.Mode.IsDir():
		case now.isHidden(b.Path) || now.inRepository(b.Path):
			c.noteUncovered(b.Path)
		default:
			c.addRemoved(b)
			c.inDirectory(before, now, b)
		}
	}
	slices.SortFunc(c.all, func(a, b change) int { return cmp.Compare(a.Path, b.Path) })
	return c
}

// removeOthers subtracts the changes of others from the end of the call's, as far as their final
// states match. A change with nothing left is dropped. Changes of permissions alone stay.
func (c *compared) removeOthers(others []regie.FileChange) {
	last := map[string][]regie.FileChange{}
	for i := range others {
		last[others[i].Path] = append(last[others[i].Path], others[i])
	}
	for i := range c.all {
		f := &c.all[i]
		theirs := last[f.Path]
		if f.Before.Same(f.After) {
			continue
		}
		for k := len(theirs) - 1; k >= 0 && theirs[k].After.Same(f.After) && !f.theirs; k-- {
			f.After = theirs[k].Before
			f.theirs = f.After.Same(f.Before)
		}
	}
	c.all = slices.DeleteFunc(c.all, func(f change) bool { return f.theirs })
}

// fileState returns a node as a file's state. If the content is not held, the hash is that of the
// file's stamp.
func (n *node) fileState() regie.FileState {
	switch {
	case n.Mode.Type() == fs.ModeSymlink:
		return regie.LinkState(n.Target)
	case n.Hash.IsZero():
		return regie.FileState{
			Hash: regie.HashOf(fmt.Appendf(nil, "not held %v", n.Stamp)),
			Size: n.Size, Perm: regie.PermOf(n.Mode),
		}
	default:
		return regie.FileState{Hash: n.Hash, Size: n.Size, Perm: regie.PermOf(n.Mode)}
	}
}

// changeTo returns what became of a node that was there before.
func (n *node) changeTo(after regie.FileState) regie.FileChange {
	return regie.FileChange{Path: n.Path, Before: n.fileState(), After: after}
}

func (c *compared) addAppeared(n *node) {
	if !n.isHeld() {
		c.noteUncovered(n.Path)
		return
	}
	c.all = append(c.all, change{FileChange: regie.FileChange{Path: n.Path, After: n.fileState()}})
}

func (c *compared) addRemoved(b *node) {
	if !b.isHeld() {
		c.noteUncovered(b.Path)
		return
	}
	c.all = append(c.all, change{FileChange: b.changeTo(regie.FileState{}), target: b.Target})
}

// inDirectory notes the permissions of the directory of a removed file, if the directory is gone
// too.
func (c *compared) inDirectory(before, now *tree, b *node) {
	dir := path.Dir(b.Path)
	if was := before.byPath()[dir]; was != nil && now.byPath()[dir] == nil && b.isHeld() {
		c.all[len(c.all)-1].Before.DirPerm = was.Mode.Perm()
	}
}

func (c *compared) addChanged(b, n *node) {
	f := change{FileChange: b.changeTo(n.fileState()), target: b.Target}
	switch file := b.Mode.IsRegular() && n.Mode.IsRegular(); {
	case file && !b.isHeld() && b.Mode == n.Mode && b.Stamp == n.Stamp:
		return
	case !b.isHeld():
		c.noteUncovered(n.Path)
		return
	case file && !n.isHeld() && b.Size == n.Size && b.Mtime == n.Mtime && b.Ino == n.Ino:
		// it cannot be read any more, and was not written
		f.After.Hash = b.Hash
	}
	if !f.Before.Same(f.After) || f.Before.Perm != f.After.Perm {
		c.all = append(c.all, f)
	}
}

// saveContents stores the earlier contents as blobs, up to the bounds. Earlier contents come first,
// because they would be lost; new ones follow.
func (p *place) saveContents(ctx context.Context, c *compared,
	keep func(context.Context, []byte) (regie.Hash, error),
) error {
	fresh := func(f change) bool { return !f.Before.Exists() }
	order := slices.Concat(slices.DeleteFunc(slices.Clone(c.all), fresh), slices.DeleteFunc(slices.Clone(c.all),
		func(f change) bool { return !fresh(f) }))
	var bytes int64
	taken := map[string]bool{}
	for i := range order {
		f := &order[i]
		if bytes += f.Before.Size; len(taken) >= p.bounds.Named || bytes > p.bounds.Blobs {
			bytes -= f.Before.Size
			c.noteUncovered(f.Path)
			continue
		}
		taken[f.Path] = true
	}
	c.all = slices.DeleteFunc(c.all, func(f change) bool { return !taken[f.Path] })
	if err := p.storeBlobs(ctx, c.all, keep); err != nil {
		return err
	}
	for i := range c.all {
		c.Files = append(c.Files, c.all[i].FileChange)
	}
	for _, dir := range c.made { // only those with a file in them
		if slices.ContainsFunc(c.Files, func(f regie.FileChange) bool {
			return f.After.Exists() && strings.HasPrefix(f.Path, dir+"/")
		}) {
			c.Files[0].Made = append(c.Files[0].Made, dir)
		}
	}
	return nil
}

// together is how many contents are on their way to the store at once: it stores those that come
// together in one go.
const together = 16

// storeBlobs hands the contents from before to the store.
func (p *place) storeBlobs(ctx context.Context, all []change,
	keep func(context.Context, []byte) (regie.Hash, error),
) error {
	if keep == nil {
		return nil
	}
	var group sync.WaitGroup
	free, errs := make(chan struct{}, together), make([]error, len(all))
	for i := range all {
		if !all[i].Before.Exists() {
			continue
		}
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			all[i].Kept, errs[i] = p.storeBlob(ctx, &all[i], keep)
		})
	}
	group.Wait()
	return cmp.Or(errs...)
}

// storeBlob hands one content over. One that is damaged here is not kept, which the undo says then.
func (p *place) storeBlob(ctx context.Context, f *change, keep func(context.Context,
	[]byte) (regie.Hash, error),
) (bool, error) {
	data := regie.LinkData(f.target)
	if !f.Before.IsLink() {
		var err error
		if data, err = p.objects.getContent(f.Before.Hash); err != nil {
			if code := regie.CodeOf(err); code == regie.CodeCorrupt || code == regie.CodeNotFound {
				return false, nil
			}
			return false, err
		}
	}
	hash, err := keep(ctx, data)
	return hash == f.Before.Hash, err
}

// Told returns the changes for the model; "" if there are none. Names are unescaped: they hold no
// control characters.
func (c *Changes) Told() string {
	if c.Empty() {
		return ""
	}
	told := ""
	if n := len(c.Files); n > 0 {
		told = "changed " + pluralize(n, "file") + ": " + strings.Join(c.markedNames(), ", ")
		if n > maxTold {
			told += " and " + pluralize(n-maxTold, "more file")
		}
		told += "\n"
	}
	if c.Uncovered > 0 {
		told += "changed, moved or made, and not covered by an undo: " + pluralize(c.Uncovered, "file")
		if len(c.Names) > 0 {
			told += " (" + strings.Join(c.Names[:min(3, len(c.Names))], ", ") + ")"
		}
		told += "\n"
	}
	return told
}

// markedNames names the first of the changed files, each with the kind of its change.
func (c *Changes) markedNames() (names []string) {
	for i := range c.Files[:min(len(c.Files), maxTold)] {
		names = append(names, changeMark(&c.Files[i])+" "+c.Files[i].Path)
	}
	return names
}

// Said returns the changes for people, like Told for a model.
func (c *Changes) Said() (out []regie.Sentence) {
	if n := len(c.Files); n > 0 {
		out = append(out, regie.Say("files changed: %s", Names(c.markedNames(), n)))
	}
	if n := c.Uncovered; n > 0 {
		out = append(out, regie.Say("changed or created, and not covered by undo: %s",
			Names(c.Names[:min(3, len(c.Names))], n)))
	}
	return out
}

// Names returns some names of all, or only their number if there is no name.
func Names(some []string, all int) string {
	text := strings.Join(some, ", ")
	switch {
	case len(some) == 0:
		return strconv.Itoa(all)
	case all > len(some):
		return text + ", … (" + strconv.Itoa(all) + ")"
	default:
		return text
	}
}

// maxTold bounds how many files are listed by name.
const maxTold = 20

func pluralize(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// changeMark returns git's letter for a change: added, deleted, modified, type changed; P for
// permissions alone.
func changeMark(f *regie.FileChange) string {
	switch {
	case !f.Before.Exists():
		return "A"
	case !f.After.Exists():
		return "D"
	case f.Before.IsLink() != f.After.IsLink():
		return "T"
	case f.Before.Hash == f.After.Hash:
		return "P"
	default:
		return "M"
	}
}
