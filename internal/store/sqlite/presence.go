package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Present stores heartbeats that an engine has seen (spec 5.4), and deletes those older than
// store.PresenceKept. A mark older than the stored one changes nothing.
func (s slotStore) Present(ctx context.Context, marks []store.PresenceMark) error {
	before := time.Now().Add(-store.PresenceKept).UnixMicro()
	return s.writer.do(ctx, func(t *tx) error {
		for _, m := range marks {
			t.exec(`INSERT INTO presence (user_id, place, since, seen) VALUES (?, ?, ?, ?)
				ON CONFLICT (user_id, place) DO UPDATE SET since = excluded.since, seen = excluded.seen WHERE presence.seen < excluded.seen`,
				m.UserID, m.Place, m.Since.UnixMicro(), m.Seen.UnixMicro())
		}
		t.exec("DELETE FROM presence WHERE seen < CAST(? AS BIGINT)", before)
		return nil
	})
}

// Presences returns the heartbeats of all engines since a moment, by user, the latest first.
func (s slotStore) Presences(ctx context.Context, since time.Time) ([]store.PresenceMark, error) {
	return queryAll(ctx, s.read, func(row scanner, m *store.PresenceMark) error {
		return row.Scan(&m.UserID, &m.Place, &m.Since, &m.Seen)
	}, "SELECT user_id, place, since, seen FROM presence WHERE seen >= CAST(? AS BIGINT) ORDER BY user_id, seen DESC",
		since.UnixMicro())
}

// UserName returns a user's name, or "".
func (s slotStore) UserName(ctx context.Context, id regie.ID) (name string, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT name FROM users WHERE id = ?", id).Scan(&name)
	return name, unlessFound(err, nil)
}

// SlotCounts counts the sessions by kind and state of slot, over all owners, with the oldest of
// each.
func (s slotStore) SlotCounts(ctx context.Context) ([]store.SlotCount, error) {
	return queryAll(ctx, s.read, func(row scanner, c *store.SlotCount) error {
		return row.Scan(&c.Kind, &c.State, &c.Sessions, &c.Since)
	}, "SELECT kind, state, count(*), min(since) FROM slots WHERE state <> 'RESERVED' OR until >= ? GROUP BY kind, state",
		time.Now().UnixMicro())
}
