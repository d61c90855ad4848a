package sqlite_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *sqlite.Store {
		t.Helper()
		return open(t, t.TempDir())
	})
}

// elsewhere are the store's methods that the suite does not call: tests of PostgreSQL alone do,
// where engines have leases. The last two are the tests' own.
var elsewhere = []string{"Close", "Lease", "EndLease", "Succeed", "TellErased"}

// TestStore_EveryMethod expects the suite to call every method of the store: it finds a statement
// that only one of the databases takes.
func TestStore_EveryMethod(t *testing.T) {
	files, err := filepath.Glob("../storetest/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var suite strings.Builder
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		suite.Write(source)
	}
	for method := range reflect.TypeFor[*sqlite.Store]().Methods() {
		if !strings.Contains(suite.String(), ".Store."+method.Name+"(") && !slices.Contains(elsewhere, method.Name) {
			t.Errorf("the suite does not call %s", method.Name)
		}
	}
}

func open(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
