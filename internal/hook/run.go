package hook

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

const (
	// maxOutput bounds what is kept of each of a hook's two streams, in bytes; the rest is read and
	// thrown away.
	maxOutput = 64 << 10
	// drainTime is how long the streams of a command that has ended are waited for, where something
	// that left its group keeps them open.
	drainTime = 500 * time.Millisecond
)

// run runs the command. told is its standard input, root the workspace.
func (h *Hook) run(ctx context.Context, told []byte, root string, environ []string) regie.HookRun {
	program, problem := h.program(root, environ)
	if !problem.IsZero() {
		return h.failed(problem)
	}
	timeout := h.timeout()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, h.Command[1:]...)
	cmd.Args[0] = h.Command[0]
	var stdout, stderr bounded
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = h.Dir, bytes.NewReader(told), &stdout, &stderr
	cmd.Env = slices.Concat(environ, []string{"REGIE_HOOK=" + string(h.On), "REGIE_WORKSPACE=" + root})
	cmd.WaitDelay = drainTime
	ownGroup(cmd)
	cmd.Cancel = func() error {
		killGroup(cmd)
		return nil
	}
	if err := cmd.Start(); err != nil {
		return h.failed(regie.Say("it cannot be started: %s", err.Error()))
	}
	err := cmd.Wait()
	killGroup(cmd) // what it has left behind
	switch exited := (*exec.ExitError)(nil); {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && cmd.ProcessState.ExitCode() != 0:
		return h.failed(regie.Say("it took longer than %s", timeout.String()))
	case cmd.ProcessState.ExitCode() < 0:
		return h.failed(regie.Say("it was killed: %s", cmd.ProcessState.String()))
	case err == nil, errors.As(err, &exited), errors.Is(err, exec.ErrWaitDelay):
		return h.read(cmd.ProcessState.ExitCode(), stdout.data, stderr.data)
	default:
		return h.failed(regie.Say("it cannot be run: %s", err.Error()))
	}
}

// program finds the program of a hook. It refuses a program, or a script argument, in the
// workspace: a model can write there, and the code would run outside every confinement.
func (h *Hook) program(root string, environ []string) (string, regie.Sentence) {
	name := h.Command[0]
	switch {
	case filepath.IsAbs(name):
	case strings.ContainsRune(name, filepath.Separator):
		name = filepath.Join(h.Dir, name)
	default:
		found := lookup(name, environ)
		if found == "" {
			return "", regie.Say("there is no command %s", name)
		}
		name = found
	}
	for i, word := range h.Command {
		if i == 0 {
			word = name
		} else if !filepath.IsAbs(word) {
			word = filepath.Join(h.Dir, word)
		}
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() && inside(word, root) {
			return "", regie.Say("%s is in the workspace, where an agent can change it", word)
		}
	}
	return name, regie.Sentence{}
}

// lookup finds a program in the PATH that the hook gets.
func lookup(name string, environ []string) string {
	for _, pair := range environ {
		value, is := strings.CutPrefix(pair, "PATH=")
		if !is {
			continue
		}
		for _, dir := range filepath.SplitList(value) {
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(found) {
				return found
			}
		}
	}
	return ""
}

// inside reports whether a file lies below a directory, links followed.
func inside(name, root string) bool {
	for _, resolve := range []func(string) (string, error){filepath.Abs, filepath.EvalSymlinks} {
		at, err := resolve(name)
		if err != nil {
			return true // it was there a moment ago
		}
		if rel, err := filepath.Rel(root, at); err == nil && rel != ".." &&
			!strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ data []byte }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.data = append(b.data, p[:min(len(p), maxOutput-len(b.data))]...)
	return len(p), nil
}
