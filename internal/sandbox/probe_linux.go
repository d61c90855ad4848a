package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// targets are the probes' targets: made for the test, so that a failing sandbox loses nothing.
type targets struct {
	Root     string `json:"root"`    // the workspace
	Outside  string `json:"outside"` // a directory outside, with the file "secret"
	Data     string `json:"data"`    // a hidden directory, with the file "secret"
	TCP      string `json:"tcp"`     // who listens outside
	UDP      string `json:"udp"`
	Unix     string `json:"unix"` // a socket in Outside
	Abstract string `json:"abstract"`
	Victim   int    `json:"victim"` // a process outside
	Canary   string `json:"canary"` // a variable that must not be here
	Offline  bool   `json:"offline"`
	// Processes names the victim's process namespace: elsewhere its number means another process,
	// or none.
	Processes string `json:"processes"`
}

// errHeld is why an attack that the system did not refuse came to nothing.
var errHeld = errors.New("it came to nothing")

// attack is one probe: it returns nil if it succeeds.
type attack struct {
	name string
	try  func(t *targets) error
}

// attacks are all probes, as `regie doctor` names them.
var attacks = []attack{
	{"write-outside", func(t *targets) error { return tryWrite(filepath.Join(t.Outside, "written")) }},
	{"write-system", func(*targets) error { return tryOpen("/etc/passwd", os.O_WRONLY) }},
	{"write-git-hook", func(t *targets) error { return tryWrite(filepath.Join(t.Root, ".git", "hooks", "pre-commit")) }},
	{"write-git-config", func(t *targets) error { return tryWrite(filepath.Join(t.Root, ".git", "config")) }},
	{"write-git-named-hook", func(t *targets) error {
		return tryWrite(filepath.Join(t.Root, ".husky", "_", "pre-commit"))
	}},
	{"write-git-included", func(t *targets) error { return tryWrite(filepath.Join(t.Root, "sub", "included")) }},
	{"write-git-rebase", func(t *targets) error {
		return writeText(filepath.Join(t.Root, ".git", "rebase-merge", "git-rebase-todo"), "exec probe\n")
	}},
	{"make-git-store", func(t *targets) error { return makeRepository(filepath.Join(t.Root, ".git", "modules", "x")) }},
	{"make-repository", func(t *targets) error { return makeRepository(filepath.Join(t.Root, "sub", "bare")) }},
	{"write-regie", func(t *targets) error { return tryWrite(filepath.Join(t.Root, ".regie", "regie.yaml")) }},
	{"refuse-work", refuseWork},
	{"read-data", func(t *targets) error { return tryRead(filepath.Join(t.Data, "secret")) }},
	{"read-outside", func(t *targets) error { return tryRead(filepath.Join(t.Outside, "secret")) }},
	{"read-shadow", func(*targets) error { return tryRead("/etc/shadow") }},
	{"link-out", linkOut},
	{"hard-link-out", func(t *targets) error {
		return os.Link(filepath.Join(t.Outside, "secret"), filepath.Join(t.Root, "hard"))
	}},
	{"dotdot-out", func(t *targets) error {
		return tryWrite(t.Root + strings.Repeat("/..", strings.Count(t.Root, "/")) + t.Outside + "/written")
	}},
	{"proc-root", func(t *targets) error {
		return tryRead(fmt.Sprintf("/proc/%d/root%s/secret", os.Getppid(), t.Outside))
	}},
	{"proc-environ", func(t *targets) error {
		return t.onVictim(func(pid int) error { return tryRead(fmt.Sprintf("/proc/%d/environ", pid)) })
	}},
	{"proc-mem", func(*targets) error { return tryOpen(fmt.Sprintf("/proc/%d/mem", os.Getppid()), os.O_RDWR) }},
	{"proc-sys", func(*targets) error { return tryOpen("/proc/sys/kernel/core_pattern", os.O_WRONLY) }},
	{"sysrq", func(*targets) error { return tryOpen("/proc/sysrq-trigger", os.O_WRONLY) }},
	{"kill", func(t *targets) error { return t.onVictim(func(pid int) error { return syscall.Kill(pid, 0) }) }},
	{"ptrace", func(*targets) error { return refusedBy(unix.SYS_PTRACE) }},
	{"other-memory", func(*targets) error { return refusedBy(unix.SYS_PROCESS_VM_WRITEV) }},
	{"mount", func(*targets) error { return refusedBy(unix.SYS_MOUNT) }},
	{"chroot", func(*targets) error { return refusedBy(unix.SYS_CHROOT) }},
	{"user-namespace", func(*targets) error { return refusedBy(unix.SYS_UNSHARE) }},
	{"clone-namespace", func(*targets) error {
		// With CLONE_FS it never succeeds, but only a filter says EPERM.
		_, _, errno := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_FS, 0, 0, 0, 0, 0)
		if errno == unix.EPERM {
			return errno
		}
		return nil
	}},
	{"clone3", func(*targets) error { return refusedBy(unix.SYS_CLONE3) }},
	{"setns", func(*targets) error { return joinNamespace() }},
	{"be-root", func(*targets) error { return beRoot() }},
	{"capabilities", func(*targets) error { return tryCapabilities() }},
	{"setuid-file", setuidFile},
	{"device", func(t *targets) error {
		return unix.Mknod(filepath.Join(t.Root, "device"), unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0)))
	}},
	{"tiocsti", typeAhead},
	{"bpf", func(*targets) error { return refusedBy(unix.SYS_BPF) }},
	{"keyring", func(*targets) error { return refusedBy(unix.SYS_KEYCTL) }},
	{"userfaultfd", func(*targets) error { return refusedBy(unix.SYS_USERFAULTFD) }},
	{"io_uring", func(*targets) error { return refusedBy(unix.SYS_IO_URING_SETUP) }},
	{"other-limits", func(t *targets) error {
		return t.onVictim(func(pid int) error { return unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &unix.Rlimit{}) })
	}},
	{"shared-memory", func(t *targets) error {
		return t.onVictim(func(int) error {
			return errnoOf(unix.Syscall(unix.SYS_SHMGET, unix.IPC_PRIVATE, 4096, 0))
		})
	}},
	{"perf", func(*targets) error { return refusedBy(unix.SYS_PERF_EVENT_OPEN) }},
	{"open-files", func(*targets) error { return openFiles() }},
	{"environment", func(t *targets) error { return tryEnvironment(t.Canary) }},
	{"vsock", func(*targets) error { return trySocket(unix.AF_VSOCK, unix.SOCK_STREAM) }},
	{"raw-packets", func(*targets) error { return trySocket(unix.AF_PACKET, unix.SOCK_RAW) }},
	{"unix-socket", func(t *targets) error { return tryDial("unix", t.Unix) }},
	{"abstract-socket", func(t *targets) error { return tryDial("unix", "@"+t.Abstract) }},
	{"network", func(t *targets) error { return tryOnline(t, "tcp", t.TCP) }},
	{"datagrams", trySend},
	{"name-service", func(t *targets) error { return tryOnline(t, "udp", "192.0.2.1:53") }},
}

