package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_X86_64
	otherNumbers = 0x40000000 // those of x32
)

// refusedHere are the calls that only this machine has.
var refusedHere = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_CREATE_MODULE,
	unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
}

// filterHere adds rules for this architecture's older calls.
func filterHere(f *filter) {
	f.onCall(unix.SYS_CHMOD, func(f *filter) { f.loadArgument(1); f.refuseBits(setIDs) })
	f.onCall(unix.SYS_MKNOD, func(f *filter) { noDevice(f, 1) })
	f.onCall(unix.SYS_CREAT, func(f *filter) { f.loadArgument(1); f.refuseBits(setIDs) })
	f.onCall(unix.SYS_OPEN, func(f *filter) { noSetID(f, 1, 2) })
}
