package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/regie-run/regie"
)

// CheckIntegrity reads the whole database and returns CodeCorrupt where it is damaged, with the
// backup to restore. It writes nothing.
func (s *core) CheckIntegrity(ctx context.Context) error {
	if s.other != nil {
		return s.other.CheckIntegrity(ctx, s.read.db)
	}
	path := filepath.Join(s.dir, FileName)
	// A connection of its own has an empty cache, so it reads the file.
	db, err := sql.Open("sqlite", fileDSN(path, "ro", busyTimeout, "query_only(1)", "temp_store(MEMORY)"))
	if err != nil {
		return explainError(err, path)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	damage, err := checkPages(ctx, db, "integrity_check")
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && len(damage) == 0 {
		damage, err = checkBlobs(ctx, db)
	}
	if err != nil {
		if err = explainError(err, path); regie.CodeOf(err) != regie.CodeCorrupt {
			return err
		}
		damage = append(damage, err.Error())
	}
	if len(damage) == 0 {
		return nil
	}
	found := strings.Join(damage, "; ")
	if kept := listBackups(path); len(kept) > 0 {
		return regie.Errorf(regie.CodeCorrupt,
			"the database %s is damaged (%s): restore the backup %s, as regie doctor says", path, found,
			filepath.Join(s.dir, kept[0]))
	}
	return regie.Errorf(regie.CodeCorrupt,
		"the database %s is damaged (%s): restore your own backup, there is none beside it", path, found)
}

// checkPages runs a check of SQLite over the whole file. It returns an error where the check did
// not finish.
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

// checkBlobs returns the blobs that do not match their hash: SQLite's checks do not cover overflow
// pages of a long value.
func checkBlobs(ctx context.Context, db *sql.DB) (damage []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT hash, data FROM blobs WHERE data IS NOT NULL")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var hash regie.Hash
		var data sql.RawBytes
		if err := rows.Scan(&hash, &data); err != nil {
			return nil, err
		}
		if regie.HashOf(data) != hash {
			return []string{"blob " + hash.String()}, nil
		}
	}
	return nil, rows.Err()
}
