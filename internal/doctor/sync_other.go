//go:build !linux

package doctor

import (
	"time"

	"golang.org/x/sys/unix"
)

// trySync is for systems that have files without a name.
func trySync(string) (time.Duration, error) { return 0, errCannotTry }

// kindOf is for Linux, which tells file systems apart by number.
func kindOf(*unix.Statfs_t) string { return "" }
