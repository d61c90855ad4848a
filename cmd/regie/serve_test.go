package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestServe serves, asks the server from elsewhere with --server, and ends it as a service manager does.
func TestServe(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	data := filepath.Join(home, "data")
	if err := os.WriteFile(filepath.Join(dir, "facts.txt"), []byte("the boiler is from 1987\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "REGIE_LANG=en"}
	var said bytes.Buffer
	serve := exec.CommandContext(t.Context(), "regie", "serve", "--addr", "127.0.0.1:0", "--data-dir", data, "--provider", "demo")
	serve.Dir, serve.Env, serve.Stderr = dir, env, &said
	out, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "Regie listens on ")
	if err != nil || !ok {
		t.Fatalf("it says %q (%v) and %s", line, err, said.String())
	}
	token, err := os.ReadFile(filepath.Join(data, "api.token"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(where, token string, args ...string) (string, int) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "regie", append([]string{"--server", url}, args...)...)
		c.Dir, c.Env = where, append([]string{"REGIE_TOKEN=" + token, "REGIE_DATA_DIR=" + filepath.Join(home, "elsewhere")}, env...)
		text, _ := c.CombinedOutput() // the code says it
		return string(text), c.ProcessState.ExitCode()
	}
	secret := strings.TrimSpace(string(token))
	if text, code := ask(dir, secret, "run", "what is in facts.txt"); code != exitDone || !strings.Contains(text, "the boiler is from 1987") {
		t.Errorf("from its directory: %d, %s", code, text)
	}
	if text, code := ask(home, secret, "--workspace", dir, "run", "what is in facts.txt"); code != exitDone || !strings.Contains(text, "the boiler is from 1987") {
		t.Errorf("from elsewhere: %d, %s", code, text)
	}
	if text, code := ask(dir, secret, "sessions", "list"); code != exitDone || strings.Count(text, "facts.txt") != 2 {
		t.Errorf("the sessions: %d, %s", code, text)
	}
	if text, code := ask(dir, "wrong", "sessions", "list"); code != exitError || !strings.Contains(text, "no token") {
		t.Errorf("with a wrong token: %d, %s", code, text)
	}
	if text, code := ask(dir, secret, "search", "boiler"); code != exitUsage || !strings.Contains(text, "leave --server") {
		t.Errorf("what works on this machine's files: %d, %s", code, text)
	}
	if left, err := os.ReadDir(filepath.Join(home, "elsewhere")); err == nil {
		t.Errorf("who asks a server keeps %v", left)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := serve.Wait(); err != nil || !strings.Contains(said.String(), "stopping") {
		t.Errorf("the end: %v, %s", err, said.String())
	}
	if text, code := ask(dir, secret, "sessions", "list"); code != exitError || !strings.Contains(text, "is regie serve running there?") {
		t.Errorf("when it has ended: %d, %s", code, text)
	}
}
