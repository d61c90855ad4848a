package postgres_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
	"github.com/regie-run/regie/internal/text"
)

// TestNothingMade refuses what would fail only half-way before anything is made: settings of the
// URL, and schemas that another program uses.
func TestNothingMade(t *testing.T) {
	address := storetest.Postgres(t)
	count := func(query string, args ...any) (n int) {
		t.Helper()
		db, err := sql.Open("pgx", address)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	set := func(name, value string) string {
		return change(t, address, func(_ *url.URL, q url.Values) { q.Set(name, value) })
	}
	own := schemaOf(t, address)
	for _, bad := range []struct{ name, url, schema, made, say string }{
		{name: "capital letters", schema: "My_" + own[10:], say: "small letters"},
		{name: "a statement", schema: own + ";drop", say: "small letters"},
		{name: "one letter too many", schema: strings.Repeat("a", 47), say: "at most 46"},
		{name: "the server's own", schema: "pg_" + own[10:], say: "pg_"},
		{name: "nothing", url: set("search_path", ""), say: "one schema"},
		{name: "hidden in options", url: set("options", "-csearch_path=elsewhere"), schema: own, say: "options"},
		{name: "the simple protocol", url: set("default_query_exec_mode", "simple_protocol"), schema: own, say: "prepared statements"},
		{name: "nothing described", url: set("default_query_exec_mode", "exec"), schema: own, say: "prepared statements"},
		{name: "no room for statements", url: set("statement_cache_capacity", "0"), schema: own, say: "prepared statements"},
		{name: "a table of one of our names", made: "CREATE TABLE chains (id int)", say: "(chains)"},
		{name: "a function", made: "CREATE FUNCTION hex(id uuid) RETURNS text LANGUAGE sql AS 'SELECT ''''::text'", say: "(hex)"},
		{name: "a type", made: "CREATE TYPE mood AS ENUM ('well')", say: "(mood)"},
		{name: "a sequence", made: "CREATE SEQUENCE chains_n", say: "(chains_n)"},
		{name: "our names under others' migrations", made: `CREATE TABLE goose_db_version (id int, version_id bigint, is_applied bool);
			INSERT INTO goose_db_version VALUES (1, 1, true); CREATE TABLE chains (id int); CREATE TABLE holders (id int)`, say: "(chains)"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			database := bad.url
			if database == "" && bad.schema != "" {
				database = set("search_path", bad.schema)
			}
			if bad.made != "" {
				database = storetest.Postgres(t)
				bad.schema = schemaOf(t, database)
				storetest.PostgresExec(t, database, "CREATE SCHEMA "+bad.schema+"; "+bad.made)
			}
			things := `SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = $1)
				+ (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1)`
			before := count(things, bad.schema)
			for _, reading := range []bool{false, true} {
				s, err := postgres.Open(t.Context(), postgres.Config{URL: database, Dir: t.TempDir(), ReadOnly: reading})
				if err == nil {
					_ = s.Close()
					t.Fatal("it was opened")
				}
				code := regie.CodeBadRequest
				if bad.made != "" {
					code = regie.CodeConflict
				}
				// who only looks sees nothing of ours
				nothing := reading && bad.made != "" && regie.CodeOf(err) == regie.CodeNotFound
				if !nothing && (regie.CodeOf(err) != code || !strings.Contains(err.Error(), bad.say)) {
					t.Errorf("got %s: %v\nwant %s that says %q", regie.CodeOf(err), err, code, bad.say)
				}
				if text.New("fr").Error(err) == err.Error() {
					t.Errorf("no French for %v", err)
				}
			}
			if after := count(things, bad.schema); after != before {
				t.Errorf("%d things were made", after-before)
			}
		})
	}
}

// TestExtensionsBeside takes a schema that holds nothing but what an extension put there, which is
// no other program's.
func TestExtensionsBeside(t *testing.T) {
	address := storetest.Postgres(t)
	schema := schemaOf(t, address)
	storetest.PostgresExec(t, address, "CREATE SCHEMA "+schema)
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var made bool
	if err := db.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'citext' AND installed_version IS NULL)`).Scan(&made); err != nil {
		t.Fatal(err)
	}
	if !made {
		t.Skip("citext cannot be installed here, or is already")
	}
	storetest.PostgresExec(t, address, "CREATE EXTENSION citext SCHEMA "+schema)
	open(t, postgres.Config{URL: address, Dir: t.TempDir()})
}
