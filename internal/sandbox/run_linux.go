package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/gitconfig"
)

// stopGrace is how long a helper may take to end everything before it is ended itself.
const stopGrace = killGrace + 2*time.Second

// helperGrace is how long everything below a helper that did not end is killed before the helper
// is.
const helperGrace = 10 * time.Second

// Run runs a command in its workspace and returns how it ended, after all its processes ended.
// CodeNoSandbox (the tier does not confine as found), CodeNoProgram (no such program) and CodeStale
// (too late to begin) mean that it never ran. CodeToolError means that its end is unknown.
func (s *Sandbox) Run(ctx context.Context, c Command) (Result, error) {
	if !staged.Load() {
		return Result{}, regie.Errorf(regie.CodeInternal, "this program cannot be its own helper: Stage was not called")
	}
	who, err := identityFor(c.Root)
	if err != nil {
		return Result{}, err
	}
	if c.Tier == None {
		who = identity{}
	}
	env := Environment(s.config.Environ, s.config.Env, c.Root)
	j := job{
		Argv: c.Argv, Dir: c.Dir, Tier: c.Tier, Network: s.config.Network, UID: who.uid, GID: who.gid,
		Namespace: who.namespace, Probe: c.probe,
	}
	j.Processes, j.Memory = s.Bounds()
	if c.Tier != None {
		j.Git = gitconfig.Identity()
	}
	n := findNests(c.Root)
	g, err := newGuard(n, who)
	if err != nil {
		return Result{}, regie.Errorf(regie.CodeToolError, "the workspace %s cannot be looked at: %v", c.Root, err)
	}
	defer g.closeRoot()
	cmd, clean, err := s.prepareHelper(&c, &j, who, env, n)
	if err != nil {
		return Result{}, err
	}
	defer clean()
	r := &running{cmd: cmd, command: c}
	result, err := r.runHelper(ctx, j)
	result.Removed = g.settleChanges()
	if c.Tier != None {
		result.Closed = n.closed
		result.Unseen = slices.DeleteFunc(g.closed, func(name string) bool {
			return slices.Contains(result.Closed, name)
		})
	}
	return result, err
}

func owned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// prepareHelper makes the helper that a tier needs, and completes the job.
func (s *Sandbox) prepareHelper(c *Command, j *job, who identity, env []string,
	n *nests,
) (cmd *exec.Cmd, clean func(), err error) {
	clean = func() {}
	cmd = exec.Command("/proc/self/exe") //nolint:noctx // running ends it
	// No helper dies with us by a signal: watch ends everything at the end of its pipe. Bubblewrap,
	// killed between its two processes, would leave the second one waiting for the first for ever.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	switch c.Tier {
	case Bubblewrap:
		helper, err := os.Executable()
		if err == nil {
			helper, err = filepath.EvalSymlinks(helper)
		}
		bwrap := s.findBwrap()
		if err != nil || bwrap == "" {
			return nil, nil, regie.Errorf(regie.CodeNoSandbox, "bubblewrap is no longer installed: nothing was run")
		}
		cmd.Path, cmd.Args, cmd.Err = bwrap, append([]string{"bwrap"}, s.bwrapArgs(c, who, helper, env, n)...), nil
		if who.uid != 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}
		}
		j.UID, j.GID, j.Namespace = 0, 0, false // bubblewrap has seen to them
		j.Env, j.Rules = slices.Concat(env, []string{"HOME=" + s.insideHome(), "TMPDIR=/tmp"}), s.bwrapRules(c.Root)
	case Landlock:
		temp, err := os.MkdirTemp("", "regie-shell-")
		if err == nil && who.uid != 0 {
			err = os.Chown(temp, who.uid, who.gid)
		}
		if err != nil {
			return nil, nil, regie.Errorf(regie.CodeToolError, "no temporary directory can be made for the command: %v",
				err)
		}
		clean, j.Temp = func() { removeAll(temp) }, temp
		cmd.Args = []string{watchName}
		j.Env = slices.Concat(env, []string{"HOME=" + temp, "TMPDIR=" + temp})
		if j.Rules = s.landlockRules(n, temp, who, env); c.probe != "" {
			j.Rules = append(j.Rules, rule{"/proc/self/exe", accessRead})
		}
	default:
		cmd.Args = []string{watchName}
		j.Env = slices.Concat(env, []string{"HOME=" + s.config.Home})
	}
	cmd.Env, cmd.Dir = []string{}, "/"
	return cmd, clean, nil
}

