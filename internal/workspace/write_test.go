package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

func TestLoadRefuses(t *testing.T) {
	p := newPlace(t)
	p.file("a.md", "inside")
	p.file("big", strings.Repeat("x", 1<<20+1))
	p.file("frozen", "x")
	p.must(os.Chmod(p.abs("frozen"), 0o444))
	p.file("dir/b", "")
	p.file(".git/config", "git's own")
	p.file("../outside/x", "CANARY")
	p.fifo("fifo")
	p.link("a.md", "to-file")
	p.link("none", "dangling")
	p.link("../outside/x", "out")
	p.link(p.outside, "out-dir")
	p.link(".git", "to-git")
	p.link(".env", "to-env")
	p.link("loop", "loop")
	before := p.tree()
	for name, want := range map[string]regie.Code{
		"to-file": regie.CodeNotAFile, "dangling": regie.CodeNotAFile, "out": regie.CodePathOutside, "out-dir/x": regie.CodePathOutside,
		"out-dir/new": regie.CodePathOutside,
		"loop":        regie.CodePathInvalid, "../x": regie.CodePathOutside, "dir": regie.CodeNotAFile, "dir/new/": regie.CodeNotAFile,
		".":      regie.CodeNotAFile,
		"fifo":   regie.CodeSpecialFile,
		"a.md/b": regie.CodeNotADirectory, "fifo/b": regie.CodeNotADirectory, ".git/config": regie.CodePathProtected,
		".git/hooks/new": regie.CodePathProtected,
		".GIT/new":       regie.CodePathProtected, "sub/.git/new": regie.CodePathProtected, ".git": regie.CodePathProtected,
		".regie/config.yaml": regie.CodePathProtected,
		"to-git/config":      regie.CodePathProtected, "to-git/new": regie.CodePathProtected, "to-env": regie.CodePathProtected,
		".env": regie.CodePathProtected, "new.pem": regie.CodePathProtected, ".ssh/authorized_keys": regie.CodePathProtected,
		"big": regie.CodeFileTooLarge, "frozen": regie.CodeReadOnly, "": regie.CodePathInvalid,
	} {
		tried, err := p.write(name, "changed")
		wantCode(t, name, err, want)
		if tried {
			t.Errorf("%s was tried", name)
		}
	}
	if after := p.tree(); after != before || p.content("../outside/x") != "CANARY" {
		t.Errorf("something changed: %s", after)
	}
}

func TestReplace(t *testing.T) {
	p := newPlace(t)
	syscall.Umask(syscall.Umask(0o022))
	p.file("a.sh", "old")
	p.must(os.Chmod(p.abs("a.sh"), 0o751))
	p.file("dir/b", "old")
	p.link("dir", "to-dir")
	p.link(p.outside, ".regie-test.tmp") // somebody's trap where the temporary file will be
	p.file("crashed/.regie-test.tmp", "half")
	p.file("crashed/c", "old")
	p.must(os.Link(p.abs("dir/b"), p.abs("../outside/hard")))
	for name, mode := range map[string]os.FileMode{"a.sh": 0o751, "to-dir/b": 0o644, "new/deep/er": 0, "crashed/c": 0o644, "new2": 0} {
		if tried, err := p.write(name, "new of "+name); err != nil || !tried {
			t.Errorf("%s: %v", name, err)
			continue
		}
		info, err := os.Lstat(p.abs(name))
		p.must(err)
		if p.content(name) != "new of "+name || mode != 0 && info.Mode() != mode || info.Mode()&0o400 == 0 || info.Mode()&0o111 != 0 && mode == 0 {
			t.Errorf("%s is %s: %q", name, info.Mode(), p.content(name))
		}
	}
	if got := p.content("../outside/hard"); got != "old" {
		t.Errorf("the other name of a hard link holds %q", got)
	}
	entries, err := os.ReadDir(p.outside)
	p.must(err)
	if tree := p.tree(); strings.Contains(tree, ".tmp") || len(entries) != 1 {
		t.Errorf("something stayed behind: %s", tree)
	}
}

func TestReplaceKeepsTheOwner(t *testing.T) {
	p := newPlace(t)
	p.file("a", "old")
	want := os.Geteuid()
	if want == 0 {
		want = 12345
		p.must(os.Chown(p.abs("a"), want, want))
	}
	_, err := p.write("a", "new")
	p.must(err)
	info, err := os.Stat(p.abs("a"))
	p.must(err)
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != want {
		t.Errorf("the owner is %+v, not %d", info.Sys(), want)
	}
}

