package sqlite

import (
	"errors"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// ExplainState turns an error of a database server, or of the connection, into one with a code and
// a remedy.
func ExplainState(err error) error {
	var state interface {
		error
		SQLState() string
	}
	if !errors.As(err, &state) {
		return regie.Errorf(regie.CodeDatabaseDown,
			"the database cannot be reached: nothing is lost, try again when it is back (%v)", err)
	}
	is := func(beginnings ...string) bool {
		return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(state.SQLState(), b) })
	}
	switch {
	case is("23"):
		return regie.Errorf(regie.CodeConflict, "the store refused this: %v", state)
	case is("40", "55P03", "57014"):
		return regie.Errorf(regie.CodeDatabaseLocked,
			"the database is busy with other operations: try again (%v)", state)
	case is("53100"):
		return regie.Errorf(regie.CodeDiskFull,
			"the disk of the database server is full: free some space, nothing was lost (%v)", state)
	case is("08", "57", "25P03", "25P04", "53", "58"):
		return regie.Errorf(regie.CodeDatabaseDown,
			"the database server ended the connection: nothing is lost, try again when it is back (%v)", state)
	case is("25006"):
		return regie.Errorf(regie.CodeReadOnly, "the database is read-only: use its primary server (%v)", state)
	case is("28", "42501"):
		return regie.Errorf(regie.CodeNoPermission, "the database refused the user or the password: %v", state)
	case is("3D000"):
		return regie.Errorf(regie.CodeNotFound, "there is no such database on the server: make it with createdb (%v)",
			state)
	case is("3F000", "42P01", "XX001", "XX002"):
		return regie.Errorf(regie.CodeCorrupt, "the database found damage in its files: restore a backup (%v)", state)
	case is("22021"):
		return regie.Errorf(regie.CodeBadRequest, "the database accepts only names in UTF-8 without NUL: %v",
			state)
	default:
		return regie.Errorf(regie.CodeInternal, "the store failed: %v", state)
	}
}
