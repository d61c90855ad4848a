//go:build !linux

package snapshot

import (
	"errors"
	"os"
)

// clone makes a new file share the blocks of another one until either is written; here it is not
// known how.
func clone(_, _ *os.File) error { return errors.ErrUnsupported }

// syncAll makes everything safe that was written to a file system; here that is done file by file.
func syncAll(*os.File) error { return errors.ErrUnsupported }
