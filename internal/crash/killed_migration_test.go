//go:build faults

package crash

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

var openStep = flag.Int("open-step", 1, "kill a migration at each operation on a file, or at one of so many from a random one on")

// legacy is a database as a death has left it, with what was in it.
type legacy struct {
	h       *harness
	session regie.ID
	round   regie.ID
	files   map[string][]byte // by name in the data directory
	view    store.RoundView
	report  store.VerifyReport
	next    fs.FS // of sqlite.Config
}

// killed makes a database whose process died in the middle of a batch: its log is not in the main
// file yet.
func killed(t *testing.T) *legacy {
	t.Helper()
	h := newHarness(t, "")
	l := &legacy{h: h}
	for died := false; !died; h.next++ { // until there is one that has an action, and one log
		for planOf(h.next).kind != kinds[0] || len(planOf(h.next).notes) > 0 {
			h.next++
		}
		h.newStore()
		l.session = regie.NewID()
		child := h.start(t.Context(), l.session, planOf(h.next), fault.EffectAfter+":1")
		died = h.wait(t.Context(), child, planOf(h.next))
	}
	l.keep()
	l.read(h.dir)
	return l
}

// keep takes the files as they are. The view from outside is open: its end would tidy up.
func (l *legacy) keep() {
	l.files = map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(l.h.dir, "data", "*"))
	if err != nil {
		l.h.t.Fatal(err)
	}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || strings.HasSuffix(name, "-shm") {
			continue
		}
		if l.files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			l.h.t.Fatal(err)
		}
	}
}

// restore makes a data directory of the files.
func (l *legacy) restore(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range l.files {
		if err := os.WriteFile(filepath.Join(dir, "data", name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// read opens a store and takes what it says, or compares it with what was taken before.
func (l *legacy) read(dir string) {
	t, ctx := l.h.t, context.Background()
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: filepath.Join(dir, "data"), Migrations: l.next})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	report, err := s.Verify(ctx, l.session)
	if err != nil {
		t.Fatal(err)
	}
	if l.round.IsZero() {
		if l.round, err = s.OpenRound(ctx, l.session); err != nil || l.round.IsZero() {
			t.Fatalf("no round is open: %v", err)
		}
	}
	view, err := s.RoundView(ctx, l.round)
	if err != nil {
		t.Fatal(err)
	}
	if l.report.Events == 0 {
		l.report, l.view = report, view
	}
	if diff := cmp.Diff([]any{l.report, l.view}, []any{report, view}); diff != "" {
		t.Errorf("it is not what it was (-was +is):\n%s", diff)
	}
	if err := s.QuickCheck(ctx); err != nil {
		t.Error(err)
	}
}

// open runs a process that opens the store, and reports whether it died.
func (l *legacy) open(t *testing.T, dir, point string, dieAt int) (died bool) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = []string{
		"REGIE_CRASH_CHILD=open", "REGIE_DATA_DIR=" + filepath.Join(dir, "data"), "REGIE_FAULT=" + point, "REGIE_CRASH_DISK=" + filepath.Join(dir, "disk.log"),
		fmt.Sprintf("REGIE_CRASH_DIE_AT=%d", dieAt),
	}
	if l.next != nil {
		child.Env = append(child.Env, "REGIE_CRASH_NEXT=1")
	}
	out, err := child.CombinedOutput()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exited) && exited.ExitCode() == -1:
		return true
	}
	t.Fatalf("the process failed at %q, operation %d: %v: %s", point, dieAt, err, out)
	return false
}

// TestRecoveryKills kills the process that opens the database after a death, at each operation on a
// file: the opening itself, SQLite's replay and the tidying at the end. It is always the same
// database.
func TestRecoveryKills(t *testing.T) {
	l := killed(t)
	n, again := 1, l.restore(t)
	for ; ; n++ {
		dir := l.restore(t)
		if !l.open(t, dir, "", n) {
			break
		}
		l.read(dir)
		l.open(t, again, "", n) // and one that dies again and again
	}
	l.read(again)
	if n < 5 {
		t.Errorf("opening it took %d operations: nothing was replayed", n-1)
	}
	t.Logf("%d kills", 2*(n-1))
}

