package app_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/regie-run/regie/internal/app"
)

// TestPlaceOfLock: who takes a lock that another process had has its place; who takes a copy of it
// has not.
func TestPlaceOfLock(t *testing.T) {
	t.Parallel()
	place := func(dir string) string {
		t.Helper()
		f, place, err := app.Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := app.Holder(dir); got != strconv.Itoa(os.Getpid()) {
			t.Errorf("the holder is %q", got)
		}
		return place
	}
	dir, other := t.TempDir(), t.TempDir()
	first := place(dir)
	if first == "" || place(dir) != first {
		t.Error("the same lock has two places")
	}
	copied, err := os.ReadFile(filepath.Join(dir, "engine.lock"))
	if err == nil {
		err = os.WriteFile(filepath.Join(other, "engine.lock"), copied, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	second := place(other)
	if second == first || place(other) != second {
		t.Error("a copied lock has the place of the first one, or none of its own")
	}
	if err := os.WriteFile(filepath.Join(dir, "engine.lock"), []byte("1\ncut o"), 0o600); err != nil {
		t.Fatal(err)
	}
	if third := place(dir); third == first || third == "" {
		t.Errorf("of a lock that was cut off the place is %q", third)
	}
}

// TestSameNames: an engine in another container may have the same machine's name and the same path
// of its data directory. It lives all the same.
func TestSameNames(t *testing.T) {
	t.Parallel()
	b, db := shared(t, newModel(t))
	first := b.connect()
	defer first.Close()
	elsewhere := b.elsewhere()
	if err := os.Rename(b.settings.DataDir, b.settings.DataDir+".first"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(elsewhere, b.settings.DataDir); err != nil {
		t.Fatal(err)
	}
	second := b.connect()
	defer second.Close()
	var alive int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM holders WHERE until > clock_timestamp()").Scan(&alive); err != nil {
		t.Fatal(err)
	}
	if alive != 2 || !second.IsEngine() {
		t.Errorf("%d engines hold a lease, want 2", alive)
	}
}
