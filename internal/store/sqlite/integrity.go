package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

// leastChecked is the length from which a text must be UTF-8: a shorter one may hold the name of a
// directory that is not.
const leastChecked = 512

// CheckIntegrity reads the whole database and returns CodeCorrupt where it is damaged, with the
// names of the damaged tables and indexes and the backup to restore. It writes nothing.
func (s *core) CheckIntegrity(ctx context.Context) error {
	if s.other != nil {
		return s.other.CheckIntegrity(ctx, s.read.db)
	}
	path := filepath.Join(s.dir, FileName)
	// A connection of its own has no page in its cache: it reads what is in the file.
	db, err := sql.Open("sqlite", dsn(path, "ro", busyTimeout, "query_only(1)", "temp_store(MEMORY)"))
	if err != nil {
		return explainReading(err, path)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	damage, err := checkPages(ctx, db, "integrity_check")
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && len(damage) == 0 {
		damage, err = checkContents(ctx, db)
	}
	if err != nil {
		if err = explainReading(err, path); regie.CodeOf(err) != regie.CodeCorrupt {
			return err
		}
		damage = append(damage, err.Error())
	}
	if len(damage) == 0 {
		return nil
	}
	found := strings.Join(nameObjects(ctx, db, damage), "; ")
	if kept := backups(path); len(kept) > 0 {
		return regie.Errorf(regie.CodeCorrupt,
			"the database %s is damaged (%s): restore the backup %s, as regie doctor says", path, found,
			filepath.Join(s.dir, kept[0]))
	}
	return regie.Errorf(regie.CodeCorrupt,
		"the database %s is damaged (%s): restore your own backup, there is none beside it", path, found)
}

// checkPages runs a check of SQLite over the whole file. The error is that of a check that did not
// come to its end.
func checkPages(ctx context.Context, db *sql.DB, check string) (damage []string, err error) {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("PRAGMA %s(%d)", check, maxDamage))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return damage, err
		}
		if line != "ok" {
			damage = append(damage, line)
		}
	}
	return damage, rows.Err()
}

// checkContents reads what no structure of SQLite covers: pages that hold only a part of a long
// value.
func checkContents(ctx context.Context, db *sql.DB) (damage []string, err error) {
	tables, err := readColumn(ctx, db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		if err := checkRows(ctx, db, table); err != nil {
			if regie.CodeOf(err) != regie.CodeCorrupt {
				return nil, fmt.Errorf("%s: %w", table, err)
			}
			damage = append(damage, err.Error())
		}
	}
	return damage, nil
}

// checkRows returns CodeCorrupt for the first long text of a table that is not UTF-8, and for a
// blob without its hash.
func checkRows(ctx context.Context, db *sql.DB, table string) error {
	rows, err := db.QueryContext(ctx, fmt.Sprintf("SELECT * FROM %q", //nolint:unqueryvet // each column is looked at
		table))
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, places := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	hash, data := slices.Index(columns, "hash"), slices.Index(columns, "data")
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return err
		}
		for i, value := range values {
			if text, is := value.(string); is && len(text) >= leastChecked && !utf8.ValidString(text) {
				return regie.Errorf(regie.CodeCorrupt, "a value in %s is not what was written", table+"."+columns[i])
			}
		}
		if table != "blobs" {
			continue
		}
		content, kept := values[data].([]byte)
		if of, _ := values[hash].([]byte); kept && regie.HashOf(content) != regie.Hash(of) {
			return regie.Errorf(regie.CodeCorrupt, "a value in %s is not what was written", "blobs.data")
		}
	}
	return rows.Err()
}

// treeNumber is how SQLite names a table or an index in its damage.
var treeNumber = regexp.MustCompile(`\b[Tt]ree (\d+)\b`)

// nameObjects writes the names of tables and indexes in place of the numbers of their trees.
func nameObjects(ctx context.Context, db *sql.DB, damage []string) (out []string) {
	for line := range strings.Lines(strings.Join(damage, "\n")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "***") { // which database it is
			continue
		}
		out = append(out, treeNumber.ReplaceAllStringFunc(line, func(tree string) string {
			var name string
			err := db.QueryRowContext(ctx, "SELECT name FROM sqlite_schema WHERE rootpage = ?",
				treeNumber.FindStringSubmatch(tree)[1]).Scan(&name)
			if err != nil {
				return tree
			}
			return name
		}))
	}
	return out
}

func readColumn(ctx context.Context, db *sql.DB, query string) (out []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, rows.Err()
}