// runProbes runs every attack and prints the outcomes.
func runProbes(args []string) int {
	if len(args) == 2 && args[1] == floodProbe {
		return startFlood()
	}
	var t targets
	if len(args) < 2 || json.Unmarshal([]byte(args[1]), &t) != nil {
		return 2
	}
	var out []Probe
	for _, a := range attacks {
		one := Probe{Name: a.name, Held: true}
		if err := a.try(&t); err != nil {
			one.Detail = err.Error()
		} else {
			one.Held, one.Detail = false, "it got through"
		}
		out = append(out, one)
	}
	if json.NewEncoder(os.Stdout).Encode(out) != nil {
		return 1
	}
	return 0
}

func tryWrite(path string) error { return writeText(path, "probe\n") }

func writeText(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return bareError(err)
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return bareError(err)
}

// makeRepository makes a repository with a configuration and hook that run programs.
func makeRepository(dir string) error {
	for _, name := range []string{"objects", "refs", "hooks"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return bareError(err)
		}
	}
	return errors.Join(writeText(filepath.Join(dir, "HEAD"), "ref: refs/heads/main\n"),
		writeText(filepath.Join(dir, "config"), "[core]\n\tfsmonitor = probe\n"),
		tryWrite(filepath.Join(dir, "hooks", "post-checkout")))
}

// refuseWork does the work of git and build tools at the top of a repository; it succeeds if the
// sandbox refuses that.
func refuseWork(t *targets) error {
	git := filepath.Join(t.Root, ".git")
	err := errors.Join(os.Mkdir(filepath.Join(t.Root, "build"), 0o700), tryWrite(filepath.Join(t.Root, "new")),
		tryWrite(filepath.Join(git, "index.lock")))
	err = errors.Join(err, os.Rename(filepath.Join(git, "index.lock"), filepath.Join(git, "index")),
		os.MkdirAll(filepath.Join(git, "objects", "aa"), 0o700))
	if err != nil {
		return nil //nolint:nilerr // the sandbox refuses it
	}
	return errHeld
}

