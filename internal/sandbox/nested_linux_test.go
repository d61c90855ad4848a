package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func (b *box) file(name, text string) {
	b.t.Helper()
	at := filepath.Join(b.root, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// state is what lies in some places, with their permissions.
func (b *box) state(names ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "sh", "-c", `for n; do find "$n" -printf '%p %y %m %l\n' -type f -exec cat {} +; done | sort`, "sh")
	cmd.Args, cmd.Dir = append(cmd.Args, names...), b.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// untouched runs attacks: each must fail, or be taken back and named.
func (b *box) untouched(scripts []string, names ...string) {
	b.t.Helper()
	before := b.state(names...)
	for _, script := range scripts {
		r := b.sh(script)
		for _, m := range r.Removed {
			if m.Err != nil {
				b.t.Errorf("%s: %s: %v", script, m.From, m.Err)
			}
			if m.To != "" {
				if err := os.RemoveAll(filepath.Join(b.root, m.To)); err != nil {
					b.t.Fatal(err)
				}
			}
		}
		if r.Exit == 0 && len(r.Removed) == 0 {
			b.t.Errorf("%s succeeded, and the result names nothing", script)
		}
		if after := b.state(names...); after != before {
			b.t.Fatalf("%s: it was\n%s\nand is\n%s", script, before, after)
		}
	}
}

// TestNested attacks repositories below the workspace's own, those too that have another name.
func TestNested(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		t.Run(string(tier), func(t *testing.T) { attackNested(t, newBox(t, tier)) })
	}
}

func attackNested(t *testing.T, b *box) {
	t.Helper()
	for name, text := range map[string]string{
		"lib/.git/config": "kept\n", "lib/.git/hooks/x.sample": "", "lib/.git/HEAD": "ref\n", "lib/src/file": "", "deep/er/.git": "gitdir: ../../lib/.git\n", "other/.regie/regie.yaml": "{}\n",
		"store/config": "kept\n", "store/hooks/sample": "", "away/.git": "gitdir: ../store\n", "deep/tree/file": "",
	} {
		b.file(name, text)
	}
	if err := os.Symlink("../store", filepath.Join(b.root, "other", ".git")); err != nil {
		t.Fatal(err)
	}
	b.untouched([]string{
		"echo x > lib/.git/hooks/pre-commit", "echo x >> lib/.git/config", "rm lib/.git/config", "echo x > deep/er/.git", "rm deep/er/.git", "echo x >> other/.regie/regie.yaml", "ln -sfn /tmp other/.git",
		"mkdir other/.regie/skills", "echo '*' >> .git/info/exclude", "echo x > store/hooks/pre-commit", "echo x >> store/config", "rm -r store/hooks", "chmod 777 lib/.git/hooks && echo x > lib/.git/hooks/a; chmod 755 lib/.git/hooks",
	}, "lib/.git", "deep/er", "other", ".git", "store")
	if r := b.sh("cat lib/.git/config store/config deep/er/.git other/.regie/regie.yaml"); r.Exit != 0 {
		t.Errorf("they cannot be read: %s", r.text())
	}
	if r := b.sh("echo x > lib/src/file && echo y > lib/src/new && mkdir -p deep/tree/a && mv deep/tree/file deep/tree/a/ && echo z > sub/new"); r.Exit != 0 {
		t.Errorf("work beside them failed: %s", r.text())
	}
	if r := b.sh("echo x > lib/file && echo y > lib/.git/index && echo z > deep/er/file && echo x > top"); r.Exit != 0 || len(r.Removed) > 0 {
		t.Errorf("work beside them failed: %s, %v", r.text(), r.Removed)
	}
	if r := b.sh("mv lib lib2"); r.Exit != 0 || len(r.Removed) > 0 {
		t.Errorf("a repository that moved as a whole: %v", r.Removed)
	}
	r := b.sh("mkdir -p sub/new2/.git sub/b/.regie; printf '[core]\\nfsmonitor=id\\n' > sub/new2/.git/config")
	slices.SortFunc(r.Removed, func(a, b Moved) int { return strings.Compare(a.From, b.From) })
	if !slices.Equal(r.Removed, []Moved{{From: "sub/b/.regie", To: "sub/b/regie.made-by-command-1"}, {From: "sub/new2/.git/config", To: "sub/new2/.git/config.made-by-command-1"}}) {
		t.Errorf("moved: %v", r.Removed)
	}
	if len(r.Closed) > 0 || len(r.Unseen) > 0 {
		t.Errorf("closed %v, unseen %v", r.Closed, r.Unseen)
	}
}

// TestBare attacks repositories that are not called .git: git takes a directory for one by what
// lies in it.
func TestBare(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		t.Run(string(tier), func(t *testing.T) { attackBare(t, newBox(t, tier)) })
	}
}

