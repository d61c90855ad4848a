package storetest

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// NextMigrations returns the migrations of the package under test and one more: those of the next
// program.
func NextMigrations(t *testing.T) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{"99999_next.sql": {Data: []byte("-- +goose Up\nALTER TABLE meta ADD COLUMN next text;\n")}}
	files, err := filepath.Glob("migrations/*.sql")
	for _, name := range files {
		var data []byte
		if data, err = os.ReadFile(name); err == nil {
			out[filepath.Base(name)] = &fstest.MapFile{Data: data}
		}
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations: %v", len(files), err)
	}
	return out
}