// removeAll deletes a command's temporary directory, including directories without access.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	_ = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = root.Chmod(path, 0o700)
		}
		return nil
	})
	_ = root.Close()
	_ = os.RemoveAll(dir)
}

// running is a command under way.
type running struct {
	cmd     *exec.Cmd
	command Command
}

// ended is what came of the helper.
type ended struct {
	report  report
	started bool
}

func (r *running) runHelper(ctx context.Context, j job) (Result, error) {
	var err error
	if j.Until, err = untilMoment(r.command.Left); err != nil {
		return Result{}, err
	}
	line, err := json.Marshal(j)
	if err != nil {
		return Result{}, regie.Errorf(regie.CodeInternal, "the command cannot be passed on: %v", err)
	}
	pipes, theirs, err := r.openPipes()
	if err != nil {
		return Result{}, regie.Errorf(regie.CodeToolError, "the command cannot be started: %v", err)
	}
	defer pipes.closePipes()
	began, exited, gone := time.Now(), make(chan error, 1), make(chan struct{})
	go func() {
		err := r.cmd.Start()
		for _, f := range theirs {
			_ = f.Close()
		}
		exited <- err
		if err == nil {
			_ = r.cmd.Wait() // what it says is in the report
		}
		close(gone)
	}()
	if err := <-exited; err != nil {
		return Result{}, regie.Errorf(regie.CodeNoSandbox, "the sandbox helper cannot be started: %v",
			err)
	}
	said := NewExcerpt(300)
	read, reported := make(chan struct{}), make(chan ended, 1)
	go func() {
		defer close(read)
		r.readOutput(pipes.output, said)
	}()
	go func() { reported <- readReport(pipes.report) }()
	_ = pipes.job.SetWriteDeadline(time.Now().Add(stopGrace))
	_, _ = pipes.job.Write(append(line, '\n')) // a helper that does not take it says nothing either
	result := r.watchOver(ctx, pipes, gone)
	end := <-reported
	_ = pipes.output.SetReadDeadline(time.Now().Add(time.Second)) // other holders are not ours
	<-read
	result.Duration = time.Since(began)
	return end.nameResult(result, said)
}

// watchOver waits for the helper's end, and forces it at the timeout or the end of the context.
func (r *running) watchOver(ctx context.Context, pipes *pipes, gone <-chan struct{}) (result Result) {
	var timeout <-chan time.Time
	if r.command.Timeout > 0 {
		timer := time.NewTimer(r.command.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-gone:
		_ = pipes.job.Close() // ends what a killed helper may have left
		return result
	case <-timeout:
		result.TimedOut = true
	case <-ctx.Done():
		result.Stopped = true
	}
	_ = pipes.job.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // one that takes nothing has begun nothing
	_, _ = pipes.job.Write([]byte{'\n'})                                   // which tells watch to be polite
	_ = pipes.job.Close()
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
		endHelper(r.cmd.Process.Pid, gone)
	}
	return result
}