// ownMigrations is the directory of the migrations of this program.
const ownMigrations = "../store/sqlite/migrations"

// killOpening kills the process that opens what restore makes, at each of the points and at each
// operation on a file, and again while the rest is done; check looks at what is left.
func (l *legacy) killOpening(t *testing.T, points []string, restore func() (dir string), check func(dir string)) {
	t.Helper()
	kills := 0
	for _, point := range points {
		dir := restore()
		if !l.open(t, dir, point+":1", 0) {
			t.Errorf("nothing passes %s", point)
		}
		kills++
		check(dir)
	}
	for n := 1 + l.h.random.IntN(*openStep); ; n += *openStep {
		dir := restore()
		if !l.open(t, dir, "", n) {
			break
		}
		if l.open(t, dir, "", n/2+1) {
			kills++
		}
		kills++
		check(dir)
	}
	t.Logf("%d kills", kills)
}

// TestFirstMigrationKills kills the process that makes a database from nothing: the next one makes
// it whole, or finds it so.
func TestFirstMigrationKills(t *testing.T) {
	l := &legacy{h: newHarness(t, "")}
	l.killOpening(t, []string{fault.MigrateBefore, fault.MigrateAfter}, t.TempDir, func(dir string) {
		s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: filepath.Join(dir, "data")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.EnsureUser(t.Context(), "ada")
		if err := errors.Join(err, s.QuickCheck(t.Context()), s.Close()); err != nil {
			t.Error(err)
		}
		if found, err := filepath.Glob(filepath.Join(dir, "data", "*.before-*")); err != nil || len(found) > 0 {
			t.Errorf("backups of nothing: %v, %v", found, err)
		}
	})
}

// TestMigrationKills kills the process that migrates a database that a death has left. The next one
// has the same data under the new schema, and every backup that has its name is whole and of the
// old one.
func TestMigrationKills(t *testing.T) {
	l := killed(t)
	var err error
	if l.next, err = storetest.NextMigrations(ownMigrations); err != nil {
		t.Fatal(err)
	}
	l.killOpening(t, fault.MigrationPoints(), func() string { return l.restore(t) }, func(dir string) { l.migrated(t, dir) })
}

// migrated looks at what deaths in a migration have left, and lets it be finished.
func (l *legacy) migrated(t *testing.T, dir string) {
	t.Helper()
	backups := func() (whole, cut []string) {
		names, err := filepath.Glob(filepath.Join(dir, "data", sqlite.FileName+".before-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.Contains(name, ".unfinished") {
				cut = append(cut, name)
			} else {
				whole = append(whole, name)
			}
		}
		return whole, cut
	}
	l.read(dir)
	whole, cut := backups()
	if len(whole) == 0 || len(cut) > 0 {
		t.Errorf("backups: %v, cut: %v", whole, cut)
	}
	for _, name := range whole {
		l.checkBackup(t, name)
	}
}

// checkBackup asserts that a backup is whole and of an older schema than the one that it is named
// for.
func (l *legacy) checkBackup(t *testing.T, name string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=query_only(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	var events, before, version int64
	_, named, _ := strings.Cut(name, ".before-")
	_, err = fmt.Sscanf(named, "%d.", &before)
	err = errors.Join(
		err,
		db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict),
		db.QueryRowContext(t.Context(), "SELECT max(version_id) FROM goose_db_version").Scan(&version),
		db.QueryRowContext(t.Context(), "SELECT count(*) FROM events").Scan(&events),
	)
	if err != nil || verdict != "ok" || version >= before || events != l.report.Events {
		t.Errorf("the backup %s is %q, of schema %d, with %d rows of the log: %v", filepath.Base(name), verdict, version, events, err)
	}
}
