package app_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// npmProgram is a program that others wrote, with a home and a directory of its own. It reaches
// only the loopback interface: every other address goes through a proxy that is not there.
type npmProgram struct {
	t         *testing.T
	argv      []string
	dir, home string
	env       []string
}

// newNPMProgram returns a program below internal/compat/testdata, whose packages npm installed
// there. Node runs what ends with js.
func newNPMProgram(t *testing.T, path string, env ...string) *npmProgram {
	t.Helper()
	base, err := filepath.Abs(filepath.Join("..", "compat", "testdata"))
	folder, _, inside := strings.Cut(path, "/")
	if !inside {
		folder = "npm"
	}
	p := &npmProgram{t: t, argv: []string{filepath.Join(base, filepath.FromSlash(path))}, dir: t.TempDir(), home: t.TempDir()}
	for _, file := range []string{filepath.Join(base, folder, "node_modules", ".package-lock.json"), p.argv[0]} {
		if err == nil {
			_, err = os.Stat(file)
		}
	}
	if err == nil && strings.HasSuffix(path, "js") {
		var node string
		node, err = exec.LookPath("node")
		p.argv = []string{node, p.argv[0]}
	}
	if err != nil && os.Getenv("REGIE_CI") == "1" {
		t.Fatalf("%s is not installed (make npm installs it): %v", path, err)
	}
	if err != nil {
		t.Skipf("%s is not installed: make npm installs it", path)
	}
	p.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "TMPDIR=" + p.home, "LANG=C.UTF-8",
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1",
	}, env...)
	return p
}

// write writes a file below the program's directory, or at an absolute path, and returns its path.
func (p *npmProgram) write(path, content string) string {
	p.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.dir, path)
	}
	fatal(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
	fatal(p.t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// holds compares a file of the program's directory.
func (p *npmProgram) holds(name, want string) {
	p.t.Helper()
	if data, err := os.ReadFile(filepath.Join(p.dir, name)); err != nil || string(data) != want {
		p.t.Errorf("%s: %q, %v", name, data, err)
	}
}

// run returns what the program writes to stdout. Its process group ends with it, after two minutes
// at the latest.
func (p *npmProgram) run(args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, p.argv[0], append(p.argv[1:], args...)...)
	command.Dir, command.Env, command.WaitDelay = p.dir, p.env, 5*time.Second
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // what it left running
	}
	if err != nil {
		p.t.Fatalf("%v %v: %v\n%s\n%s", p.argv, args, err, out, stderr.String())
	}
	return string(out)
}

// prints runs the program and compares the JSON that it writes.
func (p *npmProgram) prints(want string, args ...string) {
	p.t.Helper()
	var got, wanted any
	out := p.run(args...)
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	fatal(p.t, json.Unmarshal([]byte(want), &wanted))
	if diff := cmp.Diff(wanted, got); diff != "" {
		p.t.Errorf("%v (-want +got):\n%s", args, diff)
	}
}
