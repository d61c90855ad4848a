package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
)

// Places in the queue (decision 43) follow from the slots. The transition that moves a session logs
// its new place. Where several processes write, another process may hold that session's log;
// waiting for it could deadlock. Then the place is not logged, and the next look at the queue logs
// it.

// maxPlaces bounds how many sessions have their place logged. Those further behind are logged when
// they move up among these.
const maxPlaces = 20

// tellPlace logs the place of a session.
func (t slotTx) tellPlace(session regie.ID, chain, place int64, now time.Time) {
	t.appendEvent(session, chain, now, regie.EventSessionState,
		stateEvent{State: regie.SessionQueued, Position: int(place)})
	t.exec("UPDATE slots SET told = ? WHERE session = ?", place, chain)
}

// placeOf returns the place of a queued session.
func (t slotTx) placeOf(chain int64, now time.Time) int64 {
	o, _ := t.ownedBy(chain)
	return int64(slot.Position(t.w.slots, t.slotsOf(o), chain, now))
}

// TellPlaces logs the places of queued sessions, where they differ from the last logged ones.
func (s slotStore) TellPlaces(ctx context.Context, sessions []regie.ID) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		for _, session := range slices.SortedFunc(slices.Values(sessions), compareIDs) { // as every transition holds logs
			t.holdRow(ByOwner, session)
			var chain, told int64
			err := t.row(
				"SELECT q.session, q.told FROM slots q JOIN sessions s ON s.n = q.session WHERE s.id = ? AND q.state = 'QUEUED'", session).Scan(&chain, &told)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err != nil {
				return err
			}
			place := t.slots.placeOf(chain, now)
			if place > 0 && place != told && (place <= maxPlaces || told <= maxPlaces) {
				t.slots.tellPlace(session, chain, place, now)
			}
		}
		return nil
	})
}

func compareIDs(a, b regie.ID) int { return bytes.Compare(a[:], b[:]) }
