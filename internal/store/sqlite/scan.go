package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"time"

	"github.com/regie-run/regie"
)

// found is one row of a query.
type found struct {
	row []driver.Value
	err error
}

// firstRow returns the first of the rows, or sql.ErrNoRows.
func firstRow(rows [][]driver.Value, err error) found {
	if err == nil && len(rows) == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return found{err: err}
	}
	return found{row: rows[0]}
}

// Scan reads the row, or returns sql.ErrNoRows.
func (f found) Scan(dest ...any) error {
	if f.err != nil {
		return f.err
	}
	for i, value := range f.row {
		if err := assignValue(dest[i], value); err != nil {
			return err
		}
	}
	return nil
}

// assignValue assigns a value of a row: a time is microseconds, and NULL is the zero value.
func assignValue(dest any, value driver.Value) error {
	if scans, ok := dest.(sql.Scanner); ok {
		return scans.Scan(value)
	}
	to := reflect.ValueOf(dest).Elem()
	n, whole := value.(int64)
	text, isText := value.(string)
	data, isBytes := value.([]byte)
	is, truth := value.(bool)
	if !isText && isBytes { // text from outside is bytes for PostgreSQL
		text = string(data)
	} else if isText && to.Kind() != reflect.String { // and a sum is text
		var err error
		n, err = strconv.ParseInt(text, 10, 64)
		whole = err == nil
	}
	at, isTime := dest.(*time.Time)
	switch {
	case value == nil:
		to.SetZero()
	case isTime && whole:
		*at = fromMicros(n)
	case to.Kind() == reflect.String && (isText || isBytes):
		to.SetString(text)
	case to.Kind() == reflect.Bool && (truth || whole):
		to.SetBool(is || n != 0)
	case to.CanInt() && whole:
		to.SetInt(n)
	case to.CanUint() && whole:
		to.SetUint(uint64(n))
	case to.Kind() == reflect.Slice && (isText || isBytes):
		if to.SetBytes([]byte(text)); !isText {
			to.SetBytes(bytes.Clone(data))
		}
	default:
		return regie.Errorf(regie.CodeCorrupt, "the store holds a %T where a %T is expected", value, dest)
	}
	return nil
}

// asJSON is a column of JSON: a nil pointer and an empty column are NULL.
type asJSON struct{ value any }

// Scan implements sql.Scanner.
func (j asJSON) Scan(value any) error {
	var text []byte
	if err := assignValue(&text, value); err != nil || value == nil {
		return err
	}
	if err := json.Unmarshal(text, j.value); err != nil {
		return regie.Errorf(regie.CodeCorrupt, "a stored %T cannot be read: %v", j.value, err)
	}
	return nil
}

// Value implements driver.Valuer.
func (j asJSON) Value() (driver.Value, error) {
	if v := reflect.ValueOf(j.value); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, nil
	}
	data, err := json.Marshal(j.value)
	return string(data), err
}

// queryList returns queryAll for a list in an answer: without rows it is empty, not nil.
func queryList[T any](ctx context.Context, q querier, scan func(scanner, *T) error, query string, args ...any) ([]T,
	error,
) {
	out, err := queryAll(ctx, q, scan, query, args...)
	if out == nil {
		out = []T{}
	}
	return out, err
}

// queryAll reads all rows of a query; nil without one.
func queryAll[T any](ctx context.Context, q querier, scan func(scanner, *T) error, query string, args ...any) ([]T,
	error,
) {
	rows, err := q.fetchRows(ctx, query, args)
	if len(rows) == 0 {
		return nil, err
	}
	out := make([]T, len(rows))
	for i, row := range rows {
		if err := scan(found{row: row}, &out[i]); err != nil {
			return nil, q.explainError(err)
		}
	}
	return out, nil
}

// scanOne reads rows of one column.
func scanOne[T any](row scanner, value *T) error { return row.Scan(value) }

// unlessFound replaces the error of a missing row by none, which may be nil.
func unlessFound(err, none error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return none
	}
	return err
}
