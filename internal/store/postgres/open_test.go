package postgres_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestOpenTogether has several processes' worth of stores open an empty database at once: it is
// migrated once, and they agree on a key.
func TestOpenTogether(t *testing.T) {
	address, dir := storetest.Postgres(t), t.TempDir()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			s, err := postgres.Open(t.Context(), postgres.Config{URL: address, Dir: dir})
			if err == nil {
				_, err = s.EnsureUser(t.Context(), "ada")
			}
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// TestOpenOnNodes has two nodes open an empty database at once: one makes the key, the other one is
// refused and makes none.
func TestOpenOnNodes(t *testing.T) {
	address, dirs := storetest.Postgres(t), []string{t.TempDir(), t.TempDir()}
	failed := make([]error, len(dirs))
	var group sync.WaitGroup
	for i, dir := range dirs {
		group.Go(func() {
			s, err := postgres.Open(t.Context(), postgres.Config{URL: address, Dir: dir})
			if failed[i] = err; err == nil {
				failed[i] = s.Close()
			}
		})
	}
	group.Wait()
	last := 0 // who came second
	if failed[1] != nil {
		last = 1
	}
	if failed[1-last] != nil || regie.CodeOf(failed[last]) != regie.CodeCorrupt {
		t.Fatalf("%v, want one of them refused without the key", failed)
	}
	if _, err := os.Stat(filepath.Join(dirs[last], "audit.key")); err == nil {
		t.Error("the node that was refused has made a key")
	}
	key, err := os.ReadFile(filepath.Join(dirs[1-last], "audit.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dirs[last], "audit.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		open(t, postgres.Config{URL: address, Dir: dir})
	}
}

// change is the URL with another user, host or parameter.
func change(t *testing.T, address string, fn func(u *url.URL, query url.Values)) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	fn(u, query)
	u.RawQuery = query.Encode()
	return u.String()
}

// schemaOf is the schema that a URL names.
func schemaOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("search_path")
}

