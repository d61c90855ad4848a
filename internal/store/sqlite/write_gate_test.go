package sqlite_test

import (
	"errors"
	"testing"

	"github.com/regie-run/regie/internal/store/sqlite"
)

// TestGate: a gate that closes before a transition keeps it out, one that closes after its commit
// keeps only its answer.
func TestGate(t *testing.T) {
	closed := errors.New("closed")
	var wrote []bool
	shut := false
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir(), Gate: func(committed, w bool) error {
		if committed {
			wrote = append(wrote, w)
		}
		if shut && (committed || len(wrote) > 2) {
			return closed
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 { // the second time she is there
		if _, err := s.EnsureUser(t.Context(), "ada"); err != nil {
			t.Fatal(err)
		}
	}
	shut = true
	if _, err := s.EnsureUser(t.Context(), "bob"); !errors.Is(err, closed) {
		t.Fatalf("committed behind a closed gate: %v", err)
	}
	if _, err := s.EnsureUser(t.Context(), "eve"); !errors.Is(err, closed) {
		t.Fatalf("passed a closed gate: %v", err)
	}
	if len(wrote) != 3 || !wrote[0] || wrote[1] || !wrote[2] {
		t.Errorf("the gate was told of %v", wrote)
	}
}
