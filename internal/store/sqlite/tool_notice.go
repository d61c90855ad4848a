package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Note stores a message for the audit, and parks a round that cannot continue a call for now
// (decisions 5 and 42). It returns CodeStale, CodeStopRequested after a stop request, and
// CodeConflict for a call that is not STARTED.
func (s roundStore) Note(ctx context.Context, fence store.Fence, in store.Note) (store.Outcome, error) {
	now := time.Now().UTC()
	b := batch{fence: fence, now: now}
	if in.Message != nil {
		b.addMessage(in.Message)
	}
	waits := !in.Waits.IsZero()
	return transition(ctx, s.writer, func(t *tx, out *store.Outcome) error {
		t.rounds.mayWrite(fence, waits)
		if waits {
			t.one(errNotStarted,
				"UPDATE calls SET recovered = 1, attempts = attempts + 1 WHERE id = ? AND round_id = ? AND state = 'STARTED'",
				in.Waits, fence.RoundID)
		}
		if b.writeBatch(t); !waits {
			return nil
		}
		t.waits.storeWait(fence, regie.NewID(), regie.WaitNetwork, in.Waits, in.Until, now)
		t.rounds.applyFollows(fence, follows{park: true}, out, now)
		return nil
	})
}

var errNotStarted = regie.Errorf(regie.CodeConflict, "the call has not been started, or already has its result")
