package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

// Slots (spec 5.1, decision 21) are rows: a session's share of its owner's slots in its workspace.
// A transition that takes a slot, or a place in the queue, holds the owner's slots until the
// commit, so that two never take the same one. A transition that frees a slot holds nothing. Both
// look at the queue after their commit, so the later of the two sees both changes.

// SetSlots sets the number of slots, before the store is used. Without it slots are unlimited.
func (s slotStore) SetSlots(c slot.Capacity) {
	s.slots = c
	if s.writer != nil {
		s.writer.slots = c
	}
}

// owned is a session's state when it asks for its slot.
type owned struct {
	chain           int64
	workspace, user regie.ID
	kind            slot.Kind
	rounds          int  // that there are already
	clients         bool // calls of a client's tools wait for their results
}

// kindOf returns the kind of slot of a stored session.
func kindOf(kind, origin string) slot.Kind {
	return slot.KindOf(&regie.Session{Type: regie.SessionType(kind), Origin: regie.SessionOrigin(origin)})
}

// ownedBy reads the owner of an existing session, and whether its round is to run. It is not where
// it waits, its session is paused, or it only has to be ended, which needs no slot.
func (t slotTx) ownedBy(chain int64) (o owned, runs bool) {
	var paused time.Time
	var stop regie.StopRequest
	var state regie.RoundState
	var kind, origin string
	t.fail(t.row(`SELECT s.workspace_id, s.user_id, s.type, s.origin, s.paused_at, r.state, r.stop_request FROM sessions s
		LEFT JOIN rounds r ON r.session = s.n AND r.state <> 'ENDED' WHERE s.n = ?`, chain).Scan(&o.workspace, &o.user, &kind, &origin, &paused, &state, &stop))
	o.chain, o.kind = chain, kindOf(kind, origin)
	runs = paused.IsZero() && (stop == "" || stop == regie.StopPause) && (state == "" || state == regie.RoundRunning)
	return o, runs
}

const slotsOfOwner = "SELECT session, kind, state, rank, place, until FROM slots WHERE workspace_id = ? AND user_id = ?"

func scanSlot(row scanner, e *slot.Entry) error {
	return row.Scan(&e.Session, &e.Kind, &e.State, &e.Rank, &e.Place, &e.Until)
}

// slotsOf holds the slots of an owner and reads them.
func (t slotTx) slotsOf(o owned) []slot.Entry {
	if t.other != nil {
		t.other.HoldSlots(o.workspace, o.user)
	}
	all, err := readAll(t.tx, scanSlot, slotsOfOwner, o.workspace, o.user)
	t.fail(err)
	return all
}

// askSlot takes a slot for a session's round, or a place in the queue, by the table. The session's
// row must exist, or be stored by this transition.
func (t slotTx) askSlot(o owned, ask slot.Ask, now time.Time) slot.Decision {
	if t.w.slots.Of(o.kind) == 0 {
		return slot.Decision{Outcome: slot.Activate}
	}
	all := t.slotsOf(o)
	d := slot.Decide(t.w.slots, all, o.chain, o.kind, ask, now)
	switch d.Outcome {
	case slot.Already, slot.Refuse:
		return d
	case slot.Activate:
		t.putSlot(o, slot.Held, 0, lastPlace(all)+1)
		return d
	}
	if d.Replaced != 0 { // it loses its place and nothing else (decision 43)
		t.exec("UPDATE slots SET rank = ? WHERE session = ? AND state = 'QUEUED'", slot.RankGoesOn, d.Replaced)
	}
	t.putSlot(o, slot.Queued, d.Rank, lastPlace(all)+1)
	return d
}

func lastPlace(all []slot.Entry) (last int64) {
	for _, e := range all {
		last = max(last, e.Place)
	}
	return last
}

