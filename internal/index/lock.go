package index

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	errNoSpace  = syscall.ENOSPC
	errReadOnly = syscall.EROFS
)

// lockPause is how often a writer asks again for the lock that another process holds.
const lockPause = 20 * time.Millisecond

// lockFile locks path.lock; the kernel releases the lock when the process dies. It polls, because a
// call that waits in the kernel cannot be cancelled.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if info, failed := f.Stat(); err == nil && failed == nil && isFile(path+".lock", info) {
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close() // another process holds it, or its name was deleted
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPause):
		}
	}
}
