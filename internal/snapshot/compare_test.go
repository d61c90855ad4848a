package snapshot

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// TestIgnoredLater: what was covered once stays so, whatever a command writes into ignore files.
func TestIgnoredLater(t *testing.T) {
	d := newDesk(t, DefaultBounds())
	d.put("f", "precious")
	d.put("sub/g", "precious")
	d.during(func() { d.put(".git/info/exclude", "*\n"); d.put(".gitignore", "*\n") })
	if c := d.during(func() { d.do(os.Remove(d.path("f"))); d.do(os.RemoveAll(d.path("sub"))) }); marks(c) != "D f, D sub/g" {
		t.Errorf("got %q, not covered: %q", marks(c), c.Names)
	}
}

// TestGit notes what a command did to a repository, which no undo takes back: commits, branches,
// tags, stashes; and nothing of what it only read.
func TestGit(t *testing.T) {
	for name, row := range map[string]struct {
		do   func(*desk)
		want bool
	}{
		"nothing":               {func(*desk) {}, false},
		"the index":             {func(d *desk) { d.put(".git/index", "new") }, false},
		"a commit":              {func(d *desk) { d.put(".git/refs/heads/main", "1111"); d.put(".git/logs/HEAD", "one\ntwo\n") }, true},
		"a checkout":            {func(d *desk) { d.put(".git/HEAD", "ref: refs/heads/other") }, true},
		"a deleted branch":      {func(d *desk) { d.do(os.Remove(d.path(".git/refs/heads/side"))) }, true},
		"a deleted tag":         {func(d *desk) { d.do(os.Remove(d.path(".git/refs/tags/v1"))) }, true},
		"a renamed branch":      {func(d *desk) { d.do(os.Rename(d.path(".git/refs/heads/side"), d.path(".git/refs/heads/edge"))) }, true},
		"a packed branch":       {func(d *desk) { d.put(".git/packed-refs", "0000 refs/heads/side\n1") }, true},
		"a dropped stash":       {func(d *desk) { d.do(os.Remove(d.path(".git/logs/refs/stash"))) }, true},
		"a commit in one below": {func(d *desk) { d.put("lib/.git/refs/heads/main", "1111") }, true},
		"a push to a bare one":  {func(d *desk) { d.put("x.git/refs/heads/main", "1111") }, true},
		"a new one":             {func(d *desk) { d.put("new/.git/HEAD", "ref: refs/heads/main") }, true},
		"a branch that was":     {func(d *desk) { d.put(".git/refs/heads/new/one", "0000") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, DefaultBounds())
			for file, text := range map[string]string{
				"HEAD": "ref: refs/heads/main", "refs/heads/main": "0000", "refs/heads/side": "0000", "refs/tags/v1": "0000", "logs/HEAD": "one\n", "logs/refs/stash": "s\n",
				"packed-refs": "0000 refs/heads/side\n", "index": "old",
			} {
				d.put(".git/"+file, text)
				d.put("lib/.git/"+file, text)
				d.put("x.git/"+file, text)
			}
			d.put("x.git/objects/o", "")
			if c := d.during(func() { row.do(d) }); c.Git != row.want || len(c.Files) > 0 {
				t.Errorf("noted: %v, %+v", c.Git, c.Files)
			}
		})
	}
}

// TestRepositoryMade: what lies in a directory that becomes a repository, or is none any more, has
// neither gone nor come, and no undo touches it.
func TestRepositoryMade(t *testing.T) {
	d := newDesk(t, DefaultBounds())
	for _, name := range []string{"x/config", "x/objects/o", "x/refs/r", "x/file", "y"} {
		d.put(name, name)
	}
	if c := d.during(func() { d.put("x/HEAD", "ref: refs/heads/main"); d.put("x/file", "new") }); marks(c) != "M x/file" || !c.Git || c.Uncovered != 3 {
		t.Errorf("made: %q, %+v", marks(c), c)
	}
	if c := d.during(func() { d.do(os.Remove(d.path("x/file"))) }); marks(c) != "D x/file" || c.Uncovered != 0 {
		t.Errorf("beside its parts: %q, %+v", marks(c), c)
	}
	if c := d.during(func() { d.do(os.Remove(d.path("x/HEAD"))); d.put("y", "new") }); marks(c) != "M y" || !c.Git || c.Uncovered != 3 {
		t.Errorf("unmade: %q, %+v", marks(c), c)
	}
}