func attackBare(t *testing.T, b *box) {
	t.Helper()
	for name, text := range map[string]string{
		"x.git/HEAD": "ref: refs/heads/main\n", "x.git/config": "kept\n", "x.git/hooks/update": "", "x.git/objects/o": "", "x.git/refs/r": "", "x.git/tree/file": "",
		"plain/HEAD": "ref: refs/heads/main\n", "plain/objects/o": "", "plain/refs/r": "", "link/HEAD": "ref: refs/heads/main\n", "link/commondir": "../plain\n",
		"half/HEAD": "ref: refs/heads/main\n", "half/objects/o": "", "half/config": "kept\n", "lib/.git/HEAD": "ref: refs/heads/main\n", "lib/.git/config": "kept\n", "lib/.git/hooks/h.sample": "",
		"lib/.git/objects/o": "", "lib/.git/refs/r": "",
	} {
		b.file(name, text)
	}
	b.untouched([]string{
		"echo x > x.git/hooks/post-update", "echo x >> x.git/config", "rm x.git/config", "mv x.git/hooks x.git/h; mkdir x.git/hooks; mv x.git/h/* x.git/hooks; rmdir x.git/h; echo x > x.git/hooks/y", "rm -r x.git/hooks",
		"echo x > plain/config", "mkdir plain/hooks", "echo x > link/config", "echo ../evil > link/commondir",
	}, "x.git", "plain", "link")
	if r := b.sh("cat x.git/config plain/HEAD && printf '[core]\\nfsmonitor=id\\n' >> half/config && echo y > sub/new"); r.Exit != 0 || len(r.Removed) > 0 {
		t.Errorf("work beside them failed: %s, %v", r.text(), r.Removed)
	}
	r := b.sh("echo new > x.git/H && mv x.git/H x.git/HEAD && echo z > x.git/tree/new && echo 1 > x.git/refs/heads && mv lib lib2")
	if r.Exit != 0 || len(r.Removed) > 0 {
		t.Errorf("git's own work failed: %s, %v", r.text(), r.Removed)
	}
	r = b.sh("echo ../evil > x.git/commondir; echo x > lib2/.git/config.worktree; mv lib2 lib; echo ../evil > lib/.git/commondir")
	moved(t, r.Removed, "lib/.git/commondir", "lib/.git/config.worktree", "x.git/commondir")
	moved(t, b.sh("mkdir half/refs").Removed, "half/config")
	moved(t, b.sh("mkdir -p sub/fresh/objects sub/fresh/refs; echo 'ref: refs/heads/main' > sub/fresh/HEAD; printf '[core]\\nfsmonitor=id\\n' > sub/fresh/config; mkdir -p sub/a && mv sub/fresh sub/a/moved").Removed, "sub/a/moved/config")
	moved(t, b.sh("mkdir -p sub/c/.git/objects sub/c/.git/refs sub/c/.git/hooks; echo 'ref: refs/heads/main' > sub/c/.git/HEAD; echo x > sub/c/.git/hooks/update; echo y > sub/c/.git/hooks/x.sample; echo .. > sub/c/.git/commondir").Removed,
		"sub/c/.git/commondir", "sub/c/.git/hooks/update")
}

// moved checks what was moved away.
func moved(t *testing.T, got []Moved, want ...string) {
	t.Helper()
	var names []string
	for _, m := range got {
		names = append(names, m.From)
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("moved %v, want %v", got, want)
	}
}

// TestBareTop works in a repository itself: what makes git run something stays, and the rest can be
// written.
func TestBareTop(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		t.Run(string(tier), func(t *testing.T) {
			b := newBox(t, tier)
			for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "kept\n", "objects/o": "", "refs/r": ""} {
				b.file(name, text)
			}
			b.untouched([]string{"echo x >> config", "rm config", "mv config c; cp c config; rm c; echo x >> config"}, "HEAD", "config", "objects", "refs")
			r := b.sh("mkdir hooks; echo x > hooks/update; echo .. > commondir; echo x > objects/new && echo 1 > refs/s")
			if r.Exit != 0 {
				t.Errorf("git's own work failed: %s", r.text())
			}
			for _, name := range []string{"hooks", "commondir"} {
				if _, err := os.Lstat(filepath.Join(b.root, name)); err == nil {
					t.Errorf("%s is there: %v", name, r.Removed)
				}
			}
		})
	}
}

