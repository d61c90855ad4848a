package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
)

// Places in the queue (decision 43) follow from the slots; each log says at which place its session
// waits, from the transition that moved it. Where several processes write, another session's log
// may be held by somebody else just then: waiting for it could be for ever, so it is left out, and
// told by whoever looks at the queue next.

// maxPlaces bounds how many places are told as they move: those who wait behind hear of theirs when
// they come among these.
const maxPlaces = 20

// tellPlaces tells those in an owner's queue whose place is another one than their log says; with
// own also the session that the transition is about.
func (t slotTx) tellPlaces(o owned, own bool, now time.Time) error {
	if t.w.slots.Of(o.kind) == 0 {
		return nil
	}
	type line struct {
		session     regie.ID
		chain, told int64
	}
	var queued []line
	err := t.each(`SELECT s.id, q.session, q.told FROM slots q JOIN sessions s ON s.n = q.session
		WHERE q.workspace_id = ? AND q.user_id = ? AND q.state = 'QUEUED' ORDER BY q.session`, []any{o.workspace, o.user}, func(row found) error {
		var l line
		err := row.Scan(&l.session, &l.chain, &l.told)
		queued = append(queued, l)
		return err
	})
	if err != nil || len(queued) == 0 {
		return err
	}
	all, err := t.slotsOf(o)
	if err != nil {
		return err
	}
	for _, l := range queued {
		place := int64(slot.Position(t.w.slots, all, l.chain, now))
		switch {
		case place == l.told || place > maxPlaces && l.told > maxPlaces, l.chain == o.chain && !own:
			continue
		case l.chain != o.chain && !t.holdIfFree(l.chain):
			continue
		}
		if err := t.tellPlace(l.session, l.chain, place, now); err != nil {
			return err
		}
	}
	return nil
}

// tellPlace tells one session its place.
func (t slotTx) tellPlace(session regie.ID, chain, place int64, now time.Time) error {
	event, err := newEvent(regie.EventSessionState, stateEvent{State: regie.SessionQueued, Position: int(place)})
	if err != nil {
		return err
	}
	if _, err := t.appendEvents(session, chain, now, []logEvent{event}); err != nil {
		return err
	}
	return t.exec("UPDATE slots SET told = ? WHERE session = ?", place, chain)
}

// placeOf is the place of a queued session.
func (t slotTx) placeOf(chain int64, now time.Time) (int64, error) {
	o, _, err := t.ownedBy(chain)
	if err != nil {
		return 0, err
	}
	all, err := t.slotsOf(o)
	return int64(slot.Position(t.w.slots, all, chain, now)), err
}

// leavesQueue takes what a session has where it is queued, or whatever it has, and tells those
// behind it that they move up.
func (t slotTx) leavesQueue(chain int64, whatever bool, now time.Time) error {
	left, err := t.count("DELETE FROM slots WHERE session = ? AND state = 'QUEUED'", chain)
	if err != nil || left == 0 {
		if err == nil && whatever {
			err = t.giveSlot(chain)
		}
		return err
	}
	o, _, err := t.ownedBy(chain)
	if err != nil {
		return err
	}
	return t.tellPlaces(o, false, now)
}

// TellPlace tells a session its place in the queue, where its log says another one: what the
// transition that moved it could not.
func (s slotStore) TellPlace(ctx context.Context, session regie.ID) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		t.hold(ByOwner, session)
		var chain, told int64
		err := t.row(
			"SELECT q.session, q.told FROM slots q JOIN sessions s ON s.n = q.session WHERE s.id = ? AND q.state = 'QUEUED'", session).Scan(&chain, &told)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		place, err := t.slots.placeOf(chain, now)
		if err != nil || place == 0 || place == told || place > maxPlaces && told > maxPlaces {
			return err
		}
		return t.slots.tellPlace(session, chain, place, now)
	})
}

// moved reports whether a queued session's log says another place than it has.
func moved(c slot.Capacity, all []slot.Entry, told map[int64]int64, now time.Time) func(int64) bool {
	return func(session int64) bool {
		place := int64(slot.Position(c, all, session, now))
		return place > 0 && place != told[session] && (place <= maxPlaces || told[session] <= maxPlaces)
	}
}
