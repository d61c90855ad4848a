package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// named is a workspace whose configuration of git names places of the workspace itself.
func named(t *testing.T, tier Tier) *box {
	t.Helper()
	b := newBox(t, tier)
	home := filepath.Join(t.TempDir(), "home")
	t.Setenv("HOME", home)
	if err := errorsJoin(os.MkdirAll(home, 0o755), os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[include]\n\tpath = "+b.root+"/mine/config\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		".git/config": "[core]\n\thooksPath = .husky/_\n\tfsmonitor = through/watch\n[include]\n\tpath = ../.gitconfig\n[includeIf \"gitdir:/x\"]\n\tpath = ../absent/config\n[filter \"x\"]\n\tclean = sh tools/clean.sh\n[alias]\n\tz = !fresh/z\n",
		".git/HEAD":   "ref: refs/heads/main\n", ".git/objects/o": "", ".git/refs/r": "", ".husky/_/h": "", ".husky/pre-commit": "kept\n", ".gitconfig": "[core]\n\tpager = less\n",
		"tools/clean.sh": "kept\n", "tools/other.sh": "", "real/watch": "kept\n", "mine/config": "kept\n", "scripts/check": "kept\n", "absent/file": "", "fresh/file": "",
		"lib/.git/config": "[core]\n\thooksPath = h\n", "lib/.git/hooks/x": "", "lib/h/pre-commit": "kept\n", "lib/src": "",
	} {
		b.file(name, text)
	}
	for name, target := range map[string]string{".git/hooks/pre-push": "../../scripts/check", "through": "real"} {
		if err := os.Symlink(target, filepath.Join(b.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// TestNamed attacks what git runs because its configuration names it: the directory of hooks,
// included files, programs.
func TestNamed(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		t.Run(string(tier), func(t *testing.T) {
			b := named(t, tier)
			b.file("sub/evil", "evil\n")
			b.untouched([]string{
				"echo x > .husky/_/pre-commit", "echo x >> .husky/_/h", "echo x >> .husky/pre-commit", "echo x > .husky/pre-push", "rm -r .husky/_", "ln -s /tmp .husky/_/pre-commit",
				"echo x >> .gitconfig", "rm .gitconfig", "ln -sf sub .gitconfig", "echo x >> tools/clean.sh", "rm tools/clean.sh", "cp sub/evil tools/e; mv tools/e tools/clean.sh || { rm tools/e; false; }",
				"echo x >> through/watch", "echo x >> real/watch", "rm real/watch", "echo x >> mine/config", "rm mine/config", "echo x >> scripts/check", "ln -f sub/evil scripts/check", "echo x >> lib/h/pre-commit", "rm -r lib/h",
				"rm through; mkdir through; echo x > through/watch",
			}, ".husky", ".gitconfig", "tools", "through", "real", "mine", "scripts", "lib", ".git")
			if r := b.sh("cat .husky/pre-commit .gitconfig tools/clean.sh through/watch mine/config scripts/check lib/h/pre-commit"); r.Exit != 0 || strings.Contains(r.text(), "evil") {
				t.Errorf("they are not what they were: %s", r.text())
			}
			// What is not there cannot be kept from being made.
			moved(t, b.sh("echo x > absent/config; mkdir fresh/z").Removed, "absent/config", "fresh/z")
			if r := b.sh("echo x > sub/new && echo x >> tools/other.sh && echo y > absent/other"); r.Exit != 0 || len(r.Removed) > 0 {
				t.Errorf("work beside them failed: %s, %v", r.text(), r.Removed)
			}
			moved(t, b.sh("rm through; mkdir sub/evil.d; echo x > sub/evil.d/watch; ln -s sub/evil.d through").Removed, "through")
			moved(t, b.sh("mv tools t2; mkdir tools; echo x > tools/clean.sh; mv lib lib2; mkdir -p lib2/src2").Removed, "lib2/.git/config", "lib2/.git/hooks/x", "tools/clean.sh")
		})
	}
}

// TestNamedByGit has git itself run in a workspace whose commands could have planted what it runs.
func TestNamedByGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git to compare with")
	}
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		t.Run(string(tier), func(t *testing.T) {
			b := newBox(t, tier)
			t.Setenv("HOME", t.TempDir())
			git(t, b.root, "init", "-q")
			git(t, b.root, "commit", "-q", "--allow-empty", "-m", "one")
			git(t, b.root, "commit", "-q", "--allow-empty", "-m", "two")
			b.file("README", "")
			b.file(".deep/x", "")
			git(t, b.root, "config", "core.hooksPath", ".deep/hooks")
			git(t, b.root, "config", "core.fsmonitor", ".deep/watch")
			git(t, b.root, "config", "include.path", "../.deep/config")
			canary := filepath.Join(b.root, "..", "canary")
			evil := "printf '#!/bin/sh\\necho ran >> " + canary + "\\n' > "
			b.sh("mkdir -p .deep/hooks .deep/h; " + evil + ".deep/hooks/post-commit; chmod +x .deep/hooks/*; " + evil + ".deep/watch; chmod +x .deep/watch; " +
				"printf '[core]\\n\\thooksPath = .deep/h\\n' > .deep/config; cp .deep/hooks/* .deep/h/; " +
				"mkdir -p .git/rebase-merge; for f in head-name onto orig-head; do git rev-parse HEAD > .git/rebase-merge/$f; done; echo 'exec echo ran >> " + canary + "' > .git/rebase-merge/git-rebase-todo; " +
				": > .git/rebase-merge/done; : > .git/rebase-merge/interactive; echo 1 > .git/rebase-merge/msgnum; echo 1 > .git/rebase-merge/end; true")
			git(t, b.root, "commit", "-q", "--allow-empty", "-m", "three")
			git(t, b.root, "status")
			cmd := exec.CommandContext(t.Context(), "git", "-c", "user.name=A", "-c", "user.email=a@example.com", "rebase", "--continue")
			cmd.Dir = b.root
			_ = cmd.Run() // there is none to go on with
			if data, err := os.ReadFile(canary); err == nil {
				t.Errorf("git ran what a command had planted: %s", data)
			}
		})
	}
}

// TestRebase attacks a rebase that waits for a person, and has a command leave one behind: its
// steps run no program that was not there before.
func TestRebase(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		b.file(".git/rebase-merge/git-rebase-todo", "pick 1\nexec make\n")
		r := b.sh("printf 'exec id\\n\\tx id\\npick 2\\nexec make\\n' > .git/rebase-merge/git-rebase-todo; echo ../x > .git/rebase-merge/strategy; echo ort > .git/rebase-merge/head-name; mkdir .git/sequencer sub/s; echo 'exec id' > .git/sequencer/todo; ln -s ../sub/s .git/rebase-apply")
		moved(t, r.Removed, ".git/rebase-apply", ".git/rebase-merge/git-rebase-todo", ".git/rebase-merge/strategy", ".git/sequencer/todo")
		for name, want := range map[string]string{"rebase-merge/git-rebase-todo": "pick 1\nexec make\n", "rebase-merge/head-name": "ort\n"} {
			if data, err := os.ReadFile(filepath.Join(b.root, ".git", name)); err != nil || string(data) != want {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
	})
}
