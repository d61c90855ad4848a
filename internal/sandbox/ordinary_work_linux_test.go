package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ordinaryWork is what agents do all day. Each line must succeed, and nothing of it be taken back.
var ordinaryWork = []string{
	"mkdir build && echo x > build/file && echo y > top && rm top",
	"echo two >> README && git add . && git commit -q -m two",
	"git switch -q -c topic && echo three >> README && git commit -q -am three && git switch -q main",
	"echo dirty >> README && git stash -q && git stash pop -q && git checkout -q README",
	"git commit -q --allow-empty -m base && git switch -q topic && git rebase -q main && git switch -q main && git merge -q topic",
	"git switch -q -c clash HEAD~1 && echo other > README && git commit -q -am clash; git rebase main; echo solved > README && git add README && GIT_EDITOR=: git rebase --continue",
	"git tag v1 && git branch copy && git branch -D copy && git reset -q --hard && git clean -qfd && git log --oneline && git gc -q && git fsck",
	"mkdir a && mv a moved && mkdir fresh && cd fresh && git init -q . && git -c user.name=A -c user.email=a@x commit -q --allow-empty -m one && git status",
	"cd program && GOCACHE=$PWD/../.gocache go build -o ../program.out . && ../program.out",
	"npm install --no-audit --no-fund ./package/tiny-1.0.0.tgz && node -e 'require(\"tiny\")'",
}

// goCache is where the toolchain is compiled once for all tiers and users; main removes it.
var goCache = sync.OnceValue(func() string {
	if dir := os.Getenv("SANDBOX_TEST_GOCACHE"); dir != "" {
		return dir
	}
	dir, err := os.MkdirTemp("/var/tmp", "regie-gocache-")
	if err != nil {
		panic(err)
	}
	goCacheMade = dir
	return dir
})

// TestOrdinaryWork does it in each tier.
func TestOrdinaryWork(t *testing.T) {
	everyTier(t, func(t *testing.T, one *box) {
		t.Helper()
		b := &gitBox{box: one, base: filepath.Join(one.root, "..", "person")}
		b.person()
		b.config.Home = os.Getenv("HOME")
		if err := os.RemoveAll(filepath.Join(b.root, ".git")); err != nil {
			t.Fatal(err)
		}
		b.file("README", "one\n")
		b.file("program/go.mod", "module example.com/program\n\ngo 1.24\n")
		b.file("program/main.go", "package main\n\nfunc main() {}\n")
		b.file("package/package.json", `{"name":"tiny","version":"1.0.0","main":"index.js"}`)
		b.file("package/index.js", "")
		b.file("package.json", `{"name":"work","version":"1.0.0"}`)
		b.file(".gitignore", "node_modules\nprogram.out\n.gocache\n.regie\n")
		b.mustGit(b.root, "init", "-q")
		b.mustGit(b.root, "add", ".")
		b.mustGit(b.root, "commit", "-q", "-m", "one")
		pack := exec.CommandContext(t.Context(), "npm", "pack", "--silent")
		pack.Dir = filepath.Join(b.root, "package")
		if out, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("npm pack: %v: %s", err, out)
		}
		build := exec.CommandContext(t.Context(), "sh", "-c", "[ -e $GOCACHE/README ] || (cd program && go build -o /dev/null . && chmod -R a+rX $GOCACHE); cp -r $GOCACHE .gocache")
		build.Dir, build.Env = b.root, append(os.Environ(), "GOCACHE="+goCache())
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v: %s", err, out)
		}
		for _, script := range ordinaryWork {
			c := b.command("sh", "-c", script)
			c.Timeout = 5 * time.Minute
			if r := b.run(c); r.err != nil || r.Exit != 0 || len(r.Removed) > 0 {
				t.Errorf("%s: exit %d, %v, taken back %v: %s", script, r.Exit, r.err, r.Removed, r.text())
			}
		}
	})
}

// TestWorkAsNobody does the same, and the worst of the attacks, as a user without rights.
func TestWorkAsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; the tests have run as this one")
	}
	dir, err := os.MkdirTemp("/var/tmp", "regie-sandbox-") //nolint:usetesting // others must get there
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	data, err := os.ReadFile(os.Args[0])
	program := filepath.Join(dir, "sandbox.test")
	if err := errorsJoin(err, os.WriteFile(program, data, 0o755), os.Mkdir(filepath.Join(dir, "home"), 0o700),
		os.Chown(filepath.Join(dir, "home"), 65534, 65534), os.Chmod(dir, 0o755), os.Chmod(goCache(), 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=TestOrdinaryWork|TestSubmoduleStore|TestRebase|TestGuards|TestNested")
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "TMPDIR="+filepath.Join(dir, "home"), "SANDBOX_TEST_GOCACHE="+goCache())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = filepath.Join(dir, "home")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}