// putSlot stores a session's slot or place; an earlier place in the queue stays.
func (t slotTx) putSlot(o owned, state slot.State, rank int, place int64) {
	t.exec(`INSERT INTO slots (session, workspace_id, user_id, kind, state, rank, place, since) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (session) DO UPDATE SET place = CASE WHEN slots.state = 'QUEUED' AND excluded.state = 'QUEUED' THEN slots.place ELSE excluded.place END,
			rank = CASE WHEN slots.state = 'QUEUED' AND excluded.state = 'QUEUED' AND slots.rank < excluded.rank THEN slots.rank ELSE excluded.rank END,
			told = CASE WHEN slots.state = 'QUEUED' AND excluded.state = 'QUEUED' THEN slots.told ELSE 0 END,
			since = CASE WHEN slots.state = 'QUEUED' AND excluded.state = 'QUEUED' THEN slots.since ELSE excluded.since END,
			kind = excluded.kind, until = NULL, state = excluded.state`,
		o.chain, o.workspace, o.user, string(o.kind), string(state), rank, place, time.Now().UnixMicro())
}

// giveSlot frees a session's slot: its round waits, is paused or has ended.
func (t slotTx) giveSlot(chain int64) {
	t.exec("DELETE FROM slots WHERE session = ?", chain)
}

// goesOn asks for the slot of a round that continues (decision 21, WAKE), and reports whether it is
// queued.
func (t slotTx) goesOn(chain int64, now time.Time) (queued bool) {
	o, runs := t.ownedBy(chain)
	return runs && t.askSlot(o, slot.AskWake, now).Outcome == slot.Queue
}

// claimSlot takes a slot for a claimed round that is to run, and reports whether it is queued
// instead.
func (t slotTx) claimSlot(o owned, now time.Time) (queued bool) {
	chain := o.chain
	if t.w.slots.Of(o.kind) == 0 {
		t.exec("DELETE FROM slots WHERE session = ? AND state <> 'HELD'", chain)
		return false
	}
	all := t.slotsOf(o)
	var own slot.Entry
	for _, e := range all {
		if e.Session == chain {
			own = e
		}
	}
	switch {
	case own.State == slot.Held && slot.Overfull(t.w.slots, all, chain, now): // the capacity was lowered since
		t.putSlot(o, slot.Queued, slot.RankGoesOn, lastPlace(all)+1)
		return true
	case own.State == slot.Held:
		return false
	case own.State == slot.Queued && slot.MayStart(t.w.slots, all, chain, now):
		fault.Point(fault.QueueStartBefore)
		t.putSlot(o, slot.Held, 0, lastPlace(all)+1)
		return false
	case own.State == slot.Queued:
		return true
	}
	return t.askSlot(o, slot.AskWake, now).Outcome == slot.Queue
}

// Yield releases a running round in good order, as Release does, because another one takes its
// slot. The round is queued and continues without a request (decision 21).
func (s slotStore) Yield(ctx context.Context, fence store.Fence) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		t.rounds.mayWrite(fence, true)
		o, _ := t.slots.ownedBy(fence.Chain)
		all := t.slots.slotsOf(o)
		t.money.releaseReservation(fence.RoundID)
		t.exec("UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE n = ? AND epoch = ?",
			fence.Chain, fence.Epoch)
		t.slots.putSlot(o, slot.Queued, slot.RankGoesOn, lastPlace(all)+1)
		fault.Point(fault.YieldBefore)
		t.waits.deriveState(fence.SessionID, fence.Chain, now)
		return nil
	})
}

