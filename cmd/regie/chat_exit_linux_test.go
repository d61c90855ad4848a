package main

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestChatExits sends two messages through a pipe, the first of which fails: the second one's
// success hides nothing.
func TestChatExits(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			http.Error(w, `{"error":{"message":"no such thing"}}`, http.StatusBadRequest)
			return
		}
		reply("Done.")(w, r)
	})
	c := exec.CommandContext(t.Context(), "regie", "chat")
	c.Dir = filepath.Join(s.dir, "work")
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "REGIE_LANG=en"}, s.env...)
	c.Stdin = strings.NewReader("the first\nthe second\n")
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitError {
		t.Errorf("it ends with %v, want the exit code %d", err, exitError)
	}
	for _, want := range []string{"Done.", "the run ended: "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
}
