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
	for _, step := range []string{"# A scratch copy", "# It searches by itself"} {
		s.expect(step)
		s.expect("[Enter goes on, q leaves]")
		s.enter("")
	}
	s.expect("+notes/boiler.md:3:")
	s.expect("[l] later >")
	s.enter("y")
	s.expect("Approved once, written once.")
	s.expect("[Enter goes on, q leaves]")
	s.enter("")
	s.expect("kill -9")
	s.expect("[Enter goes on, q leaves]")
	s.enter("")
	s.expect("every write happened once.")
	s.expect("[Enter goes on, q leaves]")
	s.enter("")
	s.expect("Undo this? [y/N]")
	s.enter("y")
	s.expect("byte for byte")
	s.expect("[Enter goes on, q leaves]")
	s.enter("")
	s.expect("chain verified")
	s.expect("That was real")
	s.ends(exitDone)
	check()
}

// TestDemoRefused: who says no sees that nothing happened, and who has had enough leaves; in
// French.
func TestDemoRefused(t *testing.T) {
	t.Parallel()
	dir, env, check := scratch(t)
	s := terminal(t, dir, append(env, "REGIE_LANG=fr"), "demo")
	for range 2 {
		s.expect("[Entrée continue, q quitte]")
		s.enter("")
	}
	s.expect("+notes/boiler.md:3:")
	s.expect("[l] plus tard >")
	s.enter("n")
	s.expect("Vous ne l'avez pas permis : rien n'a été écrit.")
	s.expect("[Entrée continue, q quitte]")
	s.enter("")
	s.expect("kill -9")
	s.expect("[Entrée continue, q quitte]")
	s.enter("q")
	s.ends(exitDone)
	check()
}

// TestDemoInterrupted: Ctrl-C ends it wherever it stands, and nothing is left.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	dir, env, check := scratch(t)
	s := terminal(t, dir, env, "demo")
	s.expect("[Enter goes on, q leaves]")
	s.press("\x03")
	s.ends(exitInterrupted)
	check()

	s = terminal(t, dir, env, "demo")
	for range 2 {
		s.expect("[Enter goes on, q leaves]")
		s.enter("")
	}
	s.expect("[l] later >")
	s.press("\x03")
	<-s.done
	_ = s.cmd.Wait()
	check()
}

// TestDemoProviderAsks: where a file is in the way the person is asked, and their answer is what is
// done.
func TestDemoProviderAsks(t *testing.T) {
	t.Parallel()
	dir, env, _ := scratch(t)
	budget := filepath.Join(dir, "budget.md")
	if err := os.WriteFile(budget, []byte("Food: 2025\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := terminal(t, dir, append(env, "REGIE_DATA_DIR="+filepath.Join(filepath.Dir(dir), "data")), "chat", "--provider", "demo")
	s.expect("> ")
	s.enter(`write "Food: 2026" to budget.md`)
	s.expect("budget.md exists already. What shall I do?")
	s.expect("2  add it at the end")
	s.enter("2")
	s.expect("+Food: 2026")
	s.expect("[l] later >")
	s.enter("y")
	s.expect("Done: budget.md is written.")
	s.expect("> ")
	s.enter("delete it")
	s.expect("delete budget.md")
	s.expect("[l] later >")
	s.enter("n: it is the only one")
	s.expect("you said no: “it is the only one”")
	s.expect("> ")
	s.enter("/exit")
	s.ends(exitDone)
	if text, err := os.ReadFile(budget); err != nil || string(text) != "Food: 2025\nFood: 2026\n" {
		t.Errorf("it holds %q (%v)", text, err)
	}
}
