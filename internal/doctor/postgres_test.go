package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/storetest"
)

// onPostgres is an examination of a PostgreSQL, with what was asked of it changed by change.
func onPostgres(t *testing.T, address, data string, change func(*postgres.Inspection)) Report {
	t.Helper()
	s := subject(data, t.TempDir())
	s.Config.Database = address
	s.Shared = func(ctx context.Context) postgres.Inspection {
		in := postgres.Inspect(ctx, postgres.Config{URL: address, Dir: data})
		if change != nil {
			change(&in)
		}
		return in
	}
	return Examine(t.Context(), s)
}

// about returns the findings of the database that are no good news, or all of them.
func about(r Report, all bool) (out []Finding) {
	for i := range r {
		if r[i].Group == Database && (all || r[i].Status != Fine) {
			out = append(out, r[i])
		}
	}
	return out
}

// TestShared examines a real PostgreSQL before, during and after its first use, and each way in
// which it is wrong; each ✗ has a fix.
func TestShared(t *testing.T) {
	address, data := storetest.Postgres(t), t.TempDir()
	expect := func(name string, found Report, id string, status Status, code regie.Code, says string) {
		t.Helper()
		for _, f := range about(found, true) {
			said := f.Text.String()
			if f.Cause != nil {
				said = f.Cause.Error()
			}
			if strings.Contains(said+fixes(&f), "postgres:postgres") {
				t.Errorf("%s: the password is in %q", name, said)
			}
			if f.ID == "database."+id && f.Status == status && f.Code == code && strings.Contains(said, says) && (status != Failed || len(f.Fixes) > 0) {
				return
			}
		}
		t.Errorf("%s: no finding %s, %s %s, that says %q in %+v", name, id, status, code, says, about(found, true))
	}
	expect("before the first run", onPostgres(t, address, data, nil), "schema", Fine, "", "not exist yet")
	s, err := postgres.Open(t.Context(), postgres.Config{URL: address, Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.EnsureUser(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if bad := about(onPostgres(t, address, data, nil), false); len(bad) > 0 {
		t.Errorf("of a healthy database: %+v", bad)
	}
	expect("healthy", onPostgres(t, address, data, nil), "schema", Fine, "", "current")
	expect("without the key", onPostgres(t, address, t.TempDir(), nil), "key", Failed, regie.CodeCorrupt, "audit.key is missing")
	expect("read-only", onPostgres(t, address+"&default_transaction_read_only=on", data, nil), "writable", Failed, regie.CodeReadOnly, "is read-only")
	expect("fsync off", onPostgres(t, address, data, func(in *postgres.Inspection) { in.Fsync = false }), "fsync", Failed, "", "fsync = off")
	storetest.PostgresExec(t, address, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)")
	expect("a newer schema", onPostgres(t, address, data, nil), "schema", Failed, regie.CodeNewerSchema, "schema 999")
	storetest.PostgresExec(t, address, "UPDATE goose_db_version SET version_id = 23")
	expect("a schema of before", onPostgres(t, address, data, nil), "schema", Failed, regie.CodeSchemaTooOld, "regie sessions export")
	if _, err := os.Stat(filepath.Join(data, "audit.key")); err != nil {
		t.Error(err)
	}
}

// TestSharedUnreachable says why a PostgreSQL cannot be asked, and what to do.
func TestSharedUnreachable(t *testing.T) {
	for name, c := range map[string]struct {
		url, says string
		code      regie.Code
	}{
		"nobody there":     {"postgres://ada:sekret@127.0.0.1:1/x", "is the server running", regie.CodeDatabaseDown},
		"a wrong password": {"postgres://ada:sekret@" + storetest.Refuser(t, "28P01", "password authentication failed") + "/x?sslmode=disable", "refused the user", regie.CodeNoPermission},
		"no such database": {"postgres://ada:sekret@" + storetest.Refuser(t, "3D000", "no x") + "/x?sslmode=disable", "createdb", regie.CodeNotFound},
		"no URL":           {"postgres://ada:sekret@h/x?sslmode=perhaps", "cannot be read", regie.CodeBadRequest},
	} {
		found := about(onPostgres(t, c.url, t.TempDir(), nil), true)
		if len(found) != 1 || found[0].Status != Failed || found[0].Code != c.code || !strings.Contains(found[0].Cause.Error(), c.says) || len(found[0].Fixes) != 1 ||
			strings.Contains(found[0].Cause.Error()+fixes(&found[0]), "sekret") {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
