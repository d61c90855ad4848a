//go:build faults

package crash

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// diskOp is one thing that SQLite did to a file.
type diskOp struct {
	kind   byte // one of the op constants
	path   string
	offset int64  // of a write; the new size of a truncation
	data   []byte // of a write
}

const (
	opWrite    = 'w'
	opTruncate = 't'
	opSync     = 's' // it came back: what was written before is on the disk
	opDelete   = 'd'
)

// recorder stands between SQLite and its files: all that it does to them goes into a log, and the
// n-th time it may be the death of the process. SQLite calls it with pointers of its own, so it is
// global.
var recorder struct {
	mu    sync.Mutex
	log   *os.File
	dieAt int // counts down; zero: never
	paths map[uintptr]string
	plain sqlite3.Tsqlite3_vfs                     // the system's
	own   map[uintptr]*ownMethods                  // by those of the system
	files map[uintptr]*sqlite3.Tsqlite3_io_methods // the system's methods, by file
}

// ownMethods are a table of the system's methods with some of them ours. C memory, because SQLite
// keeps its address.
type ownMethods struct {
	plain *sqlite3.Tsqlite3_io_methods
	at    uintptr
}

// recordDisk makes the recorder the file system of this process's SQLite.
func recordDisk(path string) error {
	var err error
	if recorder.log, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return err
	}
	recorder.dieAt, _ = strconv.Atoi(os.Getenv("REGIE_CRASH_DIE_AT"))
	recorder.paths, recorder.own, recorder.files = map[uintptr]string{}, map[uintptr]*ownMethods{}, map[uintptr]*sqlite3.Tsqlite3_io_methods{}
	tls := libc.NewTLS()
	sqlite3.Xsqlite3_initialize(tls)
	system := sqlite3.Xsqlite3_vfs_find(tls, 0)
	if system == 0 {
		return errors.New("SQLite has no file system")
	}
	recorder.plain = *at[sqlite3.Tsqlite3_vfs](system)
	own := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(recorder.plain)))
	vfs := at[sqlite3.Tsqlite3_vfs](own)
	*vfs = recorder.plain
	if vfs.FzName, err = libc.CString("recorder"); err != nil {
		return err
	}
	vfs.FxOpen, vfs.FxDelete = pointer(diskOpen), pointer(diskDelete)
	if code := sqlite3.Xsqlite3_vfs_register(tls, own, 1); code != sqlite3.SQLITE_OK {
		return errors.New("SQLite does not take the file system")
	}
	return nil
}

// at reads memory of SQLite. It is written so because vet, rightly, takes a plain conversion for a
// mistake.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// pointer is a function of Go as SQLite's translated C calls it.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// function is such a pointer as a function of Go.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

type (
	openFunc     = func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32
	deleteFunc   = func(*libc.TLS, uintptr, uintptr, int32) int32
	writeFunc    = func(*libc.TLS, uintptr, uintptr, int32, int64) int32
	truncateFunc = func(*libc.TLS, uintptr, int64) int32
	syncFunc     = func(*libc.TLS, uintptr, int32) int32
)

// diskOpen opens a file as the system does and puts our methods into it.
func diskOpen(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	code := function[openFunc](recorder.plain.FxOpen)(tls, vfs, name, file, flags, out)
	methods := at[sqlite3.Tsqlite3_file](file)
	if code != sqlite3.SQLITE_OK || methods.FpMethods == 0 || name == 0 { // a nameless file is gone with its process
		return code
	}
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	own := recorder.own[methods.FpMethods]
	if own == nil {
		own = &ownMethods{plain: at[sqlite3.Tsqlite3_io_methods](methods.FpMethods)}
		own.at = libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(*own.plain)))
		table := at[sqlite3.Tsqlite3_io_methods](own.at)
		*table = *own.plain
		table.FxWrite, table.FxTruncate, table.FxSync = pointer(diskWrite), pointer(diskTruncate), pointer(diskSync)
		recorder.own[methods.FpMethods] = own
	}
	recorder.paths[file], recorder.files[file] = libc.GoString(name), own.plain
	methods.FpMethods = own.at
	return code
}

// file is what is known of an open file.
func file(p uintptr) (string, *sqlite3.Tsqlite3_io_methods) {
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	return recorder.paths[p], recorder.files[p]
}

func diskWrite(tls *libc.TLS, p, data uintptr, n int32, offset int64) int32 {
	path, plain := file(p)
	record(diskOp{opWrite, path, offset, unsafe.Slice(at[byte](data), n)})
	return function[writeFunc](plain.FxWrite)(tls, p, data, n, offset)
}

func diskTruncate(tls *libc.TLS, p uintptr, size int64) int32 {
	path, plain := file(p)
	record(diskOp{kind: opTruncate, path: path, offset: size})
	return function[truncateFunc](plain.FxTruncate)(tls, p, size)
}

func diskSync(tls *libc.TLS, p uintptr, flags int32) int32 {
	path, plain := file(p)
	code := function[syncFunc](plain.FxSync)(tls, p, flags)
	if code == sqlite3.SQLITE_OK {
		record(diskOp{kind: opSync, path: path})
	}
	return code
}

func diskDelete(tls *libc.TLS, vfs, name uintptr, sync int32) int32 {
	record(diskOp{kind: opDelete, path: libc.GoString(name)})
	return function[deleteFunc](recorder.plain.FxDelete)(tls, vfs, name, sync)
}

// record writes an operation into the log, and ends the process where its time has come: before a
// write is done, after a sync.
func record(op diskOp) {
	if path, err := filepath.Abs(op.path); err == nil {
		op.path = path
	}
	head := make([]byte, 0, 32+len(op.path)+len(op.data))
	head = append(head, op.kind)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(op.path)))
	head = binary.LittleEndian.AppendUint64(head, uint64(op.offset))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(op.data)))
	head = append(append(head, op.path...), op.data...)
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	_, err := recorder.log.Write(head)
	if recorder.dieAt--; err != nil || recorder.dieAt == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; nothing more may happen here
	}
}

// readDisk reads the log of a process that has ended.
func readDisk(path string) ([]diskOp, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var out []diskOp
	const head = 1 + 4 + 8 + 4
	for err == nil && len(data) > 0 {
		if len(data) < head {
			return nil, io.ErrUnexpectedEOF
		}
		name := int(binary.LittleEndian.Uint32(data[1:]))
		size := int(binary.LittleEndian.Uint32(data[13:]))
		if len(data) < head+name+size {
			return nil, io.ErrUnexpectedEOF
		}
		out = append(out, diskOp{
			kind: data[0], offset: int64(binary.LittleEndian.Uint64(data[5:])), path: string(data[head : head+name]), data: data[head+name : head+name+size],
		})
		data = data[head+name+size:]
	}
	return out, err
}
