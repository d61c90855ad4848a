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

// RecordedKey is the name in meta of a hash of the audit key. It tells a wrong key from an altered
// log.
const RecordedKey = "audit_key_sha256"

// openAuditKey returns the key of the hash chains. The key lies outside the database, so that write
// access to the database alone cannot forge the log (decision 15). It is made only where no chain
// has begun: under a new key the existing logs would look forged. It returns CodeCorrupt for a key
// that is missing, cut off, or from another database.
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

// recordedHash selects the recorded hash of the key from meta, or NULL.
const recordedHash = "(SELECT value FROM meta WHERE key = '" + RecordedKey + "')"

// OpenAuditKey reads the key of existing chains from the data directory dir. recorded is the hash
// of it in the database; with "" only Verify can detect a wrong key. It returns CodeCorrupt for a
// key that is missing, cut off, or has another hash.
func OpenAuditKey(dir, recorded string) ([]byte, error) {
	path := filepath.Join(dir, auditKey)
	key, err := readAuditKey(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, regie.Errorf(regie.CodeCorrupt,
			"%s is missing, and the logs of this database are signed with it: restore it from a backup of the data directory, or start with a new one", path)
	case err != nil:
		return nil, err
	case recorded != "" && hashOfKey(key) != recorded:
		return nil, regie.Errorf(regie.CodeCorrupt,
			"%s is not the key that signed the logs of this database: restore the right one from a backup of the data directory", path)
	}
	return key, nil
}

// readAuditKey reads the key. Where the file is missing the error is fs.ErrNotExist.
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

// hashOfKey returns a hash that identifies a key without revealing it. The prefix keeps it from
// being the hash of anything else.
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

// MakeAuditKey reads the key of a data directory, and makes one where it is missing. The database
// records hash.
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
