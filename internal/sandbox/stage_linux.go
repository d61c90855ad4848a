package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Descriptors of the helpers: jobFD brings the job, reportFD takes the reports.
const (
	jobFD    = 3
	reportFD = 4
)

// killGrace is how long a command has between the request to end and its end.
const killGrace = time.Second

// staged says that this program calls Stage. A program that does not would, started again as a
// helper, repeat its usual work.
var staged atomic.Bool

// Stage runs this process as a helper if it was started as one, and returns its exit code. A
// program that runs commands calls it first, with os.Args.
func Stage(args []string) (code int, ours bool) {
	staged.Store(true)
	if len(args) == 0 {
		return 0, false
	}
	switch args[0] {
	case watchName, helperPath:
		return watchCommand(), true
	case enterName:
		return enterCommand(), true
	case probeName:
		return runProbes(args), true
	default:
		return 0, false
	}
}

// watchCommand starts the command below it, ends everything that it started, and reports. It runs
// outside the filters, and other processes may not inspect it.
func watchCommand() int {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	syscall.CloseOnExec(jobFD)
	syscall.CloseOnExec(reportFD)
	told, out := os.NewFile(jobFD, "job"), os.NewFile(reportFD, "report")
	reader := bufio.NewReader(told)
	line, err := reader.ReadBytes('\n')
	var j job
	if err != nil || json.Unmarshal(line, &j) != nil {
		return 1
	}
	say := func(r report) { _ = json.NewEncoder(out).Encode(r) } // who started us sees that nothing came
	if syscall.Geteuid() == 0 {
		_ = syscall.Setgroups(nil)
	}
	ended := make(chan bool, 1)
	go func() { // the starter writes a second time to end the command; its death closes the pipe
		n, _ := reader.Read(make([]byte, 1))
		ended <- n > 0
	}()
	pid, failed, err := launchCommand(&j, line)
	if err != nil {
		say(report{Done: true, Refused: err.Error()})
		return 0
	}
	begun := make(chan report, 1)
	go func() { // what enter says; the end of it means that enter has become the command
		defer failed.Close()
		var refused report
		_ = json.NewDecoder(failed).Decode(&refused)
		begun <- refused
	}()
	supervisor := startSupervisor(&j)
	go func() {
		// if the starter is gone, there is no grace: the command's further work would go unseen
		if polite := <-ended; polite {
			signalTree(syscall.SIGTERM)
			time.Sleep(killGrace)
		}
		close(supervisor.halt)
	}()
	// Reported before the start is certain: from here on the starter must assume that the command
	// had effects.
	say(report{Started: true})
	end := awaitCommand(pid)
	close(supervisor.over)
	<-supervisor.ended
	end.Done, end.Left, end.Exceeded = true, supervisor.left, supervisor.exceeded
	if j.Temp != "" {
		removeAll(j.Temp)
	}
	if refused := <-begun; refused.Refused != "" {
		end = refused
	}
	say(end)
	return 0
}

// awaitCommand waits for the command, and takes the orphans that end meanwhile.
func awaitCommand(pid int) (out report) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return report{Exit: 255}
		case got != pid:
		case status.Signaled():
			return report{Signal: int(status.Signal()), Exit: 128 + int(status.Signal())}
		case status.Exited():
			return report{Exit: status.ExitStatus()}
		}
	}
}

// launchCommand starts enter, which becomes the command, and sends it the job.
func launchCommand(j *job, line []byte) (pid int, failed *os.File, err error) {
	jobRead, jobWrite, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer jobRead.Close()
	failRead, failWrite, err := os.Pipe()
	if err != nil {
		_ = jobWrite.Close()
		return 0, nil, err
	}
	defer failWrite.Close()
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // await is its wait
	cmd.Args, cmd.Env = []string{enterName}, []string{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{jobRead, failWrite}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	switch {
	case j.Namespace:
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{
			ContainerID: insideID,
			HostID:      syscall.Geteuid(), Size: 1,
		}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{
			ContainerID: insideID,
			HostID:      syscall.Getegid(), Size: 1,
		}}
	case j.UID != 0:
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(j.UID), Gid: uint32(j.GID)}
	}
	if err := cmd.Start(); err != nil {
		_, _ = failRead.Close(), jobWrite.Close()
		return 0, nil, fmt.Errorf("the helper cannot be started: %w", err)
	}
	pid = cmd.Process.Pid
	_ = cmd.Process.Release()
	go func() { // concurrent: a job may be larger than the pipe's buffer
		_, _ = jobWrite.Write(line)
		_ = jobWrite.Close()
	}()
	return pid, failRead, nil
}