// TestCreateGivesAway: what root makes in a workspace of somebody else is that person's,
// directories too.
func TestCreateGivesAway(t *testing.T) {
	p := newPlace(t)
	p.file("theirs/a", "old")
	want := os.Geteuid()
	if want == 0 {
		want = 12345
		p.must(os.Chown(p.abs("theirs"), want, want))
	}
	_, err := p.write("theirs/new/deep/b", "new")
	p.must(err)
	for _, name := range []string{"theirs/new", "theirs/new/deep", "theirs/new/deep/b"} {
		info, err := os.Lstat(p.abs(name))
		p.must(err)
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != want || int(stat.Gid) != want && os.Geteuid() == 0 {
			t.Errorf("the owner of %s is %+v, not %d", name, info.Sys(), want)
		}
	}
}

// What happens between Load and Replace is never lost, and never half mixed with the change.
func TestReplaceNoticesChanges(t *testing.T) {
	for name, meddle := range map[string]func(p *place){
		"content":     func(p *place) { p.file("dir/a", "other") },
		"same length": func(p *place) { p.file("dir/a", "OLD") },
		"longer":      func(p *place) { p.file("dir/a", strings.Repeat("x", 100)) },
		"gone":        func(p *place) { p.must(os.Remove(p.abs("dir/a"))) },
		"a link":      func(p *place) { p.must(os.Remove(p.abs("dir/a"))); p.link("../outside/x", "dir/a") },
		"a directory": func(p *place) { p.must(os.Remove(p.abs("dir/a"))); p.must(os.Mkdir(p.abs("dir/a"), 0o755)) },
		"permissions": func(p *place) { p.must(os.Chmod(p.abs("dir/a"), 0o600)) },
		"frozen":      func(p *place) { p.must(os.Chmod(p.abs("dir/a"), 0o444)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.file("dir/a", "old")
			p.file("../outside/x", "CANARY")
			before, err := p.root.Load("dir/a", 1<<20)
			p.must(err)
			meddle(p)
			was := p.tree()
			tried, err := p.root.Replace(workspace.Change{Before: before, Data: []byte("new"), Tag: "test"})
			wantCode(t, name, err, regie.CodeFileChanged)
			if tried || p.tree() != was || p.content("../outside/x") != "CANARY" {
				t.Errorf("tried: %v; now %s", tried, p.tree())
			}
		})
	}
}

func TestCreateNeverReplaces(t *testing.T) {
	for name, meddle := range map[string]func(p *place){
		"a file":        func(p *place) { p.file("new/a", "theirs") },
		"an empty file": func(p *place) { p.file("new/a", "") },
		"a link":        func(p *place) { p.link("../../outside/x", "new/a") },
		"a directory":   func(p *place) { p.must(os.MkdirAll(p.abs("new/a"), 0o755)) },
		"a FIFO":        func(p *place) { p.must(os.Mkdir(p.abs("new"), 0o755)); p.fifo("new/a") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			before, err := p.root.Load("new/a", 1<<20)
			p.must(err)
			meddle(p)
			was, err := os.Lstat(p.abs("new/a"))
			p.must(err)
			tried, err := p.root.Replace(workspace.Change{Before: before, Data: []byte("mine"), Tag: "test"})
			if err == nil || tried {
				t.Fatalf("it was replaced: %v", err)
			}
			is, err := os.Lstat(p.abs("new/a"))
			p.must(err)
			entries, err := os.ReadDir(p.abs("new"))
			p.must(err)
			if !os.SameFile(was, is) || is.Size() != was.Size() || len(entries) != 1 {
				t.Errorf("now there is %v beside %d others", is, len(entries)-1)
			}
		})
	}
}

