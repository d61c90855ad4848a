package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// desk is a workspace with what is kept of it.
type desk struct {
	*testing.T
	root  string
	dir   string
	store *Store
	at    regie.Workspace

	mu    sync.Mutex
	blobs map[regie.Hash][]byte
}

func newDesk(t *testing.T, bounds Bounds) *desk {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, root: root, dir: filepath.Join(t.TempDir(), "snapshots"), blobs: map[regie.Hash][]byte{}}
	d.store = New(d.dir, "", bounds)
	d.at = regie.Workspace{ID: regie.NewID(), Root: root}
	return d
}

func (d *desk) do(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) path(name string) string { return filepath.Join(d.root, name) }

func (d *desk) put(name, content string) {
	d.Helper()
	d.do(os.MkdirAll(filepath.Dir(d.path(name)), 0o755))
	d.do(os.WriteFile(d.path(name), []byte(content), 0o644))
}

func (d *desk) keep(_ context.Context, data []byte) (regie.Hash, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	hash := regie.HashOf(data)
	d.blobs[hash] = bytes.Clone(data)
	return hash, nil
}

func (d *desk) take(call regie.ID) Secured {
	d.Helper()
	said, err := d.store.Take(d.Context(), d.at, call)
	d.do(err)
	return said
}

// during takes a snapshot, does something, and says what that has changed.
func (d *desk) during(fn func(), others ...regie.FileChange) Changes {
	d.Helper()
	call := regie.NewID()
	said := d.take(call)
	d.tick()
	fn()
	c, err := d.store.Compare(d.Context(), d.at, Comparison{Call: call, Tree: said.Tree, Others: others, Keep: d.keep})
	d.do(err)
	for i := range c.Files {
		f := &c.Files[i]
		if f.Before.Exists() && (!f.Kept || regie.HashOf(d.blobs[f.Before.Hash]) != f.Before.Hash) {
			d.Errorf("what %s held is not kept: %+v", f.Path, f)
		}
	}
	return c
}

// tick lets the file system's clock, which is a coarse one, go on: between a snapshot and its
// command lies the start of a process.
func (d *desk) tick() {
	d.Helper()
	probe := filepath.Join(d.TempDir(), "clock")
	var first time.Time
	for {
		d.do(os.WriteFile(probe, []byte("x"), 0o600))
		info, err := os.Stat(probe)
		d.do(err)
		if first.IsZero() {
			first = info.ModTime()
		}
		if info.ModTime().After(first) {
			return
		}
	}
}

// marks are what was changed, as it is told.
func marks(c Changes) string {
	var out []string
	for i := range c.Files {
		out = append(out, changeMark(&c.Files[i])+" "+c.Files[i].Path)
	}
	return strings.Join(out, ", ")
}

