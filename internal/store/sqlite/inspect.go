package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pressly/goose/v3/database"
	"github.com/regie-run/regie"
)

// maxDamage bounds how many kinds of damage are listed.
const maxDamage = 3

// Inspection is the state of a data directory's database, read without changing anything (spec
// 10.1, doctor).
type Inspection struct {
	Path   string
	Exists bool
	Size   int64 // of the database, in bytes
	WAL    int64 // bytes that are not yet in it
	// Schema is the database's, Newest the one that this program writes.
	Schema, Newest int64
	Damage         []string // the findings of quick_check
	Checked        bool     // the check came to its end
	Err            error    // why the database could not be read, with its code
	Key            error    // why the audit key is unusable, where the logs need it
	Backups        []string // names of the backups in its directory, newest first
}

// Inspect reads the database of a data directory. Where an engine is running (live) it reads as any
// reader does. Where none is and there is no WAL, it reads the file alone. Where a WAL is left,
// SQLite may make its -shm file. The integrity check ends with the context; all else is quick.
func Inspect(ctx context.Context, dir string, live bool) Inspection {
	in := Inspection{Path: filepath.Join(dir, FileName)}
	in.Backups = listBackups(in.Path)
	info, err := os.Stat(in.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return in
	case err != nil:
		in.Exists, in.Err = true, explainError(err, in.Path)
		return in
	case !info.Mode().IsRegular():
		in.Exists, in.Err = true, regie.Errorf(regie.CodeCorrupt, "%s is not a regular file", in.Path)
		return in
	}
	in.Exists, in.Size, in.WAL = true, info.Size(), sizeOf(in.Path+"-wal")
	if in.Size == 0 && in.WAL == 0 {
		return in
	}
	db, err := sql.Open("sqlite", in.readOnlyDSN(live))
	if err != nil {
		in.Err = explainError(err, in.Path)
		return in
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	in.readDatabase(ctx, db, dir)
	return in
}

// listBackups lists the copies that migrations made, newest first: their names end in their time.
func listBackups(path string) (names []string) {
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, filepath.Base(path)+".before-") && !strings.Contains(name, unfinished) {
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	return names
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// readOnlyDSN names the database to the driver so that reading changes nothing. A file without a
// WAL is read as immutable; one that an engine works on, or died on, as by any reader.
func (in *Inspection) readOnlyDSN(live bool) string {
	if live && sizeOf(in.Path+"-shm") > 0 || in.WAL > 0 || sizeOf(in.Path+"-journal") > 0 {
		return fileDSN(in.Path, "ro", 1000, "query_only(1)", "temp_store(MEMORY)")
	}
	query := url.Values{"mode": {"ro"}, "immutable": {"1"}, "_pragma": {"query_only(1)", "temp_store(MEMORY)"}}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: in.Path, RawQuery: query.Encode()}).String()
}

// readDatabase reads from the database itself.
func (in *Inspection) readDatabase(ctx context.Context, db *sql.DB, dir string) {
	m, err := NewMigrator(database.DialectSQLite3, db, migrations, nil)
	if err == nil {
		in.Newest = m.Newest
		in.Schema, err = m.readVersion(ctx, db, in.Path)
	}
	in.Err = explainError(err, in.Path)
	if err != nil && in.Schema == 0 {
		return
	}
	if in.Damage, err = checkPages(ctx, db, "quick_check"); err != nil && ctx.Err() == nil { // it met damage on its way
		in.Damage, err = append(in.Damage, err.Error()), nil
	}
	in.Checked = err == nil
	if in.Schema == 0 || in.Err != nil { // an empty database, or a schema with other tables
		return
	}
	var begun bool
	var recorded sql.NullString
	if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM chains), "+recordedHash).Scan(&begun,
		&recorded); err == nil && begun {
		_, in.Key = OpenAuditKey(dir, recorded.String)
	}
}
