package sqlite

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"strconv"

	"github.com/regie-run/regie"
)

// found is one row of a query.
type found struct {
	row []driver.Value
	err error
}

// Scan reads the row; sql.ErrNoRows if there is none.
func (f found) Scan(dest ...any) error {
	if f.err != nil {
		return f.err
	}
	for i, value := range f.row {
		if err := assign(dest[i], value); err != nil {
			return err
		}
	}
	return nil
}

func assign(dest any, value driver.Value) error {
	switch dest := dest.(type) {
	case sql.Scanner:
		return dest.Scan(value)
	case *int64:
		n, ok := integer(value)
		*dest = n
		return mustBe(ok, dest, value)
	case *int:
		n, ok := integer(value)
		*dest = int(n)
		return mustBe(ok, dest, value)
	case *bool:
		n, ok := value.(int64)
		*dest = n != 0
		if is, truth := value.(bool); truth {
			*dest, ok = is, true
		}
		return mustBe(ok, dest, value)
	case *string:
		s, ok := value.(string)
		*dest = s
		if b, bytes := value.([]byte); bytes { // what comes from outside is no text for PostgreSQL
			*dest, ok = string(b), true
		}
		return mustBe(ok, dest, value)
	case *[]byte:
		return assignBytes(dest, dest, value)
	case *json.RawMessage:
		return assignBytes((*[]byte)(dest), dest, value)
	default:
		return mustBe(false, dest, value)
	}
}

func assignBytes(to *[]byte, dest any, value driver.Value) error {
	b, ok := value.([]byte)
	if s, text := value.(string); text {
		b, ok = []byte(s), true
	}
	*to = bytes.Clone(b)
	return mustBe(ok || value == nil, dest, value)
}

// integer reads an integer; a sum comes from PostgreSQL's driver as text.
func integer(value driver.Value) (int64, bool) {
	if s, text := value.(string); text {
		n, err := strconv.ParseInt(s, 10, 64)
		return n, err == nil
	}
	n, ok := value.(int64)
	return n, ok
}

func mustBe(ok bool, dest, value any) error {
	if ok {
		return nil
	}
	return regie.Errorf(regie.CodeCorrupt, "the store holds a %T where a %T is expected", value, dest)
}
