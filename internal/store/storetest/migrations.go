package storetest

import (
	"os"
	"path/filepath"
	"testing/fstest"
)

// NextMigrations returns the migrations in a directory and one more, which writes: those of the
// next program.
func NextMigrations(dir string) (fstest.MapFS, error) {
	out := fstest.MapFS{"99999_next.sql": {
		Data: []byte("-- +goose Up\nALTER TABLE meta ADD COLUMN next text;\nUPDATE meta SET next = value;\n"),
	}}
	files, err := os.ReadDir(dir)
	for _, file := range files {
		data, unread := os.ReadFile(filepath.Join(dir, file.Name()))
		if unread != nil {
			return nil, unread
		}
		out[file.Name()] = &fstest.MapFile{Data: data}
	}
	return out, err
}