func TestReplaceUndoesDirectories(t *testing.T) {
	p := newPlace(t)
	p.file("there/x", "")
	before, err := p.root.Load("there/new/deep/a", 1<<20)
	p.must(err)
	missing, err := p.root.Missing(before.Path)
	p.must(err)
	if got := fmt.Sprint(missing); got != "[there/new there/new/deep]" {
		t.Errorf("missing are %s", got)
	}
	// The name of the temporary file is taken by something that cannot be removed.
	p.file("there/new/deep/.regie-test.tmp/x", "")
	_, err = p.root.Replace(workspace.Change{Before: before, Data: []byte("mine"), Tag: "test"})
	if err == nil {
		t.Error("it was written over a directory")
	}
	p.must(os.RemoveAll(p.abs("there/new")))
	// The directory's place is taken by a file.
	p.file("there/new", "theirs")
	_, err = p.root.Replace(workspace.Change{Before: before, Data: []byte("mine"), Tag: "test"})
	wantCode(t, "a file in the way", err, regie.CodeNotADirectory)
	// Directories that were made in vain are gone again: the file's name is too long together with
	// nothing else.
	before.Path = "fresh/one/" + strings.Repeat("a", 300)
	_, err = p.root.Replace(workspace.Change{Before: before, Data: []byte("mine"), Tag: "test"})
	wantCode(t, "a name that is too long", err, regie.CodePathInvalid)
	if tree := p.tree(); strings.Contains(tree, "fresh") || strings.Contains(tree, ".tmp") {
		t.Errorf("something stayed behind: %s", tree)
	}
}

func TestClear(t *testing.T) {
	p := newPlace(t)
	p.file("dir/.regie-test.tmp", "half")
	p.file("dir/.regie-other.tmp", "another call's")
	p.must(p.root.Clear("dir/a", "test"))
	p.must(p.root.Clear("dir/a", "test"))
	p.must(p.root.Clear("none/a", "test"))
	if tree := p.tree(); strings.Contains(tree, "-test") || !strings.Contains(tree, "-other") {
		t.Errorf("now %s", tree)
	}
}

// The tests below need limits that hold for a whole process: they run in one of their own.
const childVariable = "REGIE_WORKSPACE_CHILD"

var children = map[string]func(p *place) error{
	// The system refuses in the middle of the writing, as it does on a full disk.
	"full": func(p *place) error {
		signal.Ignore(syscall.SIGXFSZ)
		p.must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: 4096}))
		tried, err := p.write("deep/er/a", strings.Repeat("x", 10_000))
		if tried || regie.CodeOf(err) != regie.CodeFileTooLarge {
			return fmt.Errorf("new: %v, %w", tried, err)
		}
		if tried, err = p.write("old", strings.Repeat("x", 10_000)); tried || regie.CodeOf(err) != regie.CodeFileTooLarge {
			return fmt.Errorf("old: %v, %w", tried, err)
		}
		return nil
	},
	// Whoever runs this, from here on it is somebody without rights in the directory.
	"denied": func(p *place) error {
		p.file("secretive", "x")
		p.must(os.Chmod(p.abs("secretive"), 0))
		p.must(os.Chmod(p.dir, 0o555))
		if os.Geteuid() == 0 {
			p.must(syscall.Setgid(65534))
			p.must(syscall.Setuid(65534))
		}
		for _, name := range []string{"old", "new", "new/deep"} {
			if tried, err := p.write(name, "mine"); tried || regie.CodeOf(err) != regie.CodeNoPermission {
				return fmt.Errorf("%s: %v, %w", name, tried, err)
			}
		}
		if _, err := p.read("secretive"); regie.CodeOf(err) != regie.CodeNoPermission {
			return fmt.Errorf("reading: %w", err)
		}
		return nil
	},
}

func TestInAnotherProcess(t *testing.T) {
	for name := range children {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.file("old", "old")
			t.Cleanup(func() { _ = os.Chmod(p.dir, 0o755) })
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.count=1")
			child.Env = append(os.Environ(), childVariable+"="+name+"="+p.dir)
			if out, err := child.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			p.must(os.Chmod(p.dir, 0o755))
			_ = os.Remove(p.abs("secretive"))
			if tree := p.tree(); tree != "\n/old=old" {
				t.Errorf("something is half done: %s", tree)
			}
		})
	}
}

// TestChild is the other process. In the process of the tests it does nothing.
func TestChild(t *testing.T) {
	name, dir, ok := strings.Cut(os.Getenv(childVariable), "=")
	if !ok {
		return
	}
	root, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := children[name](&place{t: t, dir: dir, root: root}); err != nil {
		t.Fatal(err)
	}
}
