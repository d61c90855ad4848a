package index

import (
	"context"
	"errors"
	"io/fs"
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

// lockSilence is how long somebody waits for another one before that is told. A variable for the
// tests.
var lockSilence = 300 * time.Millisecond

// lock takes the writers' lock of an index; the kernel gives it back when the process dies. Who
// waits for it asks now and then, because a call that waits in the kernel could not be cancelled;
// waits, which may be nil, is called once where that takes long.
func lock(ctx context.Context, path string, waits func()) (unlock func(), err error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) { // somebody has deleted the directory
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			f, err = os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil && linked(f, path+".lock"):
			return func() { _ = f.Close() }, nil
		case err == nil: // it was deleted: another one has its name
			_ = f.Close()
			return lock(ctx, path, waits)
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(err, f.Close())
		}
		if waits != nil && time.Since(began) >= lockSilence {
			waits()
			waits = nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(lockPause):
		}
	}
}

// linked reports whether an open file still has its name.
func linked(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Stat(path)
	return err == nil && os.SameFile(ours, theirs)
}
