package storetest

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/regie-run/regie"
)

// PostgresVariable names the database of the PostgreSQL tests: each test makes and drops its own
// schema.
const PostgresVariable = "REGIE_TEST_POSTGRES"

// Postgres returns the URL of an empty schema of a real PostgreSQL, dropped with the test. Without
// a server the test is skipped; with REGIE_CI=1, which requires everything, it fails.
func Postgres(tb testing.TB) string {
	tb.Helper()
	text := os.Getenv(PostgresVariable)
	if text == "" {
		if os.Getenv("REGIE_CI") == "1" {
			tb.Fatalf("REGIE_CI is set, but not %s: name a PostgreSQL to test on", PostgresVariable)
		}
		tb.Skipf("no PostgreSQL to test on: name one in %s, such as postgres://user@127.0.0.1:5432/test",
			PostgresVariable)
	}
	u, err := url.Parse(text)
	if err != nil {
		tb.Fatal(err)
	}
	schema := "test_" + strings.ReplaceAll(regie.NewID().String(), "-", "")
	tb.Cleanup(func() { PostgresExec(tb, text, "DROP SCHEMA IF EXISTS "+schema+" CASCADE") })
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return u.String()
}

// PostgresSchema is Postgres for a schema that drop removes before the test ends.
func PostgresSchema(tb testing.TB) (url string, drop func()) {
	tb.Helper()
	text := Postgres(tb)
	_, schema, _ := strings.Cut(text, "search_path=")
	return text, func() { PostgresExec(tb, os.Getenv(PostgresVariable), "DROP SCHEMA IF EXISTS "+schema+" CASCADE") }
}

// PostgresExec runs statements in a database, outside the store.
func PostgresExec(tb testing.TB, url, statements string) {
	tb.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), statements); err != nil {
		tb.Errorf("%s: %v", statements, err)
	}
}
