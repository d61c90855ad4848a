package main

import (
	"os"
	"path/filepath"
	"testing"
)

// scratch is an empty directory for temporary files, in which nothing may be left, and a home that
// nothing may touch.
func scratch(t *testing.T) (dir string, env []string, check func()) {
	t.Helper()
	base := t.TempDir()
	dir, temp := filepath.Join(base, "work"), filepath.Join(base, "temp")
	for _, name := range []string{dir, temp, filepath.Join(base, "home")} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir, []string{"TMPDIR=" + temp}, func() {
		t.Helper()
		for _, name := range []string{dir, temp, filepath.Join(base, "home")} {
			if left, err := os.ReadDir(name); err != nil || len(left) > 0 {
				t.Errorf("%s holds %v (%v)", name, left, err)
			}
		}
	}
}

// TestDemoAtATerminal: a person reads what is coming, answers what is asked, and sees it all to its
// end.
func TestDemoAtATerminal(t *testing.T) {
	t.Parallel()
	dir, env, check := scratch(t)
	s := terminal(t, dir, env, "demo")
	s.expect("# It searches by itself")
	s.expect("+notes/boiler.md:3:")
	s.expect("[l] later >")
	s.enter("y")
	s.expect("Approved once, written once.")
	s.expect("kill -9")
	s.expect("every write happened once.")
	s.expect("Undo this? [y/N]")
	s.enter("y")
	s.expect("byte for byte")
	s.expect("chain verified")
	s.expect("All of it was real")
	s.ends(exitDone)
	check()
}

// TestDemoRefused: who says no sees that nothing happened; in French.
func TestDemoRefused(t *testing.T) {
	t.Parallel()
	dir, env, check := scratch(t)
	s := terminal(t, dir, append(env, "REGIE_LANG=fr"), "demo")
	s.expect("+notes/boiler.md:3:")
	s.expect("[l] plus tard >")
	s.enter("n")
	s.expect("Vous ne l'avez pas permis : rien n'a été écrit.")
	s.expect("kill -9")
	s.expect("[o/N]")
	s.enter("n")
	s.ends(exitDone)
	check()
}

// TestDemoInterrupted: Ctrl-C ends it wherever it stands, and nothing is left.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	dir, env, check := scratch(t)
	s := terminal(t, dir, env, "demo")
	s.expect("[l] later >")
	s.press("\x03")
	<-s.done
	_ = s.cmd.Wait()
	check()
}