// TestChanges is what is seen of what a command can do.
func TestChanges(t *testing.T) {
	aside := []string{"aside"} // something that is left out
	for _, row := range []struct {
		name string
		do   func(d *desk)
		want string
		left []string // not covered
	}{
		{"nothing", func(*desk) {}, "", nil},
		{"touched", func(d *desk) { d.do(os.Chtimes(d.path("a"), time.Now(), time.Now())) }, "", nil},
		{"written with what it held", func(d *desk) { d.put("a", "a") }, "", nil},
		{"modified", func(d *desk) { d.put("a", "new") }, "M a", nil},
		{"modified, its size and its time kept", func(d *desk) {
			info, err := os.Stat(d.path("a"))
			d.do(err)
			d.put("a", "b")
			d.do(os.Chtimes(d.path("a"), info.ModTime(), info.ModTime()))
		}, "M a", nil},
		{"created", func(d *desk) { d.put("x/y/z", "new") }, "A x/y/z", nil},
		{"deleted", func(d *desk) { d.do(os.RemoveAll(d.path("dir"))) }, "D dir/one, D dir/two", nil},
		{"renamed", func(d *desk) { d.do(os.Rename(d.path("dir"), d.path("other"))) }, "D dir/one, D dir/two, A other/one, A other/two", nil},
		{"chmodded", func(d *desk) { d.do(os.Chmod(d.path("a"), 0o755)) }, "P a", nil},
		{"a directory becomes a link that leads out", func(d *desk) {
			d.do(os.RemoveAll(d.path("dir")))
			d.do(os.Symlink("/etc", d.path("dir")))
		}, "A dir, D dir/one, D dir/two", nil},
		{"a file becomes a link", func(d *desk) { d.do(os.Remove(d.path("a"))); d.do(os.Symlink("b", d.path("a"))) }, "T a", nil},
		{"a link leads elsewhere", func(d *desk) { d.do(os.Remove(d.path("link"))); d.do(os.Symlink("b", d.path("link"))) }, "M link", nil},
		{"a link goes", func(d *desk) { d.do(os.Remove(d.path("link"))) }, "D link", nil},
		{"through a hard link", func(d *desk) { d.do(os.WriteFile(d.path("hard"), []byte("new"), 0o644)) }, "M dir/one, M hard", nil},
		{"a FIFO in the place of a file", func(d *desk) { d.do(os.Remove(d.path("a"))); d.do(syscall.Mkfifo(d.path("a"), 0o644)) }, "D a", aside},
		{"a new FIFO", func(d *desk) { d.do(syscall.Mkfifo(d.path("f"), 0o644)) }, "", aside},
		{"a FIFO goes", func(d *desk) { d.do(os.Remove(d.path("pipe"))) }, "", aside},
		{"a FIFO becomes a file", func(d *desk) { d.do(os.Remove(d.path("pipe"))); d.put("pipe", "x") }, "A pipe", aside},
		{"names that no path can have", func(d *desk) {
			d.put("bad\nname", "x")
			d.put("bad\xffname", "x")
			d.put("bad\\name", "x")
		}, "", aside},
		{"such a name goes", func(d *desk) { d.do(os.Remove(d.path("odd\x01"))) }, "", aside},
		{"a large file", func(d *desk) { d.put("big", strings.Repeat("x", 2000)) }, "", []string{"big"}},
		{"one that is no longer small", func(d *desk) { d.put("a", strings.Repeat("x", 2000)) }, "M a", nil},
		{"a large one", func(d *desk) { d.put("large", "small now") }, "", []string{"large"}},
		{"a large one goes", func(d *desk) { d.do(os.Remove(d.path("large"))) }, "", []string{"large"}},
		{"ignored files", func(d *desk) { d.put("built.o", "new"); d.put("out/y", "new") }, "", aside},
		{"a new ignored file", func(d *desk) { d.put("new.o", "new") }, "", aside},
		{"an ignored file goes", func(d *desk) { d.do(os.Remove(d.path("built.o"))) }, "", aside},
		{"an ignored directory goes", func(d *desk) { d.do(os.RemoveAll(d.path("out"))) }, "", aside},
		{"an ignored file in a directory that goes", func(d *desk) { d.do(os.RemoveAll(d.path("mixed"))) }, "D mixed/kept", aside},
		{"the ignore file hides what comes", func(d *desk) { d.put(".gitignore", "*\n"); d.put("a", "hidden") }, "M .gitignore, M a", nil},
		{"the ignore file shows what was hidden", func(d *desk) { d.put(".gitignore", "") }, "M .gitignore", nil},
		{"a new ignore file in a directory that was there", func(d *desk) { d.put("dir/.gitignore", "*\n"); d.put("dir/one", "hidden") }, "A dir/.gitignore, M dir/one, M hard", nil},
		{"git's own", func(d *desk) { d.put(".git/index", "new") }, "", nil},
		{"Regie's own", func(d *desk) { d.put(".regie/x", "new"); d.put(".regie-"+regie.NewID().String()+"-3.tmp", "x") }, "", nil},
		{"what passes for Regie's own", func(d *desk) { d.put(".regie-x.tmp", "x") }, "A .regie-x.tmp", nil},
		{"letters of the other case", func(d *desk) { d.put("A", "new") }, "A A", nil},
		{"a secret", func(d *desk) { d.put(".env", "KEY=2") }, "M .env", nil},
		{"an empty directory", func(d *desk) { d.do(os.MkdirAll(d.path("empty/er"), 0o755)) }, "", nil},
		{"an empty directory goes", func(d *desk) { d.do(os.RemoveAll(d.path("hollow"))) }, "", nil},
		{"an empty directory beside a file", func(d *desk) { d.put("x/y", "new"); d.do(os.Mkdir(d.path("x/z"), 0o755)) }, "A x/y", nil},
		{"a deep tree", func(d *desk) { d.put(strings.Repeat("d/", 90)+"x", "x") }, "A " + strings.Repeat("d/", 90) + "x", nil},
		{"one that is too deep", func(d *desk) { d.put(strings.Repeat("d/", 120)+"x", "x") }, "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			bounds := DefaultBounds()
			bounds.File = 1000
			d := newDesk(t, bounds)
			for _, name := range []string{"a", "b", "dir/one", "dir/two"} {
				d.put(name, name)
			}
			d.put(".gitignore", "*.o\nout/\n")
			d.put("built.o", "old")
			d.put("mixed/x.o", "old")
			d.put("mixed/kept", "old")
			d.put("odd\x01", "old")
			d.do(syscall.Mkfifo(d.path("pipe"), 0o644))
			d.do(os.MkdirAll(d.path("hollow/in"), 0o755))
			d.put("out/x", "old")
			d.put(".env", "KEY=1")
			d.put(".git/HEAD", "ref")
			d.put("large", strings.Repeat("l", 5000))
			d.do(os.Symlink("a", d.path("link")))
			d.do(os.Link(d.path("dir/one"), d.path("hard")))
			c := d.during(func() { row.do(d) })
			if got := marks(c); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if c.Aside {
				c.Names, c.Uncovered = append(c.Names, "aside"), c.Uncovered+1
			}
			if !slices.Equal(c.Names, row.left) || c.Uncovered != len(row.left) || c.Git {
				t.Errorf("not covered: %d %q, want %q", c.Uncovered, c.Names, row.left)
			}
			again := New(d.dir, "", bounds) // a process that comes later knows the same
			d.store = again
			if c := d.during(func() {}); !c.Empty() {
				t.Errorf("nothing was done, and %q changed", marks(c))
			}
		})
	}
}

