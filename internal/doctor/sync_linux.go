package doctor

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// trySync writes a page and has it brought to the disk, in a file that has no name and is gone when
// it is closed.
func trySync(dir string) (time.Duration, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) ||
		errors.Is(err, unix.ENOENT) {
		return 0, errCannotTry
	}
	if err != nil {
		return 0, err
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	if _, err := f.Write(make([]byte, 4096)); err != nil {
		return 0, err
	}
	start := time.Now()
	err = f.Sync()
	return time.Since(start), err
}
