package regie

import (
	"crypto/rand"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"
	"sync"
	"time"
)

// ID is a UUIDv7 (spec 2.2): 16 bytes in the store, the usual 36 characters everywhere else. The
// zero ID means "none".
type ID [16]byte

// idState keeps the ids of one process strictly rising, also within one millisecond.
var idState struct {
	sync.Mutex
	last uint64
}

// NewID returns a fresh UUIDv7. The ids of one process sort by creation.
func NewID() ID {
	var id ID
	_, _ = rand.Read(id[:]) // crypto/rand.Read never fails: it crashes the program instead
	// 48 bits of milliseconds and 12 bits of fraction, bumped by one when two ids fall into the
	// same fraction.
	now := time.Now()
	stamp := uint64(now.UnixMilli())<<12 | uint64(now.Nanosecond()%1e6)*4096/1e6
	idState.Lock()
	if stamp <= idState.last {
		stamp = idState.last + 1
	}
	idState.last = stamp
	idState.Unlock()
	binary.BigEndian.PutUint64(id[:8], stamp>>12<<16|0x7000|stamp&0xfff)
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseID reads the 36-character form. It returns CodeBadID for anything else, upper case included:
// one id, one spelling.
func ParseID(s string) (ID, error) {
	var id ID
	packed := strings.ReplaceAll(s, "-", "")
	if len(s) != 36 || len(packed) != 32 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, Errorf(CodeBadID, "%q is not an id: ids have 36 characters, such as %s", clip(s, 60),
			"0197e0a1-2b3c-7d4e-8f50-61728394a5b6")
	}
	if _, err := hex.Decode(id[:], []byte(packed)); err != nil || s != strings.ToLower(s) {
		return ID{}, Errorf(CodeBadID, "%q is not an id: it contains characters other than 0-9 and a-f", s)
	}
	if id.IsZero() { // it would be as one that is not there
		return ID{}, Errorf(CodeBadID, "%q is not an id: all its digits are 0", s)
	}
	return id, nil
}

// IsZero reports whether the id is absent.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the 36-character form, or "" for the zero ID.
func (id ID) String() string {
	if id.IsZero() {
		return ""
	}
	text, _ := id.AppendText(make([]byte, 0, 36))
	return string(text)
}

// AppendText appends the 36-character form; it implements encoding.TextAppender and never fails.
func (id ID) AppendText(dst []byte) ([]byte, error) {
	for i, group := range [...][2]int{{0, 4}, {4, 6}, {6, 8}, {8, 10}, {10, 16}} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[group[0]:group[1]])
	}
	return dst, nil
}

// MarshalText implements encoding.TextMarshaler; the zero ID is "".
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	return id.AppendText(make([]byte, 0, 36))
}

// UnmarshalText implements encoding.TextUnmarshaler; "" is the zero ID.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	parsed, err := ParseID(string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// Value implements driver.Valuer: 16 bytes, or NULL for the zero ID.
func (id ID) Value() (driver.Value, error) {
	if id.IsZero() {
		return nil, nil
	}
	return id[:], nil
}

// Scan implements sql.Scanner for 16 bytes, the usual 36 characters (a uuid of PostgreSQL) or NULL.
func (id *ID) Scan(src any) error {
	switch src := src.(type) {
	case string:
		if parsed, err := ParseID(src); err == nil {
			*id = parsed
			return nil
		}
	case nil:
		*id = ID{}
		return nil
	case []byte:
		if len(src) == len(id) {
			copy(id[:], src)
			return nil
		}
	}
	return Errorf(CodeCorrupt, "the store holds an id that is not 16 bytes long")
}

// clip shortens s to at most n bytes for use inside a message.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}

// NamedID is the id that some words stand for: always the same one. It is no UUIDv7, and sorts
// nowhere.
func NamedID(words ...string) ID {
	h := sha256.New()
	for _, word := range words {
		_ = binary.Write(h, binary.BigEndian, uint64(len(word))) // a hash takes everything
		_, _ = io.WriteString(h, word)
	}
	var id ID
	copy(id[:], h.Sum(nil))
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8: made in a way of one's own
	return id
}