// TestBeyond has a workspace with more than is looked through: nothing is written there, and a
// command that makes as much is told of.
func TestBeyond(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		t.Run(string(tier), func(t *testing.T) {
			b := newBox(t, tier)
			defer func(n int) { mostEntries = n }(mostEntries)
			mostEntries = 100
			for i := range 120 {
				b.file("full/d"+strings.Repeat("x", i)+"/file", "")
			}
			b.file("later/.git/config", "")
			b.file("early/file", "")
			r := b.sh("echo x > early/file && for f in full/dxx full/d later later/.git; do echo x > $f/new && echo wrote in $f; done; cat full/dxx/file")
			if r.text() != "" && strings.Contains(r.text(), "wrote in") || !slices.Contains(r.Closed, "later") || len(r.Closed) < 2 || slices.Contains(r.Closed, "early") || len(r.Unseen) > 0 {
				t.Errorf("%s: closed %v, unseen %v", r.text(), r.Closed, r.Unseen)
			}
			if data, err := os.ReadFile(filepath.Join(b.root, "early", "file")); string(data) != "x\n" {
				t.Errorf("%q, %v", data, err)
			}
			mostEntries = 1000
			r = b.sh("mkdir early/new && cd early/new && i=0; while [ $i -lt 1000 ]; do : > f$i; i=$((i+1)); done")
			if len(r.Closed) > 0 || !slices.Contains(r.Unseen, "early/new") {
				t.Errorf("%s: closed %v, unseen %v", r.text(), r.Closed, r.Unseen)
			}
		})
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// TestLinkedWorkTree has git work in a work tree whose repository lies elsewhere: it reads that,
// and writes nothing there.
func TestLinkedWorkTree(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		t.Run(string(tier), func(t *testing.T) {
			b := newBox(t, tier)
			base, err := os.MkdirTemp("/var/tmp", "regie-sandbox-") //nolint:usetesting // the test's own directory lies in /tmp, of which commands have one of their own
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(base)
			main := filepath.Join(base, "main")
			b.root = filepath.Join(base, "tree")
			git(t, base, "init", "-q", main)
			for name, text := range map[string]string{
				"main/file": "one\n", "main/secret": "canary\n", "fake/.git": "gitdir: " + base + "/bait/worktrees/x\n", "bait/HEAD": "canary\n", "bait/objects/a": "", "bait/refs/a": "",
				"bait/worktrees/x/commondir": "../..\n", "bait/worktrees/x/gitdir": b.root + "/.git\n",
			} {
				if err := errorsJoin(os.MkdirAll(filepath.Dir(filepath.Join(base, name)), 0o755), os.WriteFile(filepath.Join(base, name), []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			git(t, main, "add", "file")
			git(t, main, "commit", "-qm", "the first")
			git(t, main, "worktree", "add", "-q", b.root)
			r := b.sh("echo two > file && git log --format=%s && git diff --stat && git status --short")
			if r.Exit != 0 || !strings.Contains(r.text(), "the first") || !strings.Contains(r.text(), " M file") {
				t.Errorf("git does not work: exit %d, %s", r.Exit, r.text())
			}
			for _, script := range []string{
				"echo x > " + main + "/.git/hooks/post-commit", "echo x >> " + main + "/.git/config", "cat " + main + "/secret", "echo gitdir: " + base + "/bait > .git", "git -c user.name=A -c user.email=a@x commit -qam new",
			} {
				if r := b.sh(script); r.Exit == 0 && len(r.Removed) == 0 || strings.Contains(r.text(), "canary") {
					t.Errorf("%s: %s", script, r.text())
				}
			}
			b.root = filepath.Join(base, "fake") // a file that names a directory which does not name it
			if r := b.sh("cat " + base + "/bait/HEAD"); strings.Contains(r.text(), "canary") {
				t.Errorf("any directory can be named: %s", r.text())
			}
		})
	}
}
