package app

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/config"
)

const (
	lockName   = "engine.lock"
	socketName = "engine.sock"
	// maxSocketPath is what fits into a socket address on every system that we know.
	maxSocketPath = 100
)

// errHeld says that another process holds the engine lock.
var errHeld = regie.Errorf(regie.CodeLocked, "another engine holds this data directory")

// lockDataDir takes the engine lock of a data directory (decision 1), and writes down who holds it
// and by which rules it decides. The kernel gives it back when the process dies, however it dies.
// place is the same for all who have held this very lock, of whom only one lives.
func lockDataDir(dir string, rules regie.Hash) (f *os.File, place string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", dirError(err, dir)
	}
	f, err = os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", dirError(err, dir)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, "", errors.Join(errHeld, f.Close())
		}
		return nil, "", errors.Join(dirError(err, dir), f.Close())
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n%s\n", os.Getpid(), rules), 0) // for people who look, and otherRules
	}
	return f, placeOf(f), nil
}

// placeOf names a lock file: a copy of it, and the same file after a restart of the machine, has
// another name. Those of machine and directory would not do, which two containers may have alike.
func placeOf(f *os.File) string {
	host, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // elsewhere it has to do without
	name := host + string(boot)
	if info, err := f.Stat(); err == nil {
		if file, ok := info.Sys().(*syscall.Stat_t); ok {
			name += fmt.Sprintf(":%d:%d", file.Dev, file.Ino)
		}
	}
	return regie.HashOf([]byte(name)).String()
}

// readLock returns the process that holds the engine lock of a data directory, as it wrote it
// there, and the rules that it decides by; empty where that cannot be read.
func readLock(dir string) (pid, rules string) {
	data, _ := os.ReadFile(filepath.Join(dir, lockName))
	pid, rules, _ = strings.Cut(string(data), "\n")
	if _, err := strconv.Atoi(pid); err != nil {
		return "", ""
	}
	return pid, strings.TrimSpace(rules)
}

// describeHolder names the process that holds a data directory, for people.
func describeHolder(dir string) string {
	pid, _ := readLock(dir)
	return cmp.Or(pid, "?")
}

// otherRules reports whether settings that were named, by --config or REGIE_CONFIG, are not those
// by which the engine of their data directory decides.
func otherRules(c *config.Config) bool {
	_, theirs := readLock(c.DataDir)
	return c.Apart && theirs != "" && theirs != c.Rules().String()
}

func dirError(err error, dir string) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return regie.Errorf(regie.CodeNoPermission,
			"no permission for the data directory %s: choose another one with REGIE_DATA_DIR (%v)", dir, err)
	case errors.Is(err, syscall.EROFS):
		return regie.Errorf(regie.CodeReadOnly,
			"the data directory %s is read-only: choose another one with REGIE_DATA_DIR (%v)", dir, err)
	case errors.Is(err, syscall.ENOSPC):
		return regie.Errorf(regie.CodeDiskFull, "the disk that holds %s is full: free some space (%v)", dir, err)
	default:
		return regie.Errorf(regie.CodeBadRequest, "the data directory %s cannot be used: %v", dir, err)
	}
}

// socketPath returns where the engine of a data directory listens: in it, or, where that path is
// too long for a socket address, in a private directory named after it.
func socketPath(dir string) (string, error) {
	path, private := socketPlace(dir)
	if private == "" {
		return path, nil
	}
	if err := os.Mkdir(private, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", dirError(err, private)
	}
	info, err := os.Lstat(private)
	if err != nil {
		return "", dirError(err, private)
	}
	// A directory of another user could hold that user's socket.
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() || !info.IsDir() ||
		info.Mode().Perm() != 0o700 {
		return "", regie.Errorf(regie.CodeNoPermission,
			"%s must be a private directory of yours: remove it, or choose a shorter data directory with REGIE_DATA_DIR", private)
	}
	return path, nil
}

// socketPlace returns where that is, and the private directory that it needs, if any. It makes
// nothing.
func socketPlace(dir string) (path, private string) {
	if path = filepath.Join(dir, socketName); len(path) <= maxSocketPath {
		return path, ""
	}
	private = filepath.Join(cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()), fmt.Sprintf("regie-%d", os.Getuid()))
	hash := regie.HashOf([]byte(dir))
	return filepath.Join(private, hex.EncodeToString(hash[:8])+".sock"), private
}

// listenSocket opens the engine's socket with mode 0600. The caller holds the lock, so a socket
// that is there is a dead engine's.
func listenSocket(dir string) (net.Listener, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, dirError(err, dir)
	}
	// Linux takes the mode that a socket has before it is bound: it is private from its first
	// moment on, and no mask of the process changes under others.
	private := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// where this does nothing, the chmod below does
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	listener, err := private.Listen(context.Background(), "unix", path)
	if err == nil {
		if err = os.Chmod(path, 0o600); err != nil {
			err = errors.Join(err, listener.Close())
		}
	}
	if err != nil {
		return nil, dirError(err, dir)
	}
	return ownListener{listener}, nil
}

// ownListener accepts connections of this user's processes alone.
type ownListener struct{ net.Listener }

// Accept implements net.Listener.
func (l ownListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || isOwnPeer(conn) {
			return conn, err
		}
		_ = conn.Close() // somebody else's, who is told nothing
	}
}

// Runs reports whether an engine works in the data directory of the settings and answers.
func Runs(ctx context.Context, c config.Config) bool {
	asked := client.Local(dialSocket(c.DataDir), "")
	defer asked.Close()
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	return asked.Alive(ctx) == nil
}

func dialSocket(dir string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		path, err := socketPath(dir)
		if err != nil {
			return nil, err
		}
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
}
