//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/regie-run/regie"
)

// runGroup runs a command and ends its process group where its time is over. What leaves the group
// is not found here.
func runGroup(ctx context.Context, c Command, env []string) (Result, error) {
	if c.Left != nil && c.Left() <= 0 {
		return Result{}, errLate()
	}
	path, err := exec.LookPath(c.Argv[0])
	if err != nil {
		return Result{}, regie.Errorf(regie.CodeNoProgram, "there is no such program: %s", c.Argv[0])
	}
	parent := ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, path, c.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.Dir, env, time.Second
	out := writer(func(p []byte) {
		if c.Output != nil {
			c.Output(p)
		}
	})
	cmd.Stdout, cmd.Stderr = out, out
	endGroup(cmd)
	began := time.Now()
	err = cmd.Run()
	result := Result{Duration: time.Since(began)}
	var exited *exec.ExitError
	switch {
	case parent.Err() != nil:
		result.Stopped = true
	case ctx.Err() != nil:
		result.TimedOut = true
	case err == nil:
		return result, nil
	case !errors.As(err, &exited):
		return Result{}, regie.Errorf(regie.CodeToolError, "the command cannot be run: %v", err)
	}
	result.Exit, result.Signal = exitOf(cmd)
	return result, nil
}

// writer passes on the bytes written to it.
type writer func([]byte)

// Write implements io.Writer. It never fails.
func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
