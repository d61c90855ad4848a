package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGuard_FIFO puts a FIFO where git would look: the guard does not wait at it, and takes away
// what else was planted.
func TestGuard_FIFO(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		r := b.sh(`mkdir -p d x e && mkfifo d/.git e/.regie && git init -q x &&
			printf '#!/bin/sh\necho pwned\n' > x/.git/hooks/pre-commit && chmod +x x/.git/hooks/pre-commit && mkfifo x/.git/commondir`)
		if r.err != nil || len(r.Removed) == 0 {
			t.Errorf("got %+v, %v", r.Result, r.err)
		}
		for _, name := range []string{"d/.git", "e/.regie", "x/.git/hooks/pre-commit", "x/.git/commondir"} {
			if _, err := os.Lstat(filepath.Join(b.root, name)); err == nil {
				t.Errorf("%s is still there", name)
			}
		}
	})
}

// TestGuard_FullBudget fills what the guard can keep with files in repositories that a first
// command makes: a change of the configuration by a second one is still seen.
func TestGuard_FullBudget(t *testing.T) {
	everyTier(t, func(t *testing.T, one *box) {
		t.Helper()
		b := &gitBox{box: one, base: filepath.Join(one.root, "..", "person")}
		b.canary = filepath.Join(b.base, "canary")
		b.person()
		b.mustGit(b.root, "init", "-q")
		b.mustGit(b.root, "config", "user.signingKey", strings.Repeat("x", 200))
		before, err := os.ReadFile(filepath.Join(b.root, ".git", "config"))
		if err != nil {
			t.Fatal(err)
		}
		b.sh(`size=$((32 << 20)); while [ $size -ge 64 ]; do d=a$size/.git; mkdir -p $d/objects $d/refs $d/info
echo 'ref: refs/heads/main' > $d/HEAD; truncate -s $size $d/info/exclude; size=$((size / 2)); done`)
		r := b.sh(`c=.git/config; cp -p $c old
{ printf '[core]\n\tfsmonitor = "echo ran >> ` + b.canary + `; false"\n#'; head -c 4096 /dev/zero | tr '\0' x; } | head -c $(stat -c %s $c) > new
cat new > $c; touch -r old $c; true`)
		t.Logf("exit %d, %v, taken back %v: %s", r.Exit, r.err, r.Removed, r.text())
		b.mustGit(b.root, "status")
		if ran := b.ran(); len(ran) > 0 {
			t.Errorf("git ran %q", ran)
		}
		if after, err := os.ReadFile(filepath.Join(b.root, ".git", "config")); err != nil || string(after) != string(before) {
			t.Errorf("%v, the configuration is now: %s", err, after)
		}
	})
}
