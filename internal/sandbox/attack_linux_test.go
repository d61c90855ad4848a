package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestProbes attacks each tier from inside, as detection and `regie doctor` do.
func TestProbes(t *testing.T) {
	if len(attacks) < 14 {
		t.Fatalf("only %d probes", len(attacks))
	}
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		for _, network := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s network=%v", tier, network), func(t *testing.T) {
				newBox(t, tier) // skips where there is none
				s := New(Config{Tier: tier, Environ: os.Environ(), Home: os.Getenv("HOME"), Network: network})
				check := s.tryTier(t.Context(), tier)
				if check.Missing != "" || check.Err != nil {
					t.Fatalf("the tier cannot be set up: %q, %v", check.Missing, check.Err)
				}
				for _, p := range check.Probes {
					if !p.Held {
						t.Errorf("%s: %s", p.Name, p.Detail)
					}
				}
				t.Logf("%d probes", len(check.Probes))
			})
		}
	}
}

// TestProbesCanFail runs the same probes where nothing confines: most of them must get through, or
// they would show nothing.
func TestProbesCanFail(t *testing.T) {
	s := New(Config{Tier: None, Environ: os.Environ(), Home: os.Getenv("HOME")})
	newBox(t, None)
	probes, err := s.probeTier(t.Context(), None)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, p := range probes {
		got[p.Name] = !p.Held
	}
	for _, name := range []string{
		"write-outside", "read-data", "read-outside", "link-out", "hard-link-out", "dotdot-out",
		"kill", "ptrace", "other-limits", "mount", "chroot", "user-namespace", "clone-namespace", "capabilities", "setuid-file", "tiocsti", "io_uring", "unix-socket", "abstract-socket", "network", "datagrams", "clone3",
	} {
		if name == "hard-link-out" && !got[name] {
			continue // the temporary directory may lie on another file system, or the links be protected
		}
		if !got[name] {
			t.Errorf("%s did not get through where nothing confines", name)
		}
	}
	if got["environment"] {
		t.Error("the environment is not filtered without a sandbox")
	}
}

// TestOtherTiers runs detection with tools hidden: it falls to the next tier, and says what is
// missing.
func TestOtherTiers(t *testing.T) {
	newBox(t, Landlock)
	hidden := New(Config{Bwrap: "/nonexistent/bwrap", Environ: os.Environ(), Home: os.Getenv("HOME")})
	found := hidden.Find(t.Context())
	if found.Tier != Landlock || len(found.Checks) != 2 || found.Checks[0].Missing != MissingBwrap || !found.Checks[1].Works() {
		t.Errorf("without bubblewrap: %+v", found)
	}
	forced := New(Config{Bwrap: "/nonexistent/bwrap", Tier: Bubblewrap})
	if found := forced.Find(t.Context()); found.Tier != None || found.Err == nil {
		t.Errorf("a forced tier that is not there: %+v", found)
	}
	none := New(Config{Tier: None})
	if found := none.Find(t.Context()); found.Tier != None || found.Err != nil || len(found.Checks) != 0 {
		t.Errorf("none forced: %+v", found)
	}
	// A program that pretends to be bubblewrap and confines nothing is found out by the probes, or
	// not taken at all.
	fake := filepath.Join(t.TempDir(), "bwrap")
	script := "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec -a " + watchName + " /proc/self/exe\n"
	if err := os.WriteFile(fake, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(fake, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := New(Config{Bwrap: fake}).findBwrap(); got != "" {
		t.Errorf("%s can be written by everybody, and was taken", got)
	}
}

func TestUnfitWorkspaces(t *testing.T) {
	b := newBox(t, Landlock)
	for _, row := range []struct {
		name   string
		config Config
		change func() string
	}{
		{"the home directory", Config{Home: b.root}, func() string { return b.root }},
		{"above the home directory", Config{Home: filepath.Join(b.root, "sub")}, func() string { return b.root }},
		{"the top", Config{}, func() string { return "/" }},
		{"in a hidden directory", Config{Hidden: []string{b.root}}, func() string { return filepath.Join(b.root, "sub") }},
		{"a link for .git", Config{}, func() string {
			root := filepath.Join(b.root, "sub")
			if err := os.Symlink(filepath.Join(b.root, ".git"), filepath.Join(root, ".git")); err != nil {
				t.Fatal(err)
			}
			return root
		}},
	} {
		row.config.Environ = os.Environ()
		s := New(row.config)
		if found := s.For(t.Context(), row.change()); found.Tier != None || found.Why == nil {
			t.Errorf("%s: %+v", row.name, found.Tier)
		}
	}
}

// TestGuards writes what would run programs outside, and what may be written beside it.
func TestGuards(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		t.Run(string(tier), func(t *testing.T) {
			b := newBox(t, tier)
			b.untouched([]string{
				"echo x > .git/hooks/pre-commit", "echo x >> .git/config", "rm -rf .git/hooks", "mv .git/hooks .git/h", "ln -sf /x .git/config", "rm -f .git/config",
				"mkdir .regie/agents", "rm -rf .regie", "mv .regie .git/objects", "mount -o remount,rw .git/hooks", "chmod 777 .git/hooks && echo x > .git/hooks/a; chmod 755 .git/hooks",
			}, ".git/hooks", ".git/config", ".regie")
			if r := b.sh("mkdir -p sub/a/b && echo x > sub/a/b/c && mv sub/a sub/d && rm -r sub/d"); r.Exit != 0 {
				t.Errorf("work in the workspace failed: %s", r.text())
			}
		})
	}
}

// TestTraps has commands make what the next program in the workspace would believe.
func TestTraps(t *testing.T) {
	b := newBox(t, Bubblewrap)
	if r := b.sh("echo .. > .git/commondir; echo x > .git/config.worktree; echo fine > .git/index.lock"); len(r.Removed) != 2 {
		t.Errorf("moved: %v", r.Removed)
	}
	if _, err := os.Lstat(filepath.Join(b.root, ".git", "commondir")); err == nil {
		t.Error(".git/commondir is there")
	}
}

// TestTrapsInNewPlaces has commands make a repository, and settings of Regie, where there were
// none.
func TestTrapsInNewPlaces(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		t.Run(string(tier), func(t *testing.T) { trapsInNewPlaces(t, newBox(t, tier)) })
	}
}