// TestReadsOnce: what has not moved is not read again, and what was written in the moment of the
// first look is.
func TestReadsOnce(t *testing.T) {
	d := newDesk(t, DefaultBounds())
	for i := range 50 {
		d.put(fmt.Sprintf("f%d", i), fmt.Sprint(i))
	}
	if said := d.take(regie.NewID()); said.Read != 50 || said.Files != 50 {
		t.Fatalf("cold: %+v", said)
	}
	if said := d.take(regie.NewID()); said.Read != 50 { // their times are of this very moment
		t.Errorf("racy: %d were read", said.Read)
	}
	p := d.store.places[d.at.ID]
	for i := range p.latest.nodes { // as if they had been read a while later
		p.latest.nodes[i].Read += int64(time.Minute)
	}
	if said := d.take(regie.NewID()); said.Read != 0 {
		t.Errorf("warm: %d were read", said.Read)
	}
	d.put("f7", "x")
	if said := d.take(regie.NewID()); said.Read != 1 {
		t.Errorf("one was written: %d were read", said.Read)
	}
}

// TestSafe: nobody else reads what is kept, what is kept is what it is called, and what is damaged
// is not taken for what was there.
func TestSafe(t *testing.T) {
	d := newDesk(t, DefaultBounds())
	d.put("a", "content")
	call := regie.NewID()
	said := d.take(call)
	d.do(filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		d.do(err)
		info, err := e.Info()
		d.do(err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the permissions %s", path, info.Mode())
		}
		return nil
	}))
	hash := regie.HashOf([]byte("content")).String()
	d.do(os.WriteFile(filepath.Join(d.dir, d.at.ID.String(), "objects", hash[:2], hash[2:]), []byte("other"), 0o600))
	d.do(os.Remove(d.path("a")))
	c, err := d.store.Compare(t.Context(), d.at, Comparison{Call: call, Tree: said.Tree, Keep: d.keep})
	if err != nil || len(c.Files) != 1 || c.Files[0].Kept {
		t.Errorf("damaged: %+v, %v", c, err)
	}
	if _, err := d.store.Compare(t.Context(), d.at, Comparison{Call: call, Tree: regie.HashOf([]byte("x"))}); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("a tree that is not there: %v", err)
	}
	d.do(os.WriteFile(filepath.Join(d.dir, d.at.ID.String(), "trees", said.Tree.String()), []byte("other"), 0o600))
	d.store = New(d.dir, "", DefaultBounds())
	if _, err := d.store.Compare(t.Context(), d.at, Comparison{Call: call, Tree: said.Tree}); regie.CodeOf(err) != regie.CodeCorrupt {
		t.Errorf("a damaged tree: %v", err)
	}
	d.take(regie.NewID()) // it is only slower
}

