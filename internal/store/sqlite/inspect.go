package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// header begins every SQLite database.
const header = "SQLite format 3\x00"

const (
	// maxCopied bounds the database that is copied to be looked into, in bytes.
	maxCopied = 1 << 30
	// maxDamage is how many kinds of damage are named.
	maxDamage = 3
)

// Inspection is what can be told of the database of a data directory without changing anything
// there (spec 10.1, doctor).
type Inspection struct {
	Path   string
	Exists bool
	Size   int64 // of the database, in bytes
	WAL    int64 // of what is not yet in it, in bytes
	// Schema is the database's, Newest the one that this program writes.
	Schema, Newest int64
	LastEvent      time.Time // when the newest row of any log was written; zero without one
	Damage         []string  // what quick_check says is wrong
	Checked        bool      // the check came to its end
	Err            error     // why the database could not be read, with its code
	Key            error     // what is wrong with the audit key, where the logs need it
	Backups        []string  // names of the backups beside it, newest first
}

// Inspect looks into the database of a data directory. Where an engine holds it (live) it reads
// beside the engine, as any reader does; where nobody does and all is in the file, it reads the
// file alone; where a WAL is left, it reads a copy, because SQLite would otherwise make the files
// that belong to the WAL. The check ends with the context; all else is quick.
func Inspect(ctx context.Context, dir string, live bool) Inspection {
	in := Inspection{Path: filepath.Join(dir, FileName)}
	in.Backups = backups(in.Path)
	info, err := os.Stat(in.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return in
	case err != nil:
		in.Exists, in.Err = true, explain(err, in.Path)
		return in
	}
	in.Exists, in.Size, in.WAL = true, info.Size(), sizeOf(in.Path+"-wal")
	if in.Err = hasHeader(in.Path, info); in.Err != nil || in.Size == 0 && in.WAL == 0 {
		return in
	}
	name, done := in.readable(live)
	defer done()
	db, err := sql.Open("sqlite", name)
	if err != nil {
		in.Err = explain(err, in.Path)
		return in
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	in.read(ctx, db, dir)
	return in
}

// backups lists the copies that migrations made, newest first: their names end in their time.
func backups(path string) (names []string) {
	found, err := filepath.Glob(globSafe(path) + ".before-*")
	if err != nil {
		return nil
	}
	for _, name := range found {
		if !strings.Contains(name, unfinished) {
			names = append(names, filepath.Base(name))
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(timeIn(b), timeIn(a)) })
	return names
}

// timeIn is what follows the schema in a backup's name.
func timeIn(name string) string {
	_, after, _ := strings.Cut(name, ".before-")
	_, at, _ := strings.Cut(after, ".")
	return at
}

// globSafe takes the meaning from what a pattern would read in a directory's name.
func globSafe(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// hasHeader says what is not a database at all, in other words than SQLite would.
func hasHeader(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return regie.Errorf(regie.CodeCorrupt, "%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return explain(err, path)
	}
	defer f.Close()
	start := make([]byte, len(header))
	n, err := io.ReadFull(f, start)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return explain(err, path)
	case string(start) != header:
		return regie.Errorf(regie.CodeCorrupt, "%s is no SQLite database", path)
	}
	return nil
}

// readable names the database, or its copy, for the driver; done takes a copy away.
func (in *Inspection) readable(live bool) (name string, done func()) {
	beside := dsn(in.Path, "ro", 1000, "query_only(1)", "temp_store(MEMORY)")
	journal := sizeOf(in.Path + "-journal")
	switch {
	case live && sizeOf(in.Path+"-shm") > 0: // an engine that is only starting has not made it yet
		return beside, func() {}
	case in.WAL == 0 && journal == 0:
		query := url.Values{"mode": {"ro"}, "immutable": {"1"}, "_pragma": {"query_only(1)", "temp_store(MEMORY)"}}
		return (&url.URL{Scheme: "file", OmitHost: true, Path: in.Path, RawQuery: query.Encode()}).String(), func() {}
	case in.Size+in.WAL+journal > maxCopied:
		return beside, func() {}
	}
	copied, err := copyDatabase(in.Path)
	if err != nil { // no room elsewhere: better a look beside the files than none
		return beside, func() {}
	}
	return dsn(filepath.Join(copied, FileName), "rw", 1000, "temp_store(MEMORY)"), func() { _ = os.RemoveAll(copied) }
}

// copyDatabase copies a database with what belongs to it into a private directory. A database that
// is written meanwhile is refused: its copy would look torn.
func copyDatabase(path string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "regie-doctor-"); err != nil {
		return "", err
	}
	before := fingerprint(path)
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if err = copyFile(path+suffix, filepath.Join(dir, FileName+suffix)); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
	}
	if fingerprint(path) != before {
		return "", errors.Join(regie.Errorf(regie.CodeDatabaseLocked, "%s is being written", path), os.RemoveAll(dir))
	}
	return dir, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// fingerprint tells whether somebody has written meanwhile.
func fingerprint(path string) string {
	var out strings.Builder
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if info, err := os.Stat(path + suffix); err == nil {
			fmt.Fprint(&out, suffix, info.Size(), info.ModTime().UnixNano(), " ")
		}
	}
	return out.String()
}

// read asks the database itself.
func (in *Inspection) read(ctx context.Context, db *sql.DB, dir string) {
	m, err := newMigrator(db, nil)
	if err == nil {
		in.Newest = m.newest
		in.Schema, err = m.version(ctx, db, in.Path)
	}
	in.Err = explainReading(err, in.Path)
	if err != nil && in.Schema == 0 {
		return
	}
	in.Damage, in.Checked = quickCheck(ctx, db)
	if in.Schema == 0 || in.Err != nil { // an empty database, or one whose tables have another meaning
		return
	}
	var at sql.NullInt64
	if err := db.QueryRowContext(ctx, "SELECT (SELECT at FROM events ORDER BY n DESC LIMIT 1)").Scan(&at); err == nil {
		in.LastEvent = fromNullMicros(at)
	}
	var begun bool
	var recorded sql.NullString
	if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM chains), "+recordedHash).Scan(&begun,
		&recorded); err == nil && begun {
		_, in.Key = rightAuditKey(dir, recorded.String)
	}
}

// quickCheck looks through the whole file; done says that it came to the end.
func quickCheck(ctx context.Context, db *sql.DB) (damage []string, done bool) {
	damage, err := checkPages(ctx, db, "quick_check")
	if err != nil {
		more, done := cutShort(ctx, err)
		return append(damage, more...), done
	}
	return damage, true
}

// cutShort tells a check that was stopped from one that met damage on its way.
func cutShort(ctx context.Context, err error) (damage []string, done bool) {
	if ctx.Err() != nil {
		return nil, false
	}
	return []string{err.Error()}, true
}
