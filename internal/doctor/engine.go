package doctor

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// engine looks for the engine of the data directory (decision 1).
func (x *exam) engine(ctx context.Context) {
	if !x.present {
		x.fine("running", "no engine runs; a command that needs one starts it")
		return
	}
	if x.Stuck != nil {
		for _, id := range x.Stuck(ctx) {
			x.warn("stuck", "the run %s waits: it was started with another address or key of its provider",
				id).about(id).
				fix("bring these settings back and run: regie run --resume %s", id)
		}
	}
	state := x.state(ctx)
	switch {
	case state.Unknown != nil:
		x.warn("running", "it cannot be told whether an engine runs: %s",
			reason(state.Unknown)).fix("see that you may read %s", filepath.Join(x.Config.DataDir, "engine.lock"))
	case !state.Running && state.Stale:
		x.fine("running", "no engine runs; one that died has left its socket, which the next one replaces")
	case !state.Running:
		x.fine("running", "no engine runs; a command that needs one starts it")
	case state.Err == nil:
		x.fine("running", "process %s is the engine and answers after %s (%s)", orUnknown(state.PID),
			short(state.Took), state.Socket)
		if state.OtherRules {
			x.warn("settings",
				"the engine decides by other settings (rules, sandbox, limits) than the file you named: runs with it are refused").about(state.PID).
				fix(
					"end process %s, which loses nothing, or name another data directory: export REGIE_DATA_DIR=/path/to/it", orUnknown(state.PID))
		}
	default:
		f := x.fail("running", "process %s is the engine and does not answer", orUnknown(state.PID)).about(state.PID)
		f.Code = regie.CodeLocked
		switch {
		case state.PID == "":
			f.fix("wait for it, or end it")
		case stopped(state.PID):
			f.run("kill -CONT " + state.PID)
		default:
			f.fix("wait for it, or end it, which loses nothing: kill %s", state.PID)
		}
	}
}

func orUnknown(pid string) string {
	if pid == "" {
		return "?"
	}
	return pid
}

// stopped reports whether a process was stopped by a signal (proc(5), the state T).
func stopped(pid string) bool {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	text := string(data)
	after := text[strings.LastIndexByte(text, ')')+1:]
	return strings.HasPrefix(strings.TrimSpace(after), "T")
}

// born is before every clock that is right: this program is from later.
var born = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// clockSlack is how much a clock may step back without anybody noticing.
const clockSlack = 2 * time.Second

// clock looks whether the time can be true.
func (x *exam) clock(context.Context) {
	now := x.Now()
	const format = "2006-01-02 15:04:05"
	switch {
	case now.Before(built()):
		x.fail("time", "the clock says %s, and this program was made later",
			now.Format(format)).run("sudo timedatectl set-ntp true").fix("or set it by hand: sudo date -s …")
	case !x.newest.IsZero() && now.Add(clockSlack).Before(x.newest):
		x.fail("time", "the clock is %s behind the newest row of the log, of %s", short(x.newest.Sub(now)),
			x.newest.In(now.Location()).Format(format)).
			run("sudo timedatectl set-ntp true").fix("or set it by hand; until then approvals and rules expire late")
	case now.Year() > born.Year()+30:
		x.fail("time", "the clock says %s", now.Format(format)).run("sudo timedatectl set-ntp true").
			fix("or set it by hand: sudo date -s …")
	default:
		x.fine("time", "it is %s", now.Format(format))
	}
	name := x.Env("TZ")
	if path, ok := strings.CutPrefix(name, ":"); ok {
		name = path
	}
	if _, err := time.LoadLocation(name); name != "" && err != nil && !strings.HasPrefix(name, "/") {
		x.warn("zone", "TZ is %s, which is no time zone: times are shown in UTC",
			name).fix("name one, such as TZ=Europe/Paris, or: unset TZ")
		return
	}
	x.fine("zone", "time zone %s", now.Format("MST, -07:00"))
}

// built is when the newest commit of this program was made, where the build says it.
func built() time.Time {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return born
	}
	for _, setting := range info.Settings {
		if at, err := time.Parse(time.RFC3339, setting.Value); setting.Key == "vcs.time" &&
			err == nil && at.After(born) {
			return at.Add(-24 * time.Hour)
		}
	}
	return born
}

// workspace looks what directory an agent would work in from here.
func (x *exam) workspace(context.Context) {
	if x.Dir == "" {
		x.fail("root", "the current directory is gone").fix("go into one that is there: cd")
		return
	}
	own := x.Config.OwnDir()
	root, foundBy, err := workspace.Detect(x.Dir, x.Env("HOME"), false)
	if err == nil && own != "" && below(own, root) {
		x.fail("root", "%s lies in Regie's own data directory: agents do not work there",
			root).about(own).fix("go into a project's directory")
		return
	}
	switch regie.CodeOf(err) {
	case "":
	case regie.CodePathProtected:
		f := x.cause("root", err).about(x.Dir)
		f.fix("go into a project's directory, or make one: mkdir work && cd work")
		return
	default:
		x.cause("root", err).about(x.Dir).fix("go into a directory that you may read: cd")
		return
	}
	switch foundBy {
	case workspace.FoundByRegie:
		x.fine("root", "%s, found by its .regie directory", root).about(root)
	case workspace.FoundByGit:
		x.fine("root", "%s, the root of a git work tree", root).about(root)
	default:
		x.fine("root", "%s, the current directory", root).about(root)
	}
	if x.Project != nil {
		x.project(root, x.Project(root))
	}
	if unix.Access(root, unix.W_OK|unix.X_OK) != nil {
		x.warn("writable", "%s cannot be written: an agent can only read there",
			root).about(root).run("chmod u+w " + quote(root))
	}
	if own != "" && below(root, own) {
		x.warn("data",
			"the data directory %s lies in the workspace: agents do not come to it, but what copies, shares or deletes the workspace takes sessions and keys with it", own).
			about(own).fix("name one outside: export REGIE_DATA_DIR=/path/to/it")
	}
}

// below reports whether a path is a directory or lies in it, whatever links lead there.
func below(dir, path string) bool {
	within, err := filepath.Rel(workspace.Resolved(dir), workspace.Resolved(path))
	return err == nil && filepath.IsLocal(within)
}