// TestOpenRefuses shows each way in which a database cannot be used, and that the message never
// holds the password.
func TestOpenRefuses(t *testing.T) {
	address := storetest.Postgres(t)
	dir := t.TempDir()
	if err := open(t, postgres.Config{URL: address, Dir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	role := "r" + strings.ReplaceAll(regie.NewID().String(), "-", "")
	storetest.PostgresExec(t, address, "CREATE ROLE "+role+" LOGIN PASSWORD 'sekret'")
	t.Cleanup(func() { storetest.PostgresExec(t, address, "DROP ROLE "+role) })
	as := func(u *url.URL, _ url.Values) { u.User = url.UserPassword(role, "sekret") }
	refused := func(state, message string) string {
		return "postgres://ada:sekret@" + storetest.Refuser(t, state, message) + "/x?sslmode=disable"
	}
	for _, bad := range []struct {
		name, url, dir, say string
		code                regie.Code
		min                 int
		reading             bool
	}{
		{name: "no URL", url: "host=127.0.0.1 password=sekret", code: regie.CodeBadRequest, say: "postgres://"},
		{name: "a broken URL", url: "postgres://u:sek%ret@h/x", code: regie.CodeBadRequest, say: "percent-encoded"},
		{name: "two schemas", url: change(t, address, func(_ *url.URL, q url.Values) { q.Set("search_path", "a,b") }), code: regie.CodeBadRequest, say: "one schema"},
		{name: "one connection", url: change(t, address, func(_ *url.URL, q url.Values) { q.Set("pool_max_conns", "1") }), code: regie.CodeBadRequest, say: "pool_max_conns"},
		{name: "no server", url: "postgres://u:sekret@127.0.0.1:1/x", code: regie.CodeDatabaseDown, say: "is the server running"},
		{name: "no such host", url: "postgres://u:sekret@nowhere.invalid/x", code: regie.CodeDatabaseDown, say: "nowhere.invalid"},
		{name: "no such database", url: change(t, address, func(u *url.URL, _ url.Values) { u.Path = "/nosuch" }), code: regie.CodeNotFound, say: "createdb"},
		{name: "no such user", url: change(t, address, func(u *url.URL, _ url.Values) { u.User = url.UserPassword("nosuch", "sekret") }), code: regie.CodeNoPermission, say: "nosuch"},
		{name: "a wrong password", url: refused("28P01", "password authentication failed for user \"ada\""), code: regie.CodeNoPermission, say: "refused the user or the password"},
		{name: "a server that is starting", url: refused("57P03", "the database system is starting up"), code: regie.CodeDatabaseDown, say: "starting up"},
		{name: "too many connections", url: refused("53300", "sorry, too many clients already"), code: regie.CodeDatabaseDown, say: "too many clients"},
		{name: "another's schema", url: change(t, address, as), code: regie.CodeNoPermission, say: "AUTHORIZATION " + role},
		{name: "no permission to make one", url: change(t, address, func(u *url.URL, q url.Values) { as(u, q); q.Set("search_path", role) }), code: regie.CodeNoPermission, say: "CREATE SCHEMA " + role},
		{name: "read-only", url: change(t, address, func(_ *url.URL, q url.Values) {
			q.Set("search_path", role)
			q.Set("default_transaction_read_only", "on")
		}), code: regie.CodeReadOnly, say: "primary"},
		{name: "read-only, with all that is needed", url: change(t, address, func(_ *url.URL, q url.Values) { q.Set("default_transaction_read_only", "on") }), dir: dir, code: regie.CodeReadOnly, say: "primary"},
		{name: "too old", url: address, dir: dir, code: regie.CodeConflict, say: "version 99 or newer", min: 990000},
		{name: "without the key", url: address, code: regie.CodeCorrupt, say: "audit.key is missing"},
		{name: "nothing there to read", url: change(t, address, func(_ *url.URL, q url.Values) { q.Set("search_path", role) }), code: regie.CodeNotFound, say: "nothing has run", reading: true},
	} {
		t.Run(bad.name, func(t *testing.T) {
			if bad.dir == "" {
				bad.dir = t.TempDir()
			}
			s, err := postgres.Open(t.Context(), postgres.Config{URL: bad.url, Dir: bad.dir, MinVersion: bad.min, ReadOnly: bad.reading})
			if err == nil {
				_ = s.Close()
				t.Fatal("it was opened")
			}
			if regie.CodeOf(err) != bad.code || !strings.Contains(err.Error(), bad.say) || strings.Contains(err.Error(), "sekret") {
				t.Errorf("got %s: %v\nwant %s that says %q", regie.CodeOf(err), err, bad.code, bad.say)
			}
			if french := i18n.New("fr").Error(err); french == err.Error() || strings.Contains(french, "sekret") {
				t.Errorf("in French: %s", french)
			}
		})
	}
}

// TestSchemas refuses the schema of a newer program, for writing and for reading, and leaves it as
// it is.
func TestSchemas(t *testing.T) {
	address, dir := storetest.Postgres(t), t.TempDir()
	if err := open(t, postgres.Config{URL: address, Dir: dir}).Close(); err != nil {
		t.Fatal(err)
	}
	storetest.PostgresExec(t, address, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)")
	for _, reading := range []bool{false, true} {
		if _, err := postgres.Open(t.Context(), postgres.Config{URL: address, Dir: dir, ReadOnly: reading}); regie.CodeOf(err) != regie.CodeNewerSchema {
			t.Errorf("a newer schema: %v", err)
		}
	}
	storetest.PostgresExec(t, address, "UPDATE goose_db_version SET version_id = 23 WHERE version_id > 0")
	for _, reading := range []bool{false, true} {
		if _, err := postgres.Open(t.Context(), postgres.Config{URL: address, Dir: dir, ReadOnly: reading}); regie.CodeOf(err) != regie.CodeSchemaTooOld {
			t.Errorf("a schema of before: %v", err)
		}
	}
	storetest.PostgresExec(t, address, "DELETE FROM goose_db_version WHERE version_id > 0")
	if _, err := postgres.Open(t.Context(), postgres.Config{URL: address, Dir: dir, ReadOnly: true}); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("no schema: %v", err)
	}
}

// TestReadOnly reads beside a writer and writes nothing.
func TestReadOnly(t *testing.T) {
	address, dir := storetest.Postgres(t), t.TempDir()
	w := storetest.NewWorld(t, open(t, postgres.Config{URL: address, Dir: dir}))
	fence := w.Start()
	s := open(t, postgres.Config{URL: address, Dir: dir, ReadOnly: true})
	if _, err := s.RoundView(t.Context(), fence.RoundID); err != nil {
		t.Error(err)
	}
	if _, err := s.Verify(t.Context(), fence.SessionID); err != nil {
		t.Error(err)
	}
	if _, err := s.EnsureUser(t.Context(), "eve"); regie.CodeOf(err) != regie.CodeReadOnly {
		t.Errorf("a write: %v", err)
	}
}
