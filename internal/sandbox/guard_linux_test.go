package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gitBox is a workspace with a repository of every kind, in which a person works with git.
type gitBox struct {
	*box
	base, canary string
}

// newGitBox makes the repositories: the workspace's own, a submodule, a linked work tree, a nested
// one, a bare one.
func newGitBox(t *testing.T, tier Tier) *gitBox {
	t.Helper()
	b := &gitBox{box: newBox(t, tier)}
	b.base = filepath.Join(b.root, "..", "person")
	b.canary = filepath.Join(b.base, "canary")
	b.person()
	for _, name := range []string{"upstream", "module"} {
		b.mustGit(b.base, "init", "-q", name)
		b.mustGit(filepath.Join(b.base, name), "commit", "-q", "--allow-empty", "-m", "one")
	}
	if err := os.RemoveAll(filepath.Join(b.root, ".git")); err != nil {
		t.Fatal(err)
	}
	b.repositories()
	return b
}

// person has a home with settings of git.
func (b *gitBox) person() {
	t := b.t
	t.Helper()
	home := filepath.Join(b.base, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("GIT_TERMINAL_PROMPT", "0")
	for key, value := range map[string]string{
		"user.name": "A", "user.email": "a@example.com", "init.defaultBranch": "main", "protocol.file.allow": "always", "gc.auto": "0",
		"diff.tool": "person", "difftool.person.cmd": "true", "merge.tool": "person", "mergetool.person.cmd": "true",
	} {
		b.mustGit(b.base, "config", "--global", key, value)
	}
}

// repositories makes one of every kind.
func (b *gitBox) repositories() {
	b.t.Helper()
	b.file("README", "one\n")
	b.file(".gitignore", "nested\nbare.git\nwt\n")
	b.file(".gitshared", "[color]\n\tui = false\n")
	b.mustGit(b.root, "init", "-q")
	b.mustGit(b.root, "config", "include.path", "../.gitshared")
	b.mustGit(b.root, "config", "extensions.worktreeConfig", "true")
	b.mustGit(b.root, "remote", "add", "origin", filepath.Join(b.base, "upstream"))
	b.mustGit(b.root, "submodule", "--quiet", "add", filepath.Join(b.base, "module"), "lib")
	b.mustGit(b.root, "add", ".")
	b.mustGit(b.root, "commit", "-q", "-m", "one")
	b.mustGit(b.root, "worktree", "add", "-q", "wt")
	b.mustGit(b.root, "init", "-q", "nested")
	b.file("nested/file", "one\n")
	b.mustGit(filepath.Join(b.root, "nested"), "add", ".")
	b.mustGit(filepath.Join(b.root, "nested"), "commit", "-q", "-m", "one")
	b.mustGit(b.root, "init", "-q", "--bare", "bare.git")
	b.mustGit(b.root, "push", "-q", "bare.git", "main")
}

// outside runs a person's git, whose failures are no matter.
func (b *gitBox) outside(dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second) // a program that was planted may never answer git
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_EDITOR=:", "GIT_SEQUENCE_EDITOR=:")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (b *gitBox) mustGit(dir string, args ...string) {
	b.t.Helper()
	if out, err := b.outside(dir, args...); err != nil {
		b.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// work is what a person does with git in a directory.
func (b *gitBox) work(dir string) {
	at := filepath.Join(b.root, dir)
	_ = os.WriteFile(filepath.Join(at, "person"), []byte(dir), 0o644) // there may be no work tree
	for _, line := range []string{
		"status", "diff", "add person", "diff --cached", "commit -m person", "log -p -1 --show-signature", "log --oneline --graph", "show --ext-diff HEAD", "switch -c topic", "commit --amend --allow-empty -m again",
		"checkout -f main", "merge --no-ff -m merged topic", "rebase --continue", "rebase HEAD~1", "rebase -f HEAD~1", "stash", "stash pop", "cherry-pick topic", "am --show-current-patch", "fetch origin", "fetch ssh://127.0.0.1:1/x", "fetch git://127.0.0.1:1/x",
		"fetch https://127.0.0.1:1/x", "push origin HEAD:refs/heads/new", "pull --no-rebase origin main", "submodule update --init", "submodule foreach git status", "submodule status", "worktree list", "tag -s -m x signed", "verify-commit HEAD",
		"archive HEAD", "archive --format=tgz HEAD", "difftool -y HEAD~1", "mergetool -y", "grep one", "blame README", "gc", "repack -d", "reset --hard", "clean -n", "ls-files -o", "bundle create ../person.bundle HEAD", "z", "lfs", "describe --dirty", "notes list",
		"for-each-ref", "ls-remote origin", "remote update", "interpret-trailers --trailer x=y README", "help z", "web--browse x", "send-email --dry-run HEAD~1",
	} {
		if _, _ = b.outside(at, strings.Fields(line)...); len(b.ran()) > 0 {
			return
		}
	}
}

// ran are the programs that git ran for the person.
func (b *gitBox) ran() []string {
	data, err := os.ReadFile(b.canary)
	if err != nil {
		return nil
	}
	names := strings.Fields(string(data))
	slices.Sort(names)
	return slices.Compact(names)
}

// programKeys are variables of git's configuration that name a program, and those that have git run
// it. %s is the program.
var programKeys = []string{
	"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy", "core.alternateRefsCommand", "sequence.editor", "diff.external", "diff.x.command",
	"diff.x.textconv", "filter.x.clean", "filter.x.smudge", "filter.x.process", "merge.x.driver", "difftool.x.cmd", "difftool.x.path", "mergetool.x.cmd", "mergetool.x.path", "interactive.diffFilter", "credential.helper",
	"credential.https://127.0.0.1:1.helper", "gpg.program", "gpg.ssh.program", "gpg.x509.program", "gpg.openpgp.program", "gpg.ssh.defaultKeyCommand", "pager.status", "pager.log", "pager.diff", "trailer.x.command", "trailer.x.cmd",
	"remote.origin.uploadpack", "remote.origin.receivepack", "remote.origin.vcs", "uploadpack.packObjectsHook", "tar.tgz.command", "man.x.cmd", "man.x.path", "browser.x.cmd", "browser.x.path", "hook.x.command", "guitool.x.cmd",
	"sendemail.sendmailCmd", "sendemail.toCmd", "sendemail.ccCmd", "sendemail.headerCmd", "sendemail.smtpServer",
}

// enablers are variables that have git run what the others name, or that lead to programs.
const enablers = `[core]
	hooksPath = %[1]s/hooks.evil
[commit]
	gpgSign = true
[alias]
	z = !%[1]s/evil.sh alias
	lfs = !%[1]s/evil.sh alias
[submodule "lib"]
	update = !%[1]s/evil.sh submodule
	active = true
[diff]
	tool = x
[merge]
	tool = x
[protocol "ext"]
	allow = always
[hook "x"]
	event = pre-commit
[include]
	path = %[1]s/evil.more
[includeIf "gitdir:/"]
	path = %[1]s/evil.more
[trailer "x"]
	ifExists = add
[init]
	templateDir = %[1]s/evil.template
[url "ext::%[1]s/evil.sh url "]
	insteadOf = git://
[uploadpack]
	allowAnySHA1InWant = true
`

// evilConfig is configuration that names the program for everything.
func evilConfig(root string) string {
	var out strings.Builder
	fmt.Fprintf(&out, enablers, root)
	for _, key := range programKeys {
		first, rest, _ := strings.Cut(key, ".")
		if i := strings.LastIndexByte(rest, '.'); i >= 0 {
			fmt.Fprintf(&out, "[%s \"%s\"]\n\t%s = %s/evil.sh %s\n", first, rest[:i], rest[i+1:], root, key)
		} else {
			fmt.Fprintf(&out, "[%s]\n\t%s = %s/evil.sh %s\n", first, rest, root, key)
		}
	}
	return out.String()
}

// allHooks are those that git knows.
var allHooks = []string{
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc",
	"pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate", "update",
}

// plant is a script that writes that configuration to some files, and every hook to some
// directories.
func (b *gitBox) plant(configs, hooks []string) string {
	var out strings.Builder
	out.WriteString("cd " + b.root + "\ncat > evil.sh <<'END'\n#!/bin/sh\necho \"${1:-hook}\" >> " + b.canary + "\nexit 0\nEND\nchmod +x evil.sh\n")
	out.WriteString("echo '* filter=x diff=x merge=x' | tee .gitattributes nested/.gitattributes lib/.gitattributes wt/.gitattributes > /dev/null\n")
	out.WriteString("cat > evil.config <<'END'\n" + evilConfig(b.root) + "END\n")
	for _, dir := range append([]string{"hooks.evil", "evil.template/hooks"}, hooks...) {
		out.WriteString("mkdir -p " + dir + "\nfor h in " + strings.Join(allHooks, " ") + "; do rm -f " + dir + "/$h; printf '#!/bin/sh\\n" + b.root + "/evil.sh hook:%s\\n' $h > " + dir + "/$h; chmod +x " + dir + "/$h; done\n")
	}
	for _, name := range configs {
		out.WriteString("cat evil.config >> " + name + " || { cat " + name + " evil.config > c.new; mv -f c.new " + name + "; }\n")
	}
	return "(" + out.String() + ") 2>/dev/null\ntrue\n"
}

// gitPlaces are the places of a repository that git runs or believes, by the kind of the
// repository, and where a person works then.
var gitPlaces = []struct {
	name           string
	configs, hooks []string
	dir            string
}{
	{"root", []string{".git/config", ".git/config.worktree"}, []string{".git/hooks"}, "."},
	{"submodule store", []string{".git/modules/lib/config", ".git/modules/lib/config.worktree"}, []string{".git/modules/lib/hooks"}, "lib"},
	{"linked work tree", []string{".git/worktrees/wt/config.worktree", ".git/worktrees/wt/config"}, []string{".git/worktrees/wt/hooks"}, "wt"},
	{"nested", []string{"nested/.git/config", "nested/.git/config.worktree"}, []string{"nested/.git/hooks"}, "nested"},
	{"bare", []string{"bare.git/config", "bare.git/config.worktree"}, []string{"bare.git/hooks"}, "bare.git"},
	{"included file", []string{".gitshared"}, nil, "."},
}

// TestGitRunsNothing has a command plant every program that git runs by itself, in every kind of
// repository: none runs afterwards.
func TestGitRunsNothing(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock, None} {
		for _, place := range gitPlaces {
			t.Run(string(tier)+" "+place.name, func(t *testing.T) {
				b := newGitBox(t, tier)
				b.sh(b.plant(place.configs, place.hooks))
				b.work(place.dir)
				b.work(".")
				if ran := b.ran(); len(ran) > 0 {
					t.Errorf("git ran %q", ran)
				}
			})
		}
	}
}

// TestGitRunsWhatIsPlanted shows that the attack would work: outside of a sandbox the same script
// has git run what it plants.
func TestGitRunsWhatIsPlanted(t *testing.T) {
	for _, place := range gitPlaces {
		t.Run(place.name, func(t *testing.T) {
			b := newGitBox(t, None)
			cmd := exec.CommandContext(t.Context(), "sh", "-c", b.plant(place.configs, place.hooks))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			b.work(place.dir)
			if len(b.ran()) == 0 {
				t.Error("nothing ran")
			}
			t.Logf("%q", b.ran())
		})
	}
}

// TestSubmoduleStore is an attack that was seen: a store made by hand, a gitlink, and a person who
// has git fetch the submodule.
func TestSubmoduleStore(t *testing.T) {
	everyTier(t, func(t *testing.T, one *box) {
		t.Helper()
		b := &gitBox{box: one}
		b.base = filepath.Join(b.root, "..", "person")
		b.canary = filepath.Join(b.base, "canary")
		b.person()
		b.mustGit(b.root, "init", "-q")
		b.mustGit(b.root, "commit", "-q", "--allow-empty", "-m", "one")
		r := b.sh(`m=.git/modules/x; mkdir -p $m/hooks $m/objects $m/refs
cp -r .git/objects/. $m/objects/
git rev-parse HEAD > $m/HEAD
printf '[core]\n\tbare = false\n\tworktree = ../../../x\n\tfsmonitor = "echo fsmonitor >> ` + b.canary + `; false"\n' > $m/config
printf '#!/bin/sh\necho post-checkout >> ` + b.canary + `\n' > $m/hooks/post-checkout
chmod +x $m/hooks/post-checkout
printf '[submodule "x"]\n\tpath = x\n\turl = ./x\n' >> .gitmodules
git add .gitmodules && git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),x; true`)
		for _, line := range []string{"submodule update --init", "diff", "status"} {
			out, err := b.outside(b.root, strings.Fields(line)...)
			t.Logf("git %s: %v %s", line, err, out)
		}
		if ran := b.ran(); len(ran) > 0 {
			t.Errorf("git ran %q", ran)
		}
		if !slices.ContainsFunc(r.Removed, func(m Moved) bool { return strings.HasPrefix(m.From, ".git/modules") }) {
			t.Errorf("the result does not name the store: %v", r.Removed)
		}
	})
}