// TestBounds: of many changes those are kept first that would be lost, and the rest is counted.
func TestBounds(t *testing.T) {
	bounds := DefaultBounds()
	bounds.Named, bounds.Blobs = 10, 30
	d := newDesk(t, bounds)
	for i := range 5 {
		d.put(fmt.Sprintf("old%d", i), "ten bytes!")
	}
	c := d.during(func() {
		for i := range 1000 {
			d.put(fmt.Sprintf("new/%d", i), "x")
		}
		for i := range 5 {
			d.put(fmt.Sprintf("old%d", i), "y")
		}
	})
	old := 0
	for i := range c.Files {
		if c.Files[i].Before.Exists() {
			old++
		}
	}
	if len(c.Files) != 10 || old != 3 || c.Uncovered != 995 || len(c.Names) != maxUncovered {
		t.Errorf("%d files, %d of them were there before, %d not covered, %d named", len(c.Files), old, c.Uncovered, len(c.Names))
	}
	if said := c.Said(); len(said) != 2 || !strings.Contains(said[1].String(), ", … (995)") {
		t.Errorf("said: %v", said)
	}
	if told := c.Told(); len(told) > 1000 || !strings.HasPrefix(told, "changed 10 files: A new/") {
		t.Errorf("told: %q", told)
	}
}

// TestOthers: what another call is known to have done is not booked as this one's.
func TestOthers(t *testing.T) {
	state := func(content string) regie.FileState {
		return regie.FileState{Hash: regie.HashOf([]byte(content)), Size: int64(len(content)), Perm: 0o644}
	}
	for _, row := range []struct {
		name   string
		steps  []string
		others []regie.FileChange
		want   string
		after  string
	}{
		{"theirs alone", []string{"b"}, []regie.FileChange{{Path: "f", Before: state("a"), After: state("b")}}, "", ""},
		{"theirs in two steps", []string{"c"}, []regie.FileChange{{Path: "f", Before: state("a"), After: state("b")}, {Path: "f", Before: state("b"), After: state("c")}}, "", ""},
		{"ours, then theirs", []string{"b", "c"}, []regie.FileChange{{Path: "f", Before: state("b"), After: state("c")}}, "M f", "b"},
		{"theirs, then ours", []string{"b", "c"}, []regie.FileChange{{Path: "f", Before: state("a"), After: state("b")}}, "M f", "c"},
		{"theirs was before", []string{"b"}, []regie.FileChange{{Path: "f", Before: state("x"), After: state("a")}}, "M f", "b"},
		{"theirs was before, ours its permissions", []string{"chmod"}, []regie.FileChange{{Path: "f", After: state("a")}}, "P f", "a"},
		{"another file", []string{"b"}, []regie.FileChange{{Path: "g", Before: state("a"), After: state("b")}}, "M f", "b"},
	} {
		d := newDesk(t, DefaultBounds())
		d.put("f", "a")
		c := d.during(func() {
			for _, content := range row.steps {
				if content == "chmod" {
					d.do(os.Chmod(d.path("f"), 0o700))
					continue
				}
				d.put("f", content)
			}
		}, row.others...)
		if got := marks(c); got != row.want || row.want != "" && c.Files[0].After.Hash != state(row.after).Hash {
			t.Errorf("%s: %q %+v", row.name, got, c.Files)
		}
	}
}

