package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/regie-run/regie"
)

const (
	lockName   = "engine.lock"
	socketName = "engine.sock"
	// maxSocketPath is what fits into a socket address on every system that we know.
	maxSocketPath = 100
)

// errHeld says that another process holds the engine lock.
var errHeld = regie.Errorf(regie.CodeLocked, "another engine holds this data directory")

// lock takes the engine lock of a data directory (decision 1). The kernel gives it back when the process dies, however it dies.
func lock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, dirError(err, dir)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, dirError(err, dir)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(errHeld, f.Close())
		}
		return nil, errors.Join(dirError(err, dir), f.Close())
	}
	// Who holds it, for people who look.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

func dirError(err error, dir string) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return regie.Errorf(regie.CodeNoPermission, "no permission for the data directory %s: choose another one with REGIE_DATA_DIR (%v)", dir, err)
	case errors.Is(err, syscall.EROFS):
		return regie.Errorf(regie.CodeReadOnly, "the data directory %s is read-only: choose another one with REGIE_DATA_DIR (%v)", dir, err)
	case errors.Is(err, syscall.ENOSPC):
		return regie.Errorf(regie.CodeDiskFull, "the disk that holds %s is full: free some space (%v)", dir, err)
	default:
		return regie.Errorf(regie.CodeBadRequest, "the data directory %s cannot be used: %v", dir, err)
	}
}

// socketPath returns where the engine of a data directory listens: in it, or, where that path is too long for a socket address, in
// a private directory named after it.
func socketPath(dir string) (string, error) {
	path := filepath.Join(dir, socketName)
	if len(path) <= maxSocketPath {
		return path, nil
	}
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" {
		base = os.TempDir()
	}
	private := filepath.Join(base, fmt.Sprintf("regie-%d", os.Getuid()))
	if err := os.Mkdir(private, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", dirError(err, private)
	}
	info, err := os.Lstat(private)
	if err != nil {
		return "", dirError(err, private)
	}
	// Somebody else's directory could hold somebody else's socket.
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return "", regie.Errorf(regie.CodeNoPermission, "%s must be a private directory of yours: remove it, or choose a shorter data directory with REGIE_DATA_DIR", private)
	}
	hash := regie.HashOf([]byte(dir))
	return filepath.Join(private, hex.EncodeToString(hash[:8])+".sock"), nil
}

// listen opens the engine's socket with mode 0600. The caller holds the lock, so a socket that is there is a dead engine's.
func listen(dir string) (net.Listener, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, dirError(err, dir)
	}
	// The mask makes the socket private from its first moment, not only after a chmod.
	old := syscall.Umask(0o177)
	listener, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, dirError(err, dir)
	}
	return listener, nil
}

func dialer(dir string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		path, err := socketPath(dir)
		if err != nil {
			return nil, err
		}
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
}
