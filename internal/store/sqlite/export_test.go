package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
)

// TellErased has a log say that the bodies of all its rows may be gone, as retention and redaction
// would of some of them.
func (s *Store) TellErased(ctx context.Context, owner regie.ID) error {
	return s.writer.do(ctx, func(t *tx) error {
		var chain, head int64
		if err := t.row("SELECT n, head FROM chains WHERE owner_id = ?", owner).Scan(&chain, &head); err != nil {
			return err
		}
		t.appendEvent(owner, chain, time.Now().UTC(), regie.EventErased, erasedEvent{Reason: "TEST", Rows: [][2]int64{{1, head}}})
		return nil
	})
}