// TestSweeps: what no call needs any more goes, and what one needs stays.
func TestSweeps(t *testing.T) {
	d := newDesk(t, DefaultBounds())
	d.put("f", "first")
	open := regie.NewID()
	said := d.take(open)
	for i := range 100 {
		d.put("f", fmt.Sprint(i))
		d.during(func() {})
	}
	p := d.store.places[d.at.ID]
	p.sweepAt = 0
	p.trees = manyTrees + 1
	d.take(regie.NewID())
	p.objects.sweepUnnamed(func() map[regie.Hash]bool { _, live := p.neededTrees(); return live }())
	if n := len(p.objects.have); n > manyTracked+3 {
		t.Errorf("%d contents are kept", n)
	}
	if files, _ := os.ReadDir(filepath.Join(d.dir, d.at.ID.String(), "trees")); len(files) > manyTracked+4 {
		t.Errorf("%d trees are kept", len(files))
	}
	c, err := d.store.Compare(t.Context(), d.at, Comparison{Call: open, Tree: said.Tree, Keep: d.keep})
	if err != nil || len(c.Files) != 1 || string(d.blobs[c.Files[0].Before.Hash]) != "first" {
		t.Errorf("a call that was open all the while: %+v, %v", c, err)
	}
}

// FuzzDecode reads no tree that encode would write otherwise.
func FuzzDecode(f *testing.F) {
	t := tree{nodes: []node{
		{SurveyEntry: workspace.SurveyEntry{Path: "d", Mode: fs.ModeDir | 0o755}},
		{SurveyEntry: workspace.SurveyEntry{Path: "d/f", Mode: 0o644}, Hash: regie.HashOf(nil), Read: 7},
		{SurveyEntry: workspace.SurveyEntry{Path: "l", Mode: fs.ModeSymlink, Target: "d"}},
	}, rules: map[string]workspace.Rules{".": {3: []byte("x")}}}
	f.Add(t.encodeTree())
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := decodeTree(data)
		if err != nil {
			return
		}
		again, err := decodeTree(read.encodeTree())
		if err != nil || !again.equalTo(read) {
			t.Errorf("%v: %+v became %+v", err, read, again)
		}
	})
}

// TestForgets: what is kept of a workspace goes with it, or when others need the room.
func TestForgets(t *testing.T) {
	bounds := DefaultBounds()
	bounds.Kept = 3000
	d := newDesk(t, bounds)
	var places []regie.Workspace
	for i := range 4 {
		d.put("f", strings.Repeat(fmt.Sprint(i), 500))
		d.at.ID = regie.NewID()
		places = append(places, d.at)
		d.store = New(d.dir, "", bounds)
		d.take(regie.NewID())
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		d.do(filepath.WalkDir(filepath.Join(d.dir, d.at.ID.String()), func(path string, _ fs.DirEntry, err error) error {
			d.do(err)
			return os.Chtimes(path, at, at)
		}))
	}
	var there []bool
	for _, place := range places {
		_, err := os.Stat(filepath.Join(d.dir, place.ID.String()))
		there = append(there, err == nil)
	}
	// the first made room when the fourth came
	if want := []bool{false, true, true, true}; !slices.Equal(there, want) {
		t.Errorf("there are %v, want %v", there, want)
	}
	d.do(d.store.Forget(d.at.ID))
	if said := d.take(regie.NewID()); said.Read != 1 {
		t.Errorf("forgotten, %d were read", said.Read)
	}
}
