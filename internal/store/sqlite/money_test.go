package sqlite_test

import (
	"testing"

	"github.com/regie-run/regie/internal/store/storetest"
)

func TestAgedAttempt(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	storetest.NewWorld(t, s).AgedAttempt(func() {
		if _, err := raw(t, dir).ExecContext(t.Context(), `
			UPDATE attempts SET ended_at = ended_at - 172800000000`); err != nil {
			t.Fatal(err)
		}
	})
}