// RequestControl answers whether a round of the session could start now, and reserves a free slot
// for it (decision 43). A session with a queued round moves to the front of the chats. It returns
// CodeNotFound, and CodeConflict for a session that can start no round.
func (s slotStore) RequestControl(ctx context.Context, in store.Control) (out store.Controlled, err error) {
	now := time.Now().UTC()
	until := now.Add(in.For).Truncate(time.Microsecond)
	err = s.writer.do(ctx, func(t *tx) error {
		out = store.Controlled{State: store.ControlActivated}
		s, err := t.holdSession(in.SessionID)
		chain, state, kind := s.chain, s.state, s.kind
		switch {
		case err != nil:
			return err
		case state == regie.SessionClosed && kind != regie.SessionChat:
			return regie.Errorf(regie.CodeConflict, "the session is closed")
		case state == regie.SessionActive:
			out.State = store.ControlActive
			return nil
		}
		o, _ := t.slots.ownedBy(chain)
		switch {
		case o.kind == slot.None:
			return regie.Errorf(regie.CodeConflict, "a session of type %s cannot run anything", kind)
		case t.w.slots.Of(o.kind) == 0:
			return nil
		}
		all := t.slots.slotsOf(o)
		d := slot.Decide(t.w.slots, all, chain, o.kind, in.Ask, now)
		if state == regie.SessionQueued {
			out.State = store.ControlQueued
			t.slots.askPlace(o, d)
			out.Position = max(1, slot.Position(t.w.slots, t.slots.slotsOf(o), chain, now))
			return nil
		}
		switch {
		case d.Outcome == slot.Refuse:
			out.State = store.ControlRefused
			return nil
		case d.Outcome == slot.Queue:
			out.State, out.Position = store.ControlQueued, max(1, d.Position)
			return nil
		case state != regie.SessionIdle && state != regie.SessionClosed:
			if d.Outcome == slot.Switch {
				out.State, out.Position = store.ControlQueued, d.Position
			}
			return nil // a waiting round asks for its slot when it continues
		case d.Outcome == slot.Switch:
			// The round that yields releases its slot at the end of its step, and the reservation
			// keeps others from it.
			out.State, out.Position = store.ControlQueued, d.Position // a message has to wait until then
			if lost := slot.Lost(t.w.slots, all, chain, o.kind, now); lost != 0 {
				t.exec("DELETE FROM slots WHERE session = ? AND state = 'RESERVED'", lost)
			}
		}
		out.Until = until
		t.slots.reserveSlot(o, lastPlace(all)+1, until)
		return nil
	})
	return out, err
}

// askPlace gives a queued session the first place among the chats.
func (t slotTx) askPlace(o owned, d slot.Decision) {
	if d.Rank != slot.RankPlaced {
		return
	}
	if d.Replaced != 0 {
		t.exec("UPDATE slots SET rank = ? WHERE session = ? AND state = 'QUEUED'",
			slot.RankGoesOn, d.Replaced)
	}
	t.exec("UPDATE slots SET rank = ? WHERE session = ? AND state = 'QUEUED'", slot.RankPlaced, o.chain)
}

func (t slotTx) reserveSlot(o owned, place int64, until time.Time) {
	t.exec("DELETE FROM slots WHERE workspace_id = ? AND user_id = ? AND state = 'RESERVED' AND until < ?",
		o.workspace, o.user, time.Now().UnixMicro())
	t.exec(`INSERT INTO slots (session, workspace_id, user_id, kind, state, rank, place, until, since) VALUES (?, ?, ?, ?, 'RESERVED', 0, ?, ?, ?)
		ON CONFLICT (session) DO UPDATE SET until = excluded.until WHERE slots.state = 'RESERVED'`, o.chain, o.workspace, o.user, string(o.kind), place, until.UnixMicro(), time.Now().UnixMicro())
}

// ReleaseControl frees the slot or the first place that RequestControl gave. A queued round stays
// queued (decision 43).
func (s slotStore) ReleaseControl(ctx context.Context, session regie.ID) error {
	return s.writer.do(ctx, func(t *tx) error {
		s, err := t.holdSession(session)
		t.exec("DELETE FROM slots WHERE session = ? AND state = 'RESERVED'", s.chain)
		t.exec("UPDATE slots SET rank = ? WHERE session = ? AND state = 'QUEUED' AND rank = ?",
			slot.RankGoesOn, s.chain, slot.RankPlaced)
		return err
	})
}