func tryRead(path string) error {
	data, err := os.ReadFile(path)
	if err == nil && len(data) == 0 {
		return errHeld
	}
	return bareError(err)
}

func tryOpen(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0)
	if err == nil {
		_ = f.Close()
	}
	return bareError(err)
}

// bareError removes the path from a system's error: the caller knows it, and it may be private.
func bareError(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

func errnoOf(_, _ uintptr, errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// refusedBy makes a senseless system call, and succeeds if the filter does not refuse it.
func refusedBy(number uintptr) error {
	_, _, errno := unix.Syscall6(number, ^uintptr(0), 0, 0, 0, 0, 0)
	if errno == unix.EPERM || errno == unix.ENOSYS {
		return errno
	}
	return nil
}

func linkOut(t *targets) error {
	link := filepath.Join(t.Root, "sub", "link")
	if err := os.Symlink(t.Outside, link); err != nil {
		return bareError(err)
	}
	return tryWrite(filepath.Join(link, "written"))
}

func joinNamespace() error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", os.Getppid()))
	if err != nil {
		return bareError(err)
	}
	defer f.Close()
	return unix.Setns(int(f.Fd()), 0)
}

func beRoot() error {
	if os.Getuid() == 0 || os.Geteuid() == 0 {
		return nil
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SETUID, 0, 0, 0)
	return errnoOf(0, 0, errno)
}

// tryCapabilities succeeds where this process has any, or could get some.
func tryCapabilities() error {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return bareError(err)
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "CapInh", "CapPrm", "CapEff", "CapAmb":
			if strings.Trim(value, "0") != "" {
				return nil
			}
		case "NoNewPrivs":
			if value != "1" {
				return nil
			}
		case "Seccomp":
			if value != "2" {
				return nil
			}
		}
	}
	return errHeld
}

func setuidFile(t *targets) error {
	path := filepath.Join(t.Root, "sub", "setuid")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700) //nolint:gosec // a program is what it is to look like
	if err != nil {
		return bareError(err)
	}
	defer f.Close()
	if err := syscall.Fchmod(int(f.Fd()), 0o4755); err == nil {
		return nil
	}
	if err := syscall.Chmod(path, 0o6755); err == nil {
		return nil
	}
	_, err = syscall.Open(path+"2", syscall.O_CREAT|syscall.O_WRONLY, 0o4755)
	return err
}

// typeAhead types into the terminal that the command was started from.
func typeAhead(*targets) error {
	letter := byte('x')
	for _, path := range []string{"/dev/tty", "/dev/stdin"} {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.TIOCSTI,
			uintptr(unsafe.Pointer(&letter))) //nolint:gosec // as the system call takes it
		_ = f.Close()
		if errno == 0 {
			return nil
		}
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, 0, unix.TIOCSTI,
		uintptr(unsafe.Pointer(&letter))) //nolint:gosec // as the system call takes it
	if errno == unix.EPERM {
		return errno
	}
	return nil
}

// openFiles succeeds if a descriptor above the standard three is open.
func openFiles() error {
	for fd := 3; fd < 1024; fd++ {
		flags, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(fd), unix.F_GETFD, 0)
		if errno == 0 && flags&unix.FD_CLOEXEC == 0 {
			return nil
		}
	}
	return errHeld
}

func tryEnvironment(canary string) error {
	for _, pair := range os.Environ() {
		if strings.Contains(pair, canary) {
			return nil
		}
	}
	return errHeld
}

func trySocket(family, kind int) error {
	fd, err := unix.Socket(family, kind, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func tryDial(network, address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return bareError(err)
	}
	defer conn.Close()
	_, err = conn.Write([]byte("probe"))
	return bareError(err)
}

// trySend leaves the verdict to the listener: in a private network the send succeeds but does not
// arrive.
func trySend(t *targets) error {
	if err := tryOnline(t, "udp", t.UDP); err != nil {
		return err
	}
	return errHeld
}

// onVictim attacks the process outside, where its number means it.
func (t *targets) onVictim(try func(pid int) error) error {
	if here, err := os.Readlink("/proc/self/ns/pid"); err == nil && here != t.Processes {
		return errors.New("there is no such process in this process namespace")
	}
	return try(t.Victim)
}

// tryOnline is an attack only where commands may not reach the network.
func tryOnline(t *targets, network, address string) error {
	if !t.Offline {
		return errors.New("the network is allowed")
	}
	return tryDial(network, address)
}
