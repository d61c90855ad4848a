package sandbox

import (
	"os"
	"testing"
)

// goCacheMade is a directory to remove at the end.
var goCacheMade string

// TestMain lets the test's own program be the helper that commands run under.
func TestMain(m *testing.M) {
	if code, ours := Stage(os.Args); ours {
		os.Exit(code)
	}
	code := m.Run()
	if goCacheMade != "" {
		_ = os.RemoveAll(goCacheMade)
	}
	os.Exit(code)
}