// enterCommand gives up every right and becomes the command. It returns only on failure.
func enterCommand() int {
	runtime.LockOSThread()
	runtime.GOMAXPROCS(1)
	syscall.CloseOnExec(jobFD)
	syscall.CloseOnExec(reportFD)
	out := os.NewFile(reportFD, "report")
	fail := func(err error) int {
		refused := report{Done: true, Refused: err.Error(), NoEntry: errors.Is(err, exec.ErrNotFound)}
		_ = json.NewEncoder(out).Encode(refused)
		return 127
	}
	line, err := bufio.NewReader(os.NewFile(jobFD, "job")).ReadBytes('\n')
	var j job
	if err == nil {
		err = json.Unmarshal(line, &j)
	}
	if err != nil {
		return fail(err)
	}
	if err := os.Chdir(j.Dir); err != nil {
		return fail(err)
	}
	for _, pair := range j.Env {
		if path, found := strings.CutPrefix(pair, "PATH="); found {
			_ = os.Setenv("PATH", path) // it is no empty name
		}
	}
	program, argv := "/proc/self/exe", []string{probeName, j.Probe}
	if j.Probe == "" {
		if program, err = exec.LookPath(j.Argv[0]); err != nil {
			return fail(fmt.Errorf("%q: %w", j.Argv[0], exec.ErrNotFound))
		}
		argv = j.Argv
	}
	// Nothing that was left open before us reaches the command.
	if err := unix.CloseRange(jobFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail(fmt.Errorf("open files cannot be closed: %w", err))
	}
	j.writeIdentity()
	if err := j.confineThread(); err != nil {
		return fail(err)
	}
	if j.Until != 0 && sinceBoot() > j.Until { // the caller was stopped meanwhile, and may count as dead
		_ = json.NewEncoder(out).Encode(report{Done: true, Refused: "it is too late", Late: true})
		return 127
	}
	err = syscall.Exec(program, argv, j.Env)
	return fail(fmt.Errorf("%s cannot be run: %w", argv[0], err))
}

// writeIdentity writes the committer's identity into the command's home. Without it git reports the
// lack itself.
func (j *job) writeIdentity() {
	for _, pair := range j.Env {
		if home, found := strings.CutPrefix(pair, "HOME="); found && j.Git != "" {
			_ = os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(j.Git), 0o600)
		}
	}
}

// insideID is the user of a command in a namespace where it would otherwise be root.
const insideID = 1000

// confineThread takes the rights away, the last one the right to make system calls.
func (j *job) confineThread() error {
	// a core file holds the command's memory
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return err
	}
	if err := j.limitThreads(); err != nil {
		return err
	}
	if j.Tier == None {
		return nil
	}
	if os.Geteuid() == 0 || os.Getuid() == 0 {
		return errors.New("the command would be root")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	version := landlockVersion()
	if j.Tier == Landlock && version < landlockNeeded {
		return errors.New("the kernel's Landlock is too old")
	}
	if version > 0 && len(j.Rules) > 0 {
		if err := restrictThread(version, j.Rules, j.Network || j.Tier == Bubblewrap); err != nil {
			return err
		}
	}
	families := sockets{none: j.Tier == Landlock && !j.Network, unix: j.Tier == Bubblewrap &&
		(!j.Network || version >= landlockNeeded)}
	return filterProgram(families, j.Tier == Bubblewrap).installFilter()
}