func trapsInNewPlaces(t *testing.T, bare *box) {
	t.Helper()
	for _, name := range []string{".git", ".regie"} {
		if err := os.RemoveAll(filepath.Join(bare.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := bare.sh("mkdir -p .git .regie; printf '[core]\\nfsmonitor=id\\n' > .git/config; exec 1>&-; (sleep 60; mkdir .git) &")
	if !slices.Equal(r.Removed, []Moved{{From: ".git/config", To: ".git/config.made-by-command-1"}, {From: ".regie", To: "regie.made-by-command-1"}}) {
		t.Errorf("moved: %v", r.Removed)
	}
}

// TestHidden reads what must not be read: a data directory in the workspace, and one in a directory
// of the system.
func TestHidden(t *testing.T) {
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		t.Run(string(tier), func(t *testing.T) {
			b := newBox(t, tier)
			data := filepath.Join(b.root, "sub", "data")
			if err := os.MkdirAll(data, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(data, "regie.db"), []byte("canary"), 0o644); err != nil {
				t.Fatal(err)
			}
			b.config.Hidden = []string{data}
			b.config.Home = filepath.Join(b.root, "..", "home")
			for _, script := range []string{"cat sub/data/regie.db", "cp -r sub/data sub/copy && cat sub/copy/*", "cat sub/../sub/data/regie.db", "ln -s data sub/l; cat sub/l/regie.db", "tar cf - sub | cat", "grep -rhs canary . /proc/1/root; true"} {
				if r := b.sh(script); strings.Contains(r.text(), "canary") {
					t.Errorf("%s: %s", script, r.text())
				}
			}
		})
	}
}

// TestNoNewFileDescriptors starts a command while a descriptor without close-on-exec is open, as
// one from the person's shell would be.
func TestNoNewFileDescriptors(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		f, err := os.Open(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		if r := b.sh("for f in /proc/$$/fd/*; do echo ${f##*/}; done"); b.tier != Landlock {
			for open := range strings.FieldsSeq(r.text()) {
				if open == "0" || open == "1" || open == "2" {
					continue
				}
				if link := b.sh("readlink /proc/self/fd/" + open).text(); strings.Contains(link, "sandbox.test") {
					t.Errorf("the descriptor %s was inherited: %s", open, link)
				}
			}
		}
	})
}

// TestAsNobody runs the probes as a user without any rights, as most people run Regie.
func TestAsNobody(t *testing.T) {
	if os.Getenv("SANDBOX_TEST_PROBE") != "" {
		found := New(Config{Tier: Tier(os.Getenv("SANDBOX_TEST_PROBE")), Environ: os.Environ(), Home: "/nonexistent"}).Find(t.Context())
		_ = json.NewEncoder(os.Stdout).Encode(found.Checks)
		os.Exit(0)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; TestProbes has run as this one")
	}
	// The test's program lies where only root may go.
	dir, err := os.MkdirTemp("/var/tmp", "regie-sandbox-") //nolint:usetesting // others must get there, and the test's own directory is closed to them
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "sandbox.test")
	data, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		newBox(t, tier)
		cmd := exec.CommandContext(t.Context(), program, "-test.run=TestAsNobody")
		cmd.Env = append(os.Environ(), "SANDBOX_TEST_PROBE="+string(tier))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Dir = "/"
		out, err := cmd.Output()
		var checks []Check
		if err != nil || json.Unmarshal(out, &checks) != nil || len(checks) != 1 {
			t.Fatalf("%s: %v, %s", tier, err, out)
		}
		if !checks[0].Works() {
			t.Errorf("%s as nobody: %s", tier, out)
		}
	}
}

// TestOwner runs a command in somebody else's workspace as root: it runs as that person, who can
// write there and nowhere else.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has workspaces of others")
	}
	dir, err := os.MkdirTemp("/var/tmp", "regie-sandbox-") //nolint:usetesting // others must get there, and the test's own directory is closed to them
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	helper := os.Args[0]
	for _, tier := range []Tier{Bubblewrap, Landlock} {
		b := newBox(t, tier)
		if tier == Bubblewrap && !(identity{uid: 4321}).canReach(helper) {
			t.Logf("%s is closed to others: bubblewrap cannot show the helper to the owner", helper)
			continue
		}
		b.root = filepath.Join(dir, string(tier))
		if err := os.Mkdir(b.root, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := errorsJoin(os.Chmod(dir, 0o755), os.Chown(b.root, 4321, 4321)); err != nil {
			t.Fatal(err)
		}
		r := b.run(b.command("sh", "-c", "id -u; echo x > new; stat -c %u new; cat /etc/shadow"))
		if r.err != nil || !strings.HasPrefix(r.text(), "4321\n4321\n") || strings.Contains(r.text(), "root:") {
			t.Errorf("%s: %q, %v", tier, r.text(), r.err)
		}
	}
}

func errorsJoin(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
