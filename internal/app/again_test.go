package app_test

import (
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// TestDenialSaidAgain: a reason that is cleaned before it is stored is still the same reason when
// the request comes again.
func TestDenialSaidAgain(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("I write.", write("a", "a.txt", "one\n")), says("Then not."))
	b := newBed(t, m)
	conn := b.connect()
	run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	a := b.parked(conn, run.SessionID).Approvals[0]
	in := decide(a, "d1", regie.Decision{CallID: a.Reviews[0].CallID, Answer: regie.AnswerDeny, Reason: "not \u202ethis\x1b one"})
	for range 2 {
		if _, err := conn.Decide(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	in.Decisions[0].Reason = "for another reason"
	if _, err := conn.Decide(t.Context(), in); regie.CodeOf(err) != regie.CodeConflict {
		t.Fatalf("another reason under the same id: %v", err)
	}
}
