package dispatch_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// TestOverdueFirst leaves an approval unanswered until its time is over, while no engine runs. The
// next one gives it up before it looks for what goes on, so that nothing finds it undecided, and
// then goes on with its round too.
func TestOverdueFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		act := counted(t, regie.ClassOnce, &runs)
		h := newHouse(t, slow{}, acts(), act)
		in := h.world.Submission("act")
		in.Round.Policy, in.Round.Limits.Retries = json.RawMessage(`{}`), 3
		asked := h.asked(t, in)
		h.dispatcher.Close(dispatch.ErrGone)
		time.Sleep(time.Until(asked.ExpiresAt) + time.Second) // of the bubble

		looked := 0
		h.next(t, slow{looking: func() {
			looked++
			round, err := h.store.Round(t.Context(), in.Round.ID)
			if err != nil || round.State != regie.RoundRunning {
				t.Errorf("when the orphans are looked for the round is %s (%v)", round.State, err)
			}
		}}, nil, acts(), act)
		synctest.Wait()
		h.ended(t, in.SessionID, in.Round.ID)
		if looked != 1 || runs != 0 {
			t.Errorf("the orphans were looked for %d times, the action ran %d times", looked, runs)
		}
	})
}