// TestBrought: what a command moves out of a place that is not covered is there once only, so no
// undo may remove it; what it makes, and what it moves within what is covered, an undo takes back.
func TestBrought(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	for name, row := range map[string]struct {
		do   func(*desk)
		want string
		left []string
	}{
		"an ignored file":             {func(d *desk) { d.do(os.Rename(d.path("my.log"), d.path("notes.txt"))) }, "", []string{"notes.txt"}},
		"an ignored directory":        {func(d *desk) { d.do(os.Rename(d.path("out"), d.path("kept"))) }, "", []string{"kept/x"}},
		"a large file":                {func(d *desk) { d.do(os.Rename(d.path("z/large"), d.path("a_large"))) }, "", []string{"a_large", "z/large"}},
		"a file with an odd name":     {func(d *desk) { d.do(os.Rename(d.path("odd\x01name"), d.path("plain"))) }, "", []string{"plain"}},
		"a link":                      {func(d *desk) { d.do(os.Rename(d.path("link.log"), d.path("link"))) }, "", []string{"link"}},
		"a covered file":              {func(d *desk) { d.do(os.Rename(d.path("a"), d.path("b"))) }, "D a, A b", nil},
		"a hard link":                 {func(d *desk) { d.do(os.Link(d.path("a"), d.path("b"))) }, "A b", nil},
		"a new file":                  {func(d *desk) { d.put("b", "new") }, "A b", nil},
		"a copy that keeps its time":  {func(d *desk) { d.put("b", "a"); d.do(os.Chtimes(d.path("b"), old, old)) }, "A b", nil},
		"a directory that has to go":  {func(d *desk) { d.do(os.RemoveAll(d.path("p"))) }, "D p/one", nil},
		"a name given to another one": {func(d *desk) { d.do(os.Remove(d.path("a"))); d.put("b", "a") }, "D a, A b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			bounds := DefaultBounds()
			bounds.File = 1000
			d := newDesk(t, bounds)
			for file, content := range map[string]string{
				".gitignore": "*.log\nout/\n", "my.log": "only", "out/x": "only", "z/large": strings.Repeat("l", 5000), "odd\x01name": "only", "a": "a", "p/one": "1",
			} {
				d.put(file, content)
			}
			d.do(os.Symlink("a", d.path("link.log")))
			d.do(os.Chmod(d.path("p"), 0o700))
			c := d.during(func() { row.do(d) })
			if got := marks(c); got != row.want || !slices.Equal(c.Names, row.left) {
				t.Errorf("got %q and %q, want %q and %q", got, c.Names, row.want, row.left)
			}
			if name == "a directory that has to go" && c.Files[0].Before.DirPerm != 0o700 {
				t.Errorf("the directory's permissions are not known: %v", c.Files[0].Before.DirPerm)
			}
		})
	}
}

// TestBlindBefore: of a directory that could not be read before a command nothing is known, so
// nothing of it appeared.
func TestBlindBefore(t *testing.T) {
	before := &tree{nodes: []node{{SurveyEntry: workspace.SurveyEntry{Path: "d", Mode: fs.ModeDir}}}, blind: []string{"d"}}
	now := &tree{nodes: []node{
		{SurveyEntry: workspace.SurveyEntry{Path: "d", Mode: fs.ModeDir}},
		{SurveyEntry: workspace.SurveyEntry{Path: "d/f", Mode: 0o644}, Hash: regie.HashOf(nil), Read: 7},
	}}
	again, err := decodeTree(before.encodeTree())
	if err != nil {
		t.Fatal(err)
	}
	if c := compareTrees(again, now, 1); len(c.all) > 0 || !slices.Equal(c.Names, []string{"d/f"}) {
		t.Errorf("%+v", c.all)
	}
}
