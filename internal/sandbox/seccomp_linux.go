package sandbox

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The offsets of struct seccomp_data; of an argument the lower half, on machines that put it first.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// maxJump is how far a conditional jump of BPF reaches.
const maxJump = 255

const (
	setIDs    = 0o6000 // setuid and setgid
	kindMask  = 0o170000
	kindChar  = 0o020000
	kindBlock = 0o060000
	newSpaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	tioclinux  = 0x541c
	tioccons   = 0x541d
	tmpfileBit = 0o20000000 // __O_TMPFILE
)

// refusedCalls returns system calls that no command needs and that programs have used to escape
// sandboxes: access to other processes, mounts, namespaces, kernel programs, keys, the machine's
// state. Each architecture has its own in a separate file.
func refusedCalls() []uint32 {
	return append([]uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
		unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
		unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL,
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
		unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
		unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK, unix.SYS_MOVE_PAGES,
		unix.SYS_MIGRATE_PAGES, unix.SYS_LOOKUP_DCOOKIE,
		unix.SYS_NFSSERVCTL, unix.SYS_MEMFD_SECRET,
	}, refusedHere...)
}

// absent are system calls with arguments that a filter cannot read. Programs manage without them on
// a kernel that lacks them.
var absent = []uint32{
	unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_IO_URING_SETUP,
	unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

type filter []unix.SockFilter

func (f *filter) addInstruction(code uint16, k uint32, jt, jf int) {
	if jt > maxJump || jf > maxJump {
		panic("sandbox: a jump of the filter is too long")
	}
	*f = append(*f, unix.SockFilter{Code: code, Jt: uint8(jt), Jf: uint8(jf), K: k})
}

func (f *filter) loadWord(offset uint32) {
	f.addInstruction(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0)
}

func (f *filter) loadArgument(n uint32) { f.loadWord(dataArgs + 8*n) }

func (f *filter) returnAction(k uint32) { f.addInstruction(unix.BPF_RET|unix.BPF_K, k, 0, 0) }

func (f *filter) refuseWith(errno unix.Errno) { f.returnAction(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

// refuseEqual and any refuse if the loaded word equals a value, or has one of the bits.
func (f *filter) refuseEqual(value uint32, errno unix.Errno) {
	f.addInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, value, 0, 1)
	f.refuseWith(errno)
}

func (f *filter) refuseBits(bits uint32) {
	f.addInstruction(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, bits, 0, 1)
	f.refuseWith(unix.EPERM)
}

// onCall adds the checks of one system call; it allows what they do not refuse.
func (f *filter) onCall(number uint32, body func(*filter)) {
	var inner filter
	body(&inner)
	inner.returnAction(unix.SECCOMP_RET_ALLOW)
	f.addInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, number, 0, len(inner))
	*f = append(*f, inner...)
}

// sockets says which families of sockets a command gets.
type sockets struct{ none, unix bool }

// shared are calls that reach processes of the same user by number, independent of paths and
// networks. They are refused for a command without its own namespace.
var shared = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_MSGGET,
	unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	unix.SYS_PIDFD_OPEN,
}

