package postgres_test

import (
	"database/sql"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestWhatToWatch runs the statements that docs/operations.md gives an operator, as it gives them,
// on a connection that was told nothing else.
func TestWhatToWatch(t *testing.T) {
	address := storetest.Postgres(t)
	storetest.NewWorld(t, open(t, postgres.Config{URL: address, Dir: t.TempDir()})).Start()
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## What to watch")
	section, _, _ = strings.Cut(section, "\n## ")
	db, err := sql.Open("pgx", change(t, address, func(_ *url.URL, q url.Values) { q.Del("search_path") }))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	statements := regexp.MustCompile("`((?:SELECT|SET) [^`]+)`").FindAllStringSubmatch(section, -1)
	if len(statements) < 5 {
		t.Fatalf("only %d statements were found", len(statements))
	}
	for _, s := range statements {
		if _, err := conn.ExecContext(t.Context(), strings.Replace(s[1], "search_path = regie", "search_path = "+schemaOf(t, address), 1)); err != nil {
			t.Errorf("%s: %v", s[1], err)
		}
	}
}
