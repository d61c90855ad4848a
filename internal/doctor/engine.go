package doctor

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// checkEngine looks for the engine of the data directory (decision 1).
func (x *exam) checkEngine(ctx context.Context) {
	state := x.engineState(ctx)
	pid := cmp.Or(state.PID, "?")
	switch {
	case state.Unknown != nil:
		x.addWarning("running", "it cannot be determined whether an engine is running: %s",
			systemReason(state.Unknown)).addFix("check that you may read %s",
			filepath.Join(x.Config.DataDir, "engine.lock"))
	case !state.Running:
		x.addFine("running", "no engine runs; a command that needs one starts it")
	case state.Err != nil:
		x.addFailure("running", "process %s is the engine and does not answer",
			pid).setSubject(state.PID).setCode(regie.CodeLocked).
			addFix("wait for it, wake it if it was stopped (kill -CONT %s), or end it, which loses nothing: kill %s", pid, pid)
	default:
		x.addFine("running", "process %s is the engine and answers after %s (%s)", pid, shortDuration(state.Took), state.Socket)
	}
}

// checkWorkspace looks what directory an agent would work in from here.
func (x *exam) checkWorkspace(context.Context) {
	if x.Dir == "" {
		x.addFailure("root", "the current directory is gone").addFix("change to an existing directory: cd")
		return
	}
	own := x.Config.OwnDir()
	root, _, err := workspace.Detect(x.Dir, x.Env("HOME"), false)
	switch {
	case err != nil:
		x.addError("root", err).setSubject(x.Dir).addFix("change to a project's directory, or create one: mkdir work && cd work")
		return
	case own != "" && isBelow(own, root):
		x.addFailure("root", "%s is inside Regie's data directory: agents do not work there",
			root).setSubject(own).addFix("change to a project's directory, or create one: mkdir work && cd work")
		return
	}
	x.addFine("root", "agents work in %s", root).setSubject(root)
	if x.Project != nil {
		x.checkProject(root, x.Project(root))
	}
	if own != "" && isBelow(root, own) {
		x.addWarning("data",
			"the data directory %s is inside the workspace: agents cannot reach it, but copying, sharing or deleting the workspace includes its sessions and keys", own).
			setSubject(own).adviseDataDir()
	}
}

// isBelow reports whether a path is a directory or inside it, after resolving links.
func isBelow(dir, path string) bool {
	within, err := filepath.Rel(workspace.Resolved(dir), workspace.Resolved(path))
	return err == nil && filepath.IsLocal(within)
}
