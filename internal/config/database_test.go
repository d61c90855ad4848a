package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestDatabase shows where the store is, by which word, and that what stands beside a database
// never mixes with another store's.
func TestDatabase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "regie.yaml")
	if err := os.WriteFile(file, []byte("database: postgres://u:sekret@h/file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(environment, flag, from string) (Config, error) {
		return Load(func(name string) string {
			return map[string]string{"REGIE_DATABASE": environment, "REGIE_DATA_DIR": "/data", "HOME": "/nowhere", "REGIE_CONFIG": from}[name]
		}, Flags{Database: flag})
	}
	for _, c := range []struct{ name, environment, flag, file, database, origin string }{
		{"nothing", "", "", "", "", ""},
		{"the embedded one by name", "sqlite", "", "", "", "REGIE_DATABASE"},
		{"environment", "postgres://u@h/x", "", "", "postgres://u@h/x", "REGIE_DATABASE"},
		{"flag over environment", "postgres://u@h/x", "postgresql://u@h/y", "", "postgresql://u@h/y", "--database"},
		{"file", "", "", file, "postgres://u:sekret@h/file", file},
		{"environment over file", "sqlite", "", file, "", "REGIE_DATABASE"},
	} {
		got, err := load(c.environment, c.flag, c.file)
		if err != nil || got.Database != c.database || got.Origin["database"] != c.origin {
			t.Errorf("%s: %q from %q, %v", c.name, got.Database, got.Origin["database"], err)
		}
		if own := got.DataDir != "/data"; own != (c.database != "") || own && !strings.HasPrefix(got.DataDir, "/data/postgres-") {
			t.Errorf("%s: the data directory is %s", c.name, got.DataDir)
		}
		if got.OwnDir() != "/data" {
			t.Errorf("%s: what is Regie's own is %s", c.name, got.OwnDir())
		}
	}
	for _, bad := range []string{"mysql://u:sekret@h/x", "host=h password=sekret", "postgres://u:se%kret@h/x"} {
		if _, err := load(bad, "", ""); regie.CodeOf(err) != regie.CodeBadRequest || strings.Contains(err.Error(), "kret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	same := map[string]bool{}
	for _, one := range []string{"postgres://u@h:5432/x", "postgres://v:sekret@h:5432/x?sslmode=disable", "postgresql://h:5432/x?search_path=regie"} {
		got, err := load(one, "", "")
		if err != nil {
			t.Fatal(err)
		}
		same[got.DataDir] = true
	}
	other, err := load("postgres://u@h:5432/x?search_path=another", "", "")
	if len(same) != 1 || err != nil || same[other.DataDir] {
		t.Errorf("the same tables lead to %v, others to %s, %v", same, other.DataDir, err)
	}
}

// TestOneDatabase: spellings of one address have one directory, and other addresses others.
func TestOneDatabase(t *testing.T) {
	at := func(address, host string) string {
		env := map[string]string{"REGIE_DATABASE": address, "REGIE_DATA_DIR": "/data", "HOME": "/nowhere", "PGHOST": host}
		got, err := Load(func(name string) string { return env[name] }, Flags{})
		if err != nil {
			t.Fatal(err)
		}
		return got.DataDir
	}
	for _, same := range [][]string{
		{"postgres://h/x", "postgres://h:5432/x", "postgres://H/x", "postgres:///x?host=h", "postgres://h/x?port=5432", "postgres://other/x?host=h"},
		{"postgres://x@h/", "postgres://y@h/x"},
		{"postgres://[::1]/x", "postgres://[::1]:5432/x"},
		{"postgres:///x?host=/run/postgresql", "postgres:///x?host=/run/postgresql&port=5432"},
	} {
		for _, address := range same[1:] {
			if at(address, "") != at(same[0], "") {
				t.Errorf("%s and %s are two", same[0], address)
			}
		}
	}
	apart := map[string]string{}
	for _, address := range []string{"postgres://h/x", "postgres://h:5433/x", "postgres://i/x", "postgres://h/y", "postgres://z@h/", "postgres:///x?host=/a", "postgres:///x?host=/A"} {
		if before := apart[at(address, "")]; before != "" {
			t.Errorf("%s and %s are one", before, address)
		}
		apart[at(address, "")] = address
	}
	if at("postgres:///x", "h") == at("postgres:///x", "i") {
		t.Error("two servers of the environment are one")
	}
}
