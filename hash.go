package regie

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
)

// Hash is a SHA-256. It names blobs, binds calls to their arguments (decision 8) and links the log
// (decision 15). The zero Hash means "none".
type Hash [sha256.Size]byte

// HashOf returns the SHA-256 of data.
func HashOf(data []byte) Hash { return sha256.Sum256(data) }

// IsZero reports whether the hash is absent.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns 64 hexadecimal digits, or "" for the zero Hash.
func (h Hash) String() string {
	if h.IsZero() {
		return ""
	}
	return hex.EncodeToString(h[:])
}

// MarshalText implements encoding.TextMarshaler; the zero Hash is "".
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler; "" is the zero Hash. It returns CodeBadID for
// anything but 64 digits.
func (h *Hash) UnmarshalText(text []byte) error {
	*h = Hash{}
	if len(text) == 0 {
		return nil
	}
	if len(text) != 2*len(h) {
		return Errorf(CodeBadID, "a SHA-256 has %d hexadecimal digits, not %d", 2*len(h), len(text))
	}
	if _, err := hex.Decode(h[:], text); err != nil {
		return Errorf(CodeBadID, "a SHA-256 holds only hexadecimal digits")
	}
	return nil
}

// Value implements driver.Valuer: 32 bytes, or NULL for the zero Hash.
func (h Hash) Value() (driver.Value, error) {
	if h.IsZero() {
		return nil, nil
	}
	return h[:], nil
}

// Scan implements sql.Scanner for 32 bytes or NULL.
func (h *Hash) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*h = Hash{}
		return nil
	case []byte:
		if len(src) == len(h) {
			copy(h[:], src)
			return nil
		}
	}
	return Errorf(CodeCorrupt, "the store holds a hash that is not 32 bytes long")
}
