package postgres_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestNothingMade refuses settings of the URL that would fail only half-way, before anything is
// made.
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
	for _, bad := range []struct{ name, url, schema, say string }{
		{name: "capital letters", schema: "My_" + own[10:], say: "small letters"},
		{name: "a statement", schema: own + ";drop", say: "small letters"},
		{name: "one letter too many", schema: strings.Repeat("a", 47), say: "at most 46"},
		{name: "the server's own", schema: "pg_" + own[10:], say: "pg_"},
		{name: "nothing", url: set("search_path", ""), say: "one schema"},
		{name: "hidden in options", url: set("options", "-csearch_path=elsewhere"), schema: own, say: "options"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			database := bad.url
			if database == "" && bad.schema != "" {
				database = set("search_path", bad.schema)
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
				if regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), bad.say) {
					t.Errorf("got %s: %v\nwant one that says %q", regie.CodeOf(err), err, bad.say)
				}
				if i18n.New("fr").Error(err) == err.Error() {
					t.Errorf("no French for %v", err)
				}
			}
			if after := count(things, bad.schema); after != before {
				t.Errorf("%d things were made", after-before)
			}
		})
	}
}
