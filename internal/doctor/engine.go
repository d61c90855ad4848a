package doctor

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

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
	if state.OtherRules {
		x.warn("settings",
			"the engine decides by other settings (rules, sandbox, limits) than the file you named: runs with it are refused").
			about(state.PID).
			fix("end process %s, which loses nothing, or name another data directory: export REGIE_DATA_DIR=/path/to/it", pid)
	}
}

// born is before every clock that is right: this program is from later.
var born = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// clockSlack is how much a clock may step back without consequences.
const clockSlack = 2 * time.Second

// clock looks whether the time can be true.
func (x *exam) clock(context.Context) {
	now := x.Now()
	const format = "2006-01-02 15:04:05 MST"
	if now.Before(born) || now.Year() > born.Year()+30 || now.Add(clockSlack).Before(x.newest) {
		x.fail("time", "the clock says %s, which is before this program or the newest row of the log, or far ahead",
			now.Format(format)).run("sudo timedatectl set-ntp true").
			fix("or set it by hand; until then approvals and rules expire late")
		return
	}
	x.fine("time", "it is %s", now.Format(format))
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
	if unix.Access(root, unix.W_OK|unix.X_OK) != nil {
		x.warn("writable", "%s cannot be written: an agent can only read there",
			root).about(root).run("chmod u+w " + Quote(root))
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
