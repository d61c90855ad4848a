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

// Places in the queue (decision 43) follow from the slots; each log has its session's place, from
// the transition that moved it. With several writing processes, another one may hold a session's
// log for long: such a session is skipped, and the next look at the queue tells it.

// maxPlaces bounds the places that are told as they move: a session further back hears of its place
// when it comes among these.
const maxPlaces = 20

// tellPlace tells one session its place.
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

// TellPlaces tells queued sessions their places, where these are others than their logs say.
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
