package sqlite_test

import (
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// TestKeysEnd: an Idempotency-Key whose time is over is forgotten by a write with another one; what
// is younger stays.
func TestKeysEnd(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	request := regie.HashOf([]byte("request"))
	begin := func(key string) store.KeyedWrite {
		t.Helper()
		out, err := s.BeginKeyed(t.Context(), regie.HashOf([]byte(key)), request)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	begin("old")
	begin("young")
	db := raw(t, dir)
	for key, age := range map[string]time.Duration{"old": store.KeysKept + time.Hour, "young": store.KeysKept - time.Hour} {
		hash := regie.HashOf([]byte(key))
		if _, err := db.ExecContext(t.Context(), "UPDATE request_keys SET at = ? WHERE key = ?", time.Now().Add(-age).UnixMicro(), hash[:]); err != nil {
			t.Fatal(err)
		}
	}
	begin("another")
	var left int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM request_keys").Scan(&left); err != nil || left != 2 {
		t.Errorf("%d keys are left, want 2 (%v)", left, err)
	}
	if begin("young").Fresh || !begin("old").Fresh {
		t.Error("the young key is gone, or the old one is not")
	}
}
