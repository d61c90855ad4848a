package main

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// server is a regie serve of a test.
type server struct {
	process *exec.Cmd
	url     string
}

// serving starts regie serve on a data directory, and waits until it listens.
func serving(t *testing.T, dir, data string, env []string) server {
	t.Helper()
	serve := exec.CommandContext(t.Context(), "regie", "serve", "--addr", "127.0.0.1:0", "--data-dir", data, "--provider", "demo")
	serve.Dir, serve.Env = dir, env
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
		t.Fatalf("it says %q (%v)", line, err)
	}
	return server{serve, url}
}

// TestToken makes tokens beside a running server, over it, and without one; what was acknowledged
// survives a kill, and what was revoked never works again.
func TestToken(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	data := filepath.Join(home, "data")
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "REGIE_LANG=en"}
	run := func(wants int, more []string, args ...string) (string, string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "regie", args...)
		var out, said bytes.Buffer
		c.Dir, c.Env, c.Stdout, c.Stderr = dir, slices.Concat(more, env), &out, &said
		if _ = c.Run(); c.ProcessState.ExitCode() != wants { // the code says it
			t.Fatalf("%v: %d, %s%s", args, c.ProcessState.ExitCode(), out.String(), said.String())
		}
		return out.String(), said.String()
	}
	local := []string{"REGIE_DATA_DIR=" + data}
	status := func(url, path, secret string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+secret)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	out, said := run(exitDone, local, "token", "add", "early") // no server, and nothing has run yet
	early := strings.TrimSpace(out)
	if !strings.HasPrefix(early, "regie_") || !strings.Contains(said, "shown once") || !strings.Contains(said, "opens: read") {
		t.Errorf("the first token: %q, %s", out, said)
	}
	first := serving(t, dir, data, env)
	out, _ = run(exitDone, local, "token", "add", "lead", "--scope", "all", "--in", dir, "--expires", "never", "--on-approval", "park")
	lead := strings.TrimSpace(out)
	remote := []string{"REGIE_SERVER=" + first.url, "REGIE_TOKEN=" + lead, "REGIE_DATA_DIR=" + filepath.Join(home, "elsewhere")}
	run(exitError, remote, "token", "add", "wide", "--scope", "read") // a restricted token makes no others
	out, _ = run(exitDone, local, "token", "add", "child", "--scope", "read,chat", "--in", dir, "--expires", "2h")
	child := strings.TrimSpace(out)
	run(exitUsage, local, "token", "add", "x", "--scope", "everything")
	run(exitUsage, local, "token", "add", "x", "--expires", "soon")
	run(exitError, remote, "token", "list")
	if out, _ = run(exitDone, local, "token", "list"); !strings.Contains(out, "lead") || !strings.Contains(out, "child") || !strings.Contains(out, "only in: "+dir) {
		t.Errorf("the tokens:\n%s", out)
	}
	// Killed as soon as it was acknowledged: the tokens are there, and what is revoked stays
	// revoked.
	run(exitDone, local, "token", "revoke", "early")
	if err := first.process.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.process.Wait()
	second := serving(t, dir, data, env)
	for secret, want := range map[string]int{early: 401, lead: 200, child: 200, "": 401, lead[:20]: 401} {
		if got := status(second.url, "/api/v1/sessions", secret); got != want {
			t.Errorf("after the kill: %d, want %d", got, want)
		}
	}
	if got := status(second.url, "/metrics", child); got != 403 {
		t.Errorf("what it does not open: %d", got)
	}
	if out, _ = run(exitDone, local, "token", "revoke", "lead"); !strings.Contains(out, "revoked: lead") {
		t.Errorf("revoking: %s", out)
	}
	if got := status(second.url, "/api/v1/sessions", lead); got != 401 {
		t.Errorf("once it is revoked: %d", got)
	}
	run(exitError, local, "token", "revoke", "nobody")
	if out, _ = run(exitDone, local, "token", "browser"); !strings.HasPrefix(out, second.url+"/setup?code=") {
		t.Errorf("a link for a browser: %s", out)
	}
	if out, _ = run(exitDone, local, "token", "list", "--ended"); strings.Count(out, "revoked") < 2 || !strings.Contains(out, "opens: read, chat\n") {
		t.Errorf("all of them:\n%s", out)
	}
	if out, _ = run(exitDone, local, "verify", "--all"); !strings.Contains(out, "✓ tokens of ") {
		t.Errorf("the log of the tokens:\n%s", out)
	}
	kept, err := filepath.Glob(filepath.Join(data, "regie.db*"))
	if err != nil || len(kept) < 2 {
		t.Fatalf("%v, %v", kept, err)
	}
	for _, name := range kept {
		if database, err := os.ReadFile(name); err != nil || bytes.Contains(database, []byte(lead[:49])) || bytes.Contains(database, []byte(lead[6:49])) {
			t.Errorf("a secret stands in %s (%v)", name, err)
		}
	}
	if err := second.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.process.Wait(); err != nil {
		t.Error(err)
	}
	run(exitDone, local, "token", "revoke", "child")
	run(exitError, local, "token", "browser")
}