// filterProgram returns the filter of a command; alone says that it has its own namespaces.
func filterProgram(s sockets, alone bool) *filter {
	f := &filter{}
	f.loadWord(dataArch)
	f.addInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, auditArch, 1, 0)
	f.returnAction(unix.SECCOMP_RET_KILL_PROCESS) // a call in the manner of another machine has other numbers
	f.loadWord(dataNumber)
	if otherNumbers != 0 {
		f.addInstruction(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, otherNumbers, 0, 1)
		f.refuseWith(unix.ENOSYS)
	}
	for _, number := range refusedCalls() {
		f.refuseEqual(number, unix.EPERM)
	}
	for _, number := range absent {
		f.refuseEqual(number, unix.ENOSYS)
	}
	if !alone {
		for _, number := range shared {
			f.refuseEqual(number, unix.EPERM)
		}
		f.onCall(unix.SYS_PRLIMIT64, func(f *filter) { onlySelf(f, 0) })
		f.onCall(unix.SYS_SETPRIORITY, func(f *filter) { onlySelf(f, 1) })
	}
	f.onCall(unix.SYS_CLONE, func(f *filter) { f.loadArgument(0); f.refuseBits(newSpaces) })
	f.onCall(unix.SYS_IOCTL, func(f *filter) {
		f.loadArgument(1)
		for _, request := range []uint32{unix.TIOCSTI, tioclinux, unix.TIOCSETD, tioccons} {
			f.refuseEqual(request, unix.EPERM)
		}
	})
	f.onCall(unix.SYS_SOCKET, s.addSocketRules)
	f.onCall(unix.SYS_FCHMOD, func(f *filter) { f.loadArgument(1); f.refuseBits(setIDs) })
	f.onCall(unix.SYS_FCHMODAT, func(f *filter) { f.loadArgument(2); f.refuseBits(setIDs) })
	f.onCall(unix.SYS_FCHMODAT2, func(f *filter) { f.loadArgument(2); f.refuseBits(setIDs) })
	f.onCall(unix.SYS_MKNODAT, func(f *filter) { noDevice(f, 2) })
	f.onCall(unix.SYS_OPENAT, func(f *filter) { noSetID(f, 2, 3) })
	filterHere(f)
	f.returnAction(unix.SECCOMP_RET_ALLOW)
	return f
}

// onlySelf refuses calls about another process; argument n is its number.
func onlySelf(f *filter, n uint32) {
	f.loadArgument(n)
	f.addInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, 0, 1, 0)
	f.refuseWith(unix.EPERM)
}

// noDevice refuses to make a device, and what would run with the rights of its owner; the mode is
// argument n.
func noDevice(f *filter, n uint32) {
	f.loadArgument(n)
	f.refuseBits(setIDs)
	f.addInstruction(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, kindMask, 0, 0)
	f.refuseEqual(kindChar, unix.EPERM)
	f.refuseEqual(kindBlock, unix.EPERM)
}

// noSetID refuses to create a file with setuid or setgid. Without creation the mode has no effect.
func noSetID(f *filter, flags, mode uint32) {
	f.loadArgument(flags)
	f.addInstruction(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, unix.O_CREAT|tmpfileBit, 0, 3)
	f.loadArgument(mode)
	f.refuseBits(setIDs)
}

// addSocketRules allows the sockets that an own or allowed network needs. The machine's virtual
// network sockets, raw packets and the kernel's own protocols belong to no namespace, or expose
// more of the kernel than a command needs.
func (s sockets) addSocketRules(f *filter) {
	if s.none {
		f.refuseWith(unix.EACCES)
		return
	}
	f.loadArgument(0)
	allowed := []uint32{unix.AF_INET, unix.AF_INET6}
	if s.unix {
		allowed = append(allowed, unix.AF_UNIX)
	}
	for _, family := range allowed {
		f.addInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, family, 0, 1)
		f.returnAction(unix.SECCOMP_RET_ALLOW)
	}
	f.addInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.AF_NETLINK, 1, 0)
	f.refuseWith(unix.EAFNOSUPPORT)
	f.loadArgument(2)
	f.addInstruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.NETLINK_ROUTE, 1, 0)
	f.refuseWith(unix.EAFNOSUPPORT)
}

// installFilter puts this thread, and the program that it becomes, under the filter. It is
// permanent.
func (f *filter) installFilter() error {
	prog := unix.SockFprog{Len: uint16(len(*f)), Filter: &(*f)[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&prog))) //nolint:gosec // as the system call takes it
	runtime.KeepAlive(f)
	if errno != 0 {
		return errno
	}
	return nil
}

// seccompThere checks for support of filters: with it, an empty filter fails as a bad address.
func seccompThere() bool {
	if auditArch == 0 {
		return false
	}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0, 0, 0)
	return errors.Is(err, unix.EFAULT) || errors.Is(err, unix.EACCES)
}
