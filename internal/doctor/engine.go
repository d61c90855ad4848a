package doctor

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// engine looks for the engine of the data directory (decision 1).
func (x *exam) engine(ctx context.Context) {
	state := x.state(ctx)
	pid := cmp.Or(state.PID, "?")
	switch {
	case state.Unknown != nil:
		x.warn("running", "it cannot be told whether an engine runs: %s",
			reason(state.Unknown)).fix("see that you may read %s", filepath.Join(x.Config.DataDir, "engine.lock"))
	case !state.Running:
		x.fine("running", "no engine runs; a command that needs one starts it")
	case state.Err != nil:
		x.fail("running", "process %s is the engine and does not answer", pid).about(state.PID).code(regie.CodeLocked).
			fix("wait for it, wake it if it was stopped (kill -CONT %s), or end it, which loses nothing: kill %s", pid, pid)
	default:
		x.fine("running", "process %s is the engine and answers after %s (%s)", pid, short(state.Took), state.Socket)
	}
}

// workspace looks what directory an agent would work in from here.
func (x *exam) workspace(context.Context) {
	if x.Dir == "" {
		x.fail("root", "the current directory is gone").fix("go into one that is there: cd")
		return
	}
	own := x.Config.OwnDir()
	root, _, err := workspace.Detect(x.Dir, x.Env("HOME"), false)
	switch {
	case err != nil:
		x.cause("root", err).about(x.Dir).fix("go into a project's directory, or make one: mkdir work && cd work")
		return
	case own != "" && below(own, root):
		x.fail("root", "%s lies in Regie's own data directory: agents do not work there",
			root).about(own).fix("go into a project's directory, or make one: mkdir work && cd work")
		return
	}
	x.fine("root", "agents work in %s", root).about(root)
	if x.Project != nil {
		x.project(root, x.Project(root))
	}
	if own != "" && below(root, own) {
		x.warn("data",
			"the data directory %s lies in the workspace: agents do not come to it, but what copies, shares or deletes the workspace takes sessions and keys with it", own).
			about(own).elsewhere()
	}
}

// below reports whether a path is a directory or lies in it, whatever links lead there.
func below(dir, path string) bool {
	within, err := filepath.Rel(workspace.Resolved(dir), workspace.Resolved(path))
	return err == nil && filepath.IsLocal(within)
}
