package mcp

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

const defaultGrace = 2 * time.Second // for each of: input closed, SIGTERM, SIGKILL

// inherited are the variables that a server gets of this process's environment: what programs need
// to run at all. Keys and tokens are in others, and stay here (spec 11.3).
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "TMPDIR",
}

// processEnv returns all that a server's process gets.
func processEnv(own []string, extra map[string]string) []string {
	var out []string
	for _, pair := range own {
		name, value, _ := strings.Cut(pair, "=")
		_, replaced := extra[name]
		for _, known := range inherited {
			if name == known && !replaced && !strings.HasPrefix(value, "()") { // "()" is a shell's function
				out = append(out, pair)
			}
		}
	}
	for name, value := range extra {
		out = append(out, name+"="+value)
	}
	return out
}

// process is a server that runs as a command, with its own process group.
type process struct {
	cmd   *exec.Cmd
	in    *os.File // our end of its input
	out   *os.File // our end of its output
	err   *os.File // our end of its standard error
	log   *tail    // the end of its standard error, and what else it wrote
	grace time.Duration

	// stranger is set of one that never introduced itself: it has nothing to bring to an end.
	stranger atomic.Bool

	once    sync.Once
	stop    chan struct{} // closed: end it
	drained chan struct{} // closed by the reader of out: there is no more
	logged  chan struct{} // closed by copyLog
	done    chan struct{} // closed by supervise: it and its group are gone, the pipes are closed
	state   string        // how it ended; set before done
}

// startProcess starts a server's command. The reader of its output must close drained at the end.
func startProcess(c Config, log *tail, grace time.Duration) (*process, error) {
	p := &process{
		log: log, grace: grace, stop: make(chan struct{}), drained: make(chan struct{}),
		logged: make(chan struct{}), done: make(chan struct{}),
	}
	p.cmd = exec.Command(c.Command[0], //nolint:noctx // it outlives the call that starts it; supervise ends it
		c.Command[1:]...)
	p.cmd.Dir, p.cmd.Env = c.Dir, processEnv(os.Environ(), c.Env)
	ownGroup(p.cmd)
	theirs, err := p.openPipes()
	if err == nil {
		err = p.cmd.Start()
	}
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		p.closePipes()
		return nil, regie.Errorf(regie.CodeServerDown, "the command %q of the MCP server %s cannot be started: %v",
			sanitize.Clip(c.Command[0], 200), c.Name, err)
	}
	go p.copyLog()
	go p.superviseProcess()
	return p, nil
}

// openPipes connects the command with us and returns its ends of the pipes, to be closed once it
// has them.
func (p *process) openPipes() (theirs []*os.File, err error) {
	var stdin, stdout, stderr *os.File
	if stdin, p.in, err = os.Pipe(); err == nil {
		if p.out, stdout, err = os.Pipe(); err == nil {
			p.err, stderr, err = os.Pipe()
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr
	return []*os.File{stdin, stdout, stderr}, err
}

func (p *process) closePipes() {
	for _, f := range []*os.File{p.in, p.out, p.err} {
		_ = f.Close() // which does nothing to nil
	}
}

// requestEnd asks for the end of the process; done tells when it has come.
func (p *process) requestEnd() { p.once.Do(func() { close(p.stop) }) }

// copyLog keeps the end of what the process says on its standard error.
func (p *process) copyLog() {
	defer close(p.logged)
	_, _ = io.Copy(p.log, p.err) // it ends with the pipe
}

// superviseProcess waits for the end of the process or brings it about, then clears up after it.
func (p *process) superviseProcess() {
	defer close(p.done)
	exited := make(chan struct{})
	go p.awaitExit(exited)
	select {
	case <-exited:
	case <-p.stop:
		p.endProcess(exited)
	}
	killGroup(p.cmd) // what it has left behind; the number is ours while the group has members
	// What it wrote before it ended is still in the pipes: an answer may be among it. Only a
	// process that left the group keeps them open.
	waitClosed(p.grace, p.drained, p.logged)
	p.closePipes()
	<-p.logged
	select {
	case <-exited:
		p.state = p.cmd.ProcessState.String()
	default:
		p.state = "it does not end"
	}
}

// awaitExit tells of the exit of the process.
func (p *process) awaitExit(exited chan<- struct{}) {
	defer close(exited)
	_ = p.cmd.Wait() // the state says it all
}

// endProcess ends the process as the protocol demands: it closes its input, and signals only a
// process that does not end then, or that never spoke the protocol.
func (p *process) endProcess(exited <-chan struct{}) {
	_ = p.in.Close()
	if !p.stranger.Load() && waitClosed(p.grace, exited) {
		return
	}
	terminateGroup(p.cmd)
	if waitClosed(p.grace, exited) {
		return
	}
	killGroup(p.cmd)
	waitClosed(p.grace, exited)
}

// waitClosed waits until all channels are closed, at most the grace, and reports whether they are.
func waitClosed(grace time.Duration, all ...<-chan struct{}) bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for _, c := range all {
		select {
		case <-c:
		case <-timer.C:
			return false
		}
	}
	return true
}

// ownGroup makes a command the leader of a process group: what it starts is ended with it, and the
// terminal's Ctrl-C is not for it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminateGroup asks the whole group to end; kill ends it. A group that is gone already is no
// error.
func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
