package sqlite

import (
	"errors"
	"strings"
	"testing"

	lib "modernc.org/sqlite/lib"

	"github.com/regie-run/regie"
)

// failure is an error as the driver gives it.
type failure int

func (f failure) Error() string { return "disk I/O error" }
func (f failure) Code() int     { return int(f) }

// TestExplainDriver: a full disk is called one whichever file had no room, and no failure of a disk
// is called ours.
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

// state is an error of a database server.
type state string

func (s state) Error() string    { return "FATAL: no" }
func (s state) SQLState() string { return string(s) }

// TestExplainState: of whose fault and for how long an error of a server is.
func TestExplainState(t *testing.T) {
	for _, c := range []struct {
		states []string
		code   regie.Code
	}{
		{[]string{"08006", "57P01", "57P03", "57P05", "25P03", "25P04", "53300", "58030"}, regie.CodeDatabaseDown},
		{[]string{"40001", "40P01", "55P03", "57014"}, regie.CodeDatabaseLocked},
		{[]string{"23505"}, regie.CodeConflict},
		{[]string{"53100"}, regie.CodeDiskFull},
		{[]string{"25006"}, regie.CodeReadOnly},
		{[]string{"28P01", "42501"}, regie.CodeNoPermission},
		{[]string{"3D000"}, regie.CodeNotFound},
		{[]string{"3F000", "42P01", "XX001"}, regie.CodeCorrupt},
		{[]string{"25P02", "42601", "XX000"}, regie.CodeInternal},
	} {
		for _, s := range c.states {
			if err := ExplainState(state(s)); regie.CodeOf(err) != c.code {
				t.Errorf("%s: %v", s, err)
			}
		}
	}
	if err := ExplainState(errors.New("no route")); regie.CodeOf(err) != regie.CodeDatabaseDown {
		t.Error(err)
	}
}
