package postgres

import (
	"bytes"
	"database/sql/driver"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/regie-run/regie"
)

// differently has the fragments of statements that differ in PostgreSQL.
var differently = strings.NewReplacer(
	"CROSS JOIN", "JOIN", // fixes the order of joins in SQLite; PostgreSQL has statistics
	" LIKE ", " ILIKE ", // as SQLite compares the letters of an id
	"(SELECT coalesce(max(n), 0) + 1 FROM chains)", "nextval('chains_n')",
	"SELECT coalesce(max(n), 0) + 1 FROM chains", "SELECT nextval('chains_n')",
)

var translated sync.Map // query → its translation

// translate turns a statement for SQLite into one for PostgreSQL: it numbers the parameters and
// replaces the few words that differ.
func translate(query string) string {
	if known, ok := translated.Load(query); ok {
		text, _ := known.(string)
		return text
	}
	text := number(differently.Replace(query))
	translated.Store(query, text)
	return text
}

// number turns ? and ?1 into $1, outside of quotes.
func number(query string) string {
	var b strings.Builder
	next, quoted := 0, false
	for i := 0; i < len(query); i++ {
		c := query[i]
		quoted = quoted != (c == '\'')
		if c != '?' || quoted {
			b.WriteByte(c)
			continue
		}
		digits := 0
		for i+1+digits < len(query) && query[i+1+digits] >= '0' && query[i+1+digits] <= '9' {
			digits++
		}
		next++
		given := strconv.Itoa(next)
		if digits > 0 {
			given = query[i+1 : i+1+digits]
		}
		b.WriteString("$" + given)
		i += digits
	}
	return b.String()
}

// outside is a text parameter, for a column of our own text, or for one of bytes from elsewhere.
type outside string

// TextValue implements pgtype.TextValuer.
func (o outside) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: string(o), Valid: true}, nil
}

// BytesValue implements pgtype.BytesValuer.
func (o outside) BytesValue() ([]byte, error) { return []byte(o), nil }

// integer is an integer parameter, also for booleans: SQLite has only 0 and 1.
type integer int64

// Int64Value implements pgtype.Int64Valuer.
func (n integer) Int64Value() (pgtype.Int8, error) {
	return pgtype.Int8{Int64: int64(n), Valid: true}, nil
}

// BoolValue implements pgtype.BoolValuer.
func (n integer) BoolValue() (pgtype.Bool, error) { return pgtype.Bool{Bool: n != 0, Valid: true}, nil }

// argument converts an argument to a value that the driver encodes as the parameter's own type.
// Bytes are copied: statements are sent later.
func argument(arg any) (any, error) {
	switch arg := arg.(type) {
	case nil:
		return nil, nil
	case string:
		return outside(arg), nil
	case int:
		return integer(arg), nil
	case int64:
		return integer(arg), nil
	case bool:
		return arg, nil
	case []byte:
		if arg == nil {
			return nil, nil
		}
		return bytes.Clone(arg), nil
	case driver.Valuer: // ids and hashes
		value, err := arg.Value()
		if err != nil || value == nil {
			return nil, err
		}
		return argument(value)
	default:
		return nil, regie.Errorf(regie.CodeInternal, "a statement was given a %T", arg)
	}
}

func arguments(args []any) ([]any, error) {
	out := make([]any, len(args))
	for i, arg := range args {
		var err error
		if out[i], err = argument(arg); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// value converts a value of the driver for the transitions.
func value(v any) (driver.Value, error) {
	switch v := v.(type) {
	case nil, int64, string, []byte, bool:
		return v, nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case [16]byte:
		return v[:], nil
	case pgtype.Numeric: // a sum
		n, err := v.Int64Value()
		return n.Int64, err
	default:
		return nil, regie.Errorf(regie.CodeInternal, "the database returned a %T", v)
	}
}
