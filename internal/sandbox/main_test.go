package sandbox

import (
	"os"
	"syscall"
	"testing"
)

// testPrograms are what this program does for a test where it is started under one of these names.
var testPrograms = map[string]func(){}

func addTestProgram(name string, run func()) bool {
	testPrograms[name] = run
	return true
}

// goCacheMade is a directory to remove at the end.
var goCacheMade string

// TestMain lets the test's own program be the helper that commands run under.
func TestMain(m *testing.M) {
	if code, ours := Stage(os.Args); ours {
		syscall.Exit(code) // the race detector would sleep a second in os.Exit
	}
	if run := testPrograms[os.Args[0]]; run != nil {
		run()
		syscall.Exit(0)
	}
	code := m.Run()
	if goCacheMade != "" {
		_ = os.RemoveAll(goCacheMade)
	}
	os.Exit(code)
}