// Queues returns the possible moves of the rounds that wait for a slot: those of a session's owner,
// or all for the zero ID.
func (s slotStore) Queues(ctx context.Context, session regie.ID) (out store.QueueView, err error) {
	where, args := "", []any{}
	if !session.IsZero() {
		var waits bool // mostly none does: an index answers that without reading others' slots
		if err := s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM slots q JOIN sessions s ON s.workspace_id = q.workspace_id AND s.user_id = q.user_id
			WHERE s.id = ? AND q.state <> 'HELD')`, session).Scan(&waits); err != nil || !waits {
			return out, err
		}
		where, args = " AND (x.workspace_id, x.user_id) = (SELECT workspace_id, user_id FROM sessions WHERE id = ?)",
			[]any{session}
	}
	type line struct {
		slot.Entry
		of   [2]regie.ID
		told int64
		r    store.Resolved
	}
	lines, err := queryAll(ctx, s.read, func(row scanner, l *line) error {
		e := &l.Entry
		return row.Scan(&l.of[0], &l.of[1], &l.r.SessionID, &l.r.RoundID, &l.told, &e.Session, &e.Kind, &e.State,
			&e.Rank, &e.Place, &e.Until)
	}, `SELECT x.workspace_id, x.user_id, s.id, r.id, x.told, x.session, x.kind, x.state, x.rank, x.place, x.until FROM slots x
		JOIN sessions s ON s.n = x.session LEFT JOIN rounds r ON r.session = s.n AND r.state <> 'ENDED' WHERE (1 = 1)`+where+" ORDER BY x.workspace_id, x.user_id, x.place", args...)
	now := time.Now()
	for len(lines) > 0 && err == nil {
		n := slices.IndexFunc(lines, func(l line) bool { return l.of != lines[0].of })
		if n < 0 {
			n = len(lines)
		}
		var all []slot.Entry
		rounds := map[int64]store.Resolved{}
		for i := range lines[:n] {
			l := &lines[i]
			l.r.Ready = l.State == slot.Queued
			all, rounds[l.Session] = append(all, l.Entry), l.r
		}
		next := slot.Look(s.slots, all, now)
		for _, session := range next.Start {
			out.Start = append(out.Start, rounds[session])
		}
		for _, session := range next.Yield {
			out.Yield = append(out.Yield, rounds[session])
		}
		for _, l := range lines[:n] {
			switch {
			case l.State == slot.Queued:
				out.Queued = append(out.Queued, l.r)
				if place := int64(slot.Position(s.slots, all, l.Session, now)); place != l.told &&
					(place <= maxPlaces || l.told <= maxPlaces) {
					out.Moved = append(out.Moved, l.r.SessionID)
				}
			case l.State == slot.Reserved && l.Until.After(now) && (out.Until.IsZero() || l.Until.Before(out.Until)):
				out.Until = l.Until
			}
		}
		lines = lines[n:]
	}
	return out, err
}

// scannerFunc is a scanner.
type scannerFunc func(dest ...any) error

// Scan implements scanner.
func (f scannerFunc) Scan(dest ...any) error { return f(dest...) }

// queuePositions sets the places of the queued ones among sessions.
func (s *core) queuePositions(ctx context.Context, q querier, sessions []store.SessionSummary) error {
	for i := range sessions {
		line := &sessions[i]
		if line.State != regie.SessionQueued {
			continue
		}
		all, err := queryAll(ctx, q, scanSlot, slotsOfOwner, line.WorkspaceID, line.UserID)
		if err != nil {
			return err
		}
		var chain int64
		if err := q.QueryRowContext(ctx, "SELECT n FROM sessions WHERE id = ?", line.ID).Scan(&chain); err != nil {
			return err
		}
		line.QueuePosition = slot.Position(s.slots, all, chain, time.Now())
	}
	return nil
}

// askFor returns the row of the table for a submitted round.
func askFor(kind slot.Kind, reason regie.Reason) slot.Ask {
	switch {
	case kind != slot.Automation && reason != regie.ReasonTaskCallback:
		return slot.AskChat
	case reason == regie.ReasonTaskCallback:
		return slot.AskEvent
	default:
		return slot.AskManual
	}
}
