package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// SetLevel2 sets the present level 2 of the workspace for a round that was taken up (spec 6.1,
// decision 53); the zero hash means none. It returns CodeStale, and CodeStopRequested after a stop
// request.
func (s roundStore) SetLevel2(ctx context.Context, fence store.Fence, level2 regie.Hash) error {
	b := batch{fence: fence, now: time.Now().UTC()}
	b.addEvent(regie.EventLevels, regie.Levels{RoundID: fence.RoundID, Level2: level2})
	return s.writer.do(ctx, func(t *tx) error {
		t.rounds.mayWrite(fence, true)
		t.exec(`INSERT INTO former_levels (round_id, level2) SELECT id, level2 FROM rounds WHERE id = ? AND level2 IS NOT NULL
			ON CONFLICT DO NOTHING`, fence.RoundID)
		t.exec("UPDATE rounds SET level2 = ? WHERE id = ?", level2, fence.RoundID)
		b.writeBatch(t)
		return nil
	})
}
