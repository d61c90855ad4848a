package sqlite

import (
	"strings"
	"testing"

	lib "modernc.org/sqlite/lib"

	"github.com/regie-run/regie"
)

// failure is an error as the driver gives it.
type failure int

func (f failure) Error() string { return "disk I/O error" }
func (f failure) Code() int     { return int(f) }

// TestExplainDriver: a full disk is called one whichever file had no room, and no failure of a disk is called ours.
func TestExplainDriver(t *testing.T) {
	for code, want := range map[failure]struct {
		code regie.Code
		says string
	}{
		lib.SQLITE_FULL:           {regie.CodeDiskFull, "is full"},
		lib.SQLITE_IOERR_SHMSIZE:  {regie.CodeDiskFull, "is full"},
		lib.SQLITE_IOERR_FSYNC:    {regie.CodeInternal, "the disk that holds a.db fails"},
		lib.SQLITE_BUSY_RECOVERY:  {regie.CodeDatabaseLocked, "another program"},
		lib.SQLITE_CORRUPT_VTAB:   {regie.CodeCorrupt, "restore a backup"},
		lib.SQLITE_CANTOPEN_ISDIR: {regie.CodeReadOnly, "check the permissions"},
		lib.SQLITE_MISUSE:         {regie.CodeInternal, "the store failed"},
	} {
		if err := explainDriver(code, "a.db"); regie.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%d: %v", code, err)
		}
	}
}
