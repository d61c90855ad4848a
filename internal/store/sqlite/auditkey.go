package sqlite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/regie-run/regie"
)

// RecordedKey is the name in meta of a hash of the audit key, by which a wrong key is named as such
// and not as an altered log.
const RecordedKey = "audit_key_sha256"

// openAuditKey returns the key of the hash chains. It lies outside the database, so that who can
// write only the database cannot forge the log (decision 15). It is made only where no chain was
// begun: under a new key the logs that are there would look forged. It returns CodeCorrupt for a
// key that is missing, cut off, or not the one of this database.
func openAuditKey(ctx context.Context, db *sql.DB, dir string) ([]byte, error) {
	var begun bool
	var recorded sql.NullString
	if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM chains), "+
		recordedHash).Scan(&begun, &recorded); err != nil {
		return nil, err
	}
	if begun {
		return OpenAuditKey(dir, recorded.String)
	}
	key, hash, err := MakeAuditKey(dir)
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx,
		"INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
		RecordedKey, hash)
	return key, err
}

// recordedHash is what meta says of the key, NULL where it says nothing.
const recordedHash = "(SELECT value FROM meta WHERE key = '" + RecordedKey + "')"

// OpenAuditKey reads the key of chains that are there, in the data directory dir; recorded is the
// hash of it that the database has, "" where none is recorded: then only Verify can tell. It
// returns CodeCorrupt for a key that is missing, cut off, or not that one.
func OpenAuditKey(dir, recorded string) ([]byte, error) {
	path := filepath.Join(dir, auditKey)
	key, err := readAuditKey(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, regie.Errorf(regie.CodeCorrupt,
			"%s is missing, and the logs of this database are written with it: put it back from a backup of the data directory, or start anew in another one", path)
	case err != nil:
		return nil, err
	case recorded != "" && hashOfKey(key) != recorded:
		return nil, regie.Errorf(regie.CodeCorrupt,
			"%s is not the key that the logs of this database are written with: put the right one back from a backup of the data directory", path)
	}
	return key, nil
}

// readAuditKey reads the key; it returns fs.ErrNotExist without one.
func readAuditKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, auditKey)
	key, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		return nil, explainError(err, path)
	case len(key) != sha256.Size:
		return nil, regie.Errorf(regie.CodeCorrupt,
			"%s must hold 32 bytes, it holds %d: put the right file back from a backup of the data directory", path,
			len(key))
	}
	return key, nil
}

func makeAuditKey(path string) ([]byte, error) {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key)
	// Written under another name and renamed: a crash leaves either no key or a whole one.
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, explainError(err, path)
	}
	_, err = f.Write(key)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return key, explainError(err, path)
}

// hashOfKey tells keys apart and tells nothing of them; the prefix keeps it from being the hash of
// anything else.
func hashOfKey(key []byte) string {
	sum := sha256.Sum256(append([]byte("regie audit key\x00"), key...))
	return hex.EncodeToString(sum[:])
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// MakeAuditKey reads the key of a data directory, and makes one where it is missing; hash is the
// value that a database records of it.
func MakeAuditKey(dir string) (key []byte, hash string, err error) {
	key, err = readAuditKey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = makeAuditKey(filepath.Join(dir, auditKey))
	}
	if err != nil {
		return nil, "", err
	}
	return key, hashOfKey(key), nil
}