// nameResult translates the helper's report.
func (e ended) nameResult(result Result, said *Excerpt) (Result, error) {
	switch {
	case e.report.Late:
		return Result{}, errLate()
	case e.report.Refused != "" && e.report.NoEntry:
		return Result{}, regie.Errorf(regie.CodeNoProgram, "there is no such program: %s", e.report.Refused)
	case e.report.Refused != "":
		return Result{}, regie.Errorf(regie.CodeNoSandbox, "the command was not run: %s", e.report.Refused)
	case !e.started && result.Stopped:
		return Result{}, context.Canceled
	case !e.started:
		return Result{}, regie.Errorf(regie.CodeNoSandbox, "the sandbox could not be set up: %s", lineOf(said.Head()))
	case !e.report.Done && (result.TimedOut || result.Stopped):
		result.Exit, result.Signal = 128+int(syscall.SIGKILL), "SIGKILL"
		return result, nil
	case !e.report.Done:
		return result, regie.Errorf(regie.CodeToolError,
			"the helper that watches the command was ended: the outcome of the command is unknown")
	}
	result.Exit, result.Left, result.Exceeded = e.report.Exit, e.report.Left, e.report.Exceeded
	if e.report.Signal != 0 {
		result.Signal = unix.SignalName(syscall.Signal(e.report.Signal))
	}
	return result, nil
}

func readReport(from io.Reader) (out ended) {
	lines := json.NewDecoder(from)
	for {
		var r report
		if err := lines.Decode(&r); err != nil {
			return out
		}
		out.started = out.started || r.Started
		if r.Done {
			out.report = r
		}
	}
}

// readOutput passes on the output. It keeps the first bytes: they hold the reason if the sandbox
// cannot be set up.
func (r *running) readOutput(from *os.File, said *Excerpt) {
	buffer := make([]byte, 128<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			_, _ = said.Write(buffer[:n])
			if r.command.Output != nil {
				r.command.Output(buffer[:n])
			}
		}
		if err != nil {
			return
		}
	}
}

// lineOf returns how an output begins, in one line.
func lineOf(output []byte) string {
	if len(output) == 0 {
		return "it ended without a word"
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(output), "?")), " ")
}

// pipes are our ends of the pipes to a helper.
type pipes struct{ job, report, output *os.File }

func (p *pipes) closePipes() {
	for _, f := range []*os.File{p.job, p.report, p.output} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// openPipes connects the helper and returns its ends, to be closed once it has them.
func (r *running) openPipes() (*pipes, []*os.File, error) {
	var ours pipes
	var theirs []*os.File
	var errs []error
	open := func(reads bool) (own, other *os.File) {
		in, out, err := os.Pipe()
		if err != nil {
			errs = append(errs, err)
			return nil, nil
		}
		if own, other = in, out; !reads {
			own, other = out, in
		}
		theirs = append(theirs, other)
		return own, other
	}
	var jobEnd, reportEnd, outputEnd *os.File
	ours.job, jobEnd = open(false)
	ours.report, reportEnd = open(true)
	ours.output, outputEnd = open(true)
	if err := errors.Join(errs...); err != nil {
		ours.closePipes()
		for _, f := range theirs {
			_ = f.Close()
		}
		return nil, nil, err
	}
	// a larger pipe has fewer turns for much output; a smaller one does
	if raw, err := ours.output.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) })
	}
	r.cmd.Stdout, r.cmd.Stderr = outputEnd, outputEnd
	r.cmd.ExtraFiles = []*os.File{jobEnd, reportEnd}
	return &ours, theirs, nil
}

// untilMoment converts a remaining time to a time of the boot clock; 0: never. It fails if the time
// is over.
func untilMoment(left func() time.Duration) (int64, error) {
	if left == nil {
		return 0, nil
	}
	now := sinceBoot() // read before left(): a stop in between shortens the time, never extends it
	rest := left()
	if rest <= 0 {
		return 0, errLate()
	}
	return now + rest.Nanoseconds(), nil
}

// sinceBoot returns the machine's boot clock in nanoseconds: all processes share it, a person
// cannot set it, and it runs while the machine sleeps.
func sinceBoot() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // fails only for an unknown clock
	return t.Nano()
}
