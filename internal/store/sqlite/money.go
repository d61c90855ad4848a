package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// A cost is stored in three places, each written by the transition that learns of it: in the row of
// the call, in the sum of its round, and, where it was to be paid, in spending: one row for each
// session and one for each workspace and day. A reservation is stored only in the row of the open
// call and in its round's sum. One transition spends or frees it, and has nothing else to correct.
// So a cap is compared with two sums, and a crash leaves both consistent.

// ever is the day of the rows that sum all days.
const ever = 0

// dayOf returns the local day of a moment as a readable number: 20261122.
func dayOf(at time.Time) int64 {
	year, month, day := at.In(time.Local).Date() //nolint:gosmopolitan // a person's day is where they are
	return int64(year)*10_000 + int64(month)*100 + int64(day)
}

// Reserve replaces the reservation of a round's open model call by as much of wants as the caps
// leave. Where they leave too little it reserves nothing and names the cap. It returns CodeStale,
// CodeStopRequested, or CodeConflict where the exchange is not open.
func (s moneyStore) Reserve(ctx context.Context, fence store.Fence, exchange int,
	wants store.Reservation,
) (store.Granted, error) {
	var out store.Granted
	err := s.writer.do(ctx, func(t *tx) error {
		t.rounds.mayWrite(fence, true)
		t.money.releaseReservation(fence.RoundID)
		var err error
		if out, err = t.money.reserveMoney(fence, wants, time.Now()); err != nil {
			return err
		}
		t.one(errNotOpen,
			"UPDATE exchanges SET reserved_microusd = ? WHERE round_id = ? AND number = ? AND state = 'OPEN'",
			out.Reserved, fence.RoundID, exchange)
		return nil
	})
	return out, err
}

// reserveMoney adds what the caps leave of a reservation to its round's sum. Concurrent
// reservations under a shared cap run one after the other: each locks a row of the cap until its
// commit.
func (t moneyTx) reserveMoney(fence store.Fence, wants store.Reservation, now time.Time) (store.Granted, error) {
	var workspace regie.ID
	if err := t.row("SELECT workspace_id FROM sessions WHERE n = ?", fence.Chain).Scan(&workspace); err != nil {
		return store.Granted{}, err
	}
	out, err := t.grantMoney(wants, fence, workspace, now)
	if err != nil || out.Refused != nil {
		return out, err
	}
	t.exec("UPDATE rounds SET reserved_microusd = reserved_microusd + ? WHERE id = ?", out.Reserved,
		fence.RoundID)
	return out, nil
}

// grantMoney returns as much of the wanted reservation as every cap leaves. A call without a
// session has a zero fence, and counts as a run and a session of its own.
func (t moneyTx) grantMoney(wants store.Reservation, fence store.Fence, workspace regie.ID,
	now time.Time,
) (store.Granted, error) {
	out := store.Granted{Reserved: wants.Prompt + wants.Reply}
	for _, limit := range []struct {
		scope regie.CapScope
		cap   int64
	}{
		{regie.CapRound, wants.Caps.Round},
		{regie.CapSession, wants.Caps.Session},
		{regie.CapDay, wants.Caps.Day},
		{regie.CapWorkspace, wants.Caps.Workspace},
		{regie.CapWidget, wants.Caps.Widget},
	} {
		if limit.cap <= 0 {
			continue
		}
		used, err := t.usedOfCap(limit.scope, fence, workspace, now)
		if err != nil {
			return out, err
		}
		if fault.Bug(fault.BugBudget) {
			used = 0
		}
		granted, ok := wants.Grant(limit.cap - used)
		if !ok {
			return store.Granted{Refused: &store.OverCap{Scope: limit.scope, Cap: limit.cap, Used: used}}, nil
		}
		out.Reserved = min(out.Reserved, granted)
	}
	return out, nil
}

// usedOfCap returns the amount spent and reserved under a cap. It uses one statement, so that no
// amount can move between the two sums meanwhile.
func (t moneyTx) usedOfCap(scope regie.CapScope, fence store.Fence, workspace regie.ID,
	now time.Time,
) (used int64, err error) {
	switch scope {
	case regie.CapRound:
		err = t.row("SELECT spent_microusd + reserved_microusd FROM rounds WHERE id = ?", fence.RoundID).Scan(&used)
	case regie.CapSession:
		err = t.row(`SELECT coalesce((SELECT p.spent_microusd FROM spending p WHERE p.day = ? AND p.owner = s.id), 0)
				+ (SELECT r.reserved_microusd FROM rounds r WHERE r.id = ?) FROM sessions s WHERE s.n = ?`, int64(ever), fence.RoundID, fence.Chain).Scan(&used)
	case regie.CapWorkspace:
		t.holdBudget("SELECT id FROM workspaces WHERE id = ? FOR NO KEY UPDATE", workspace)
		err = t.row(`SELECT coalesce((SELECT p.spent_microusd FROM spending p WHERE p.day = ? AND p.owner = w.id), 0)
				+ coalesce((SELECT sum(r.reserved_microusd) FROM rounds r JOIN sessions o ON o.n = r.session
					WHERE r.reserved_microusd > 0 AND r.state <> 'ENDED' AND o.workspace_id = w.id), 0)
				+ coalesce((SELECT sum(x.reserved_microusd) FROM proxied x WHERE x.workspace_id = w.id AND x.state = 'OPEN'), 0)
			FROM workspaces w WHERE w.id = ?`, dayOf(now), workspace).Scan(&used)
	case regie.CapWidget:
		t.holdBudget("SELECT key FROM meta WHERE key = ? FOR NO KEY UPDATE", RecordedKey)
		err = t.row(usedByWidget+"(SELECT o.widget FROM visitors o WHERE o.session_id = ?2)", dayBegins(now).UnixMicro(),
			fence.SessionID).Scan(&used)
	default:
		t.holdBudget("SELECT key FROM meta WHERE key = ? FOR NO KEY UPDATE", RecordedKey) // a row that is always there
		err = t.row(`SELECT coalesce((SELECT sum(p.spent_microusd) FROM spending p WHERE p.day = ?), 0)
			+ coalesce((SELECT sum(r.reserved_microusd) FROM rounds r WHERE r.reserved_microusd > 0 AND r.state <> 'ENDED'), 0)
			+ coalesce((SELECT sum(x.reserved_microusd) FROM proxied x WHERE x.state = 'OPEN'), 0)`, dayOf(now)).Scan(&used)
	}
	return used, unlessFound(err, nil)
}

// holdBudget locks a cap until the commit, so that each transition sees the reservations of those
// before it. SQLite has one writer, and needs no lock.
func (t moneyTx) holdBudget(query string, key any) {
	if t.other != nil {
		t.other.Queue(nil, query, []any{key})
	}
}

// releaseReservation frees the reservation of a round's open model call.
func (t moneyTx) releaseReservation(round regie.ID) {
	t.exec(
		"UPDATE exchanges SET reserved_microusd = 0 WHERE round_id = ? AND state = 'OPEN' AND reserved_microusd > 0",
		round)
	t.exec("UPDATE rounds SET reserved_microusd = 0 WHERE id = ? AND reserved_microusd > 0", round)
}

// addUp adds a failed attempt, and the reservation for the next one, to its round's sums.
func (t moneyTx) addUp(fence store.Fence, add totals, reserved int64) {
	t.exec(`UPDATE rounds SET tokens = tokens + ?, spent_microusd = spent_microusd + ?,
		reserved_microusd = max(0, reserved_microusd - ? + ?) WHERE id = ?`,
		add.tokens, add.cost, add.released, reserved, fence.RoundID)
}

// bookCost adds a call's cost to the spending of its session and its workspace. A call without cost
// adds nothing.
func (t moneyTx) bookCost(fence store.Fence, add totals, now time.Time) {
	if add.cost == 0 && !add.unknown {
		return
	}
	t.bookFor(ever, "?", fence.SessionID, add)
	t.bookFor(dayOf(now), "(SELECT workspace_id FROM sessions WHERE n = ?)", fence.Chain, add)
}

func (t moneyTx) bookFor(day int64, owner string, of any, add totals) {
	if add.cost == 0 && !add.unknown {
		return
	}
	due := int64(0)
	if add.unknown {
		due = add.cost
	}
	t.exec(`INSERT INTO spending (day, owner, spent_microusd, due_microusd, unknown_calls) VALUES (?, `+owner+`, ?, ?, ?)
		ON CONFLICT (day, owner) DO UPDATE SET spent_microusd = spending.spent_microusd + excluded.spent_microusd,
		due_microusd = spending.due_microusd + excluded.due_microusd, unknown_calls = spending.unknown_calls + excluded.unknown_calls`,
		day, of, add.cost, due, boolToInt(add.unknown))
}

// Halt pauses a round at a cap, releases it, and notifies people of the reason (decision 44). It
// returns CodeStale, or CodeStopRequested after another stop request.
func (s moneyStore) Halt(ctx context.Context, fence store.Fence, in store.Halt) error {
	now := time.Now().UTC()
	b := batch{fence: fence, now: now}
	b.addEvent(regie.EventNotice, in.Notice)
	b.addEvent(regie.EventRound, roundEvent{RoundID: fence.RoundID, State: regie.RoundRunning, Stop: regie.StopPause})
	return s.writer.do(ctx, func(t *tx) error {
		t.rounds.mayWrite(fence, true)
		t.waits.pauseRound(fence.RoundID, fence.Chain, now)
		t.exec("UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE n = ?", fence.Chain)
		b.writeBatch(t)
		t.slots.giveSlot(fence.Chain)
		t.waits.deriveState(fence.SessionID, fence.Chain, now)
		return nil
	})
}

// worstCaseFor is how long a call that a crash cut keeps its reservation as a cost that may be due.
// Later the reservation is read as the estimate of its cost (decision 72). Every sum stays the
// same, so nothing is written.
const worstCaseFor = 24 * time.Hour

// attemptEstimated is 1 for a failed call with an estimated cost, because it was cut. Only a
// complete but unusable reply has its vendor's final count.
const attemptEstimated = "CASE WHEN a.code IN ('EMPTY_REPLY', 'BAD_REPLY', 'PROVIDER_REJECTED') THEN 0 ELSE 1 END"

// callsOf selects a spending over the calls of some rounds: their cost, the amount that may be due
// besides, the number of calls with unknown cost, and the estimated part of the cost. columns
// precede these, rounds selects the rounds, behind ends the query. old is the parameter for the
// moment before which a cut call no longer keeps its worst case.
func callsOf(columns, rounds, behind, old string) string {
	return "SELECT " + columns + `coalesce(sum(c.cost_microusd), 0), coalesce(sum(CASE WHEN c.cost_microusd IS NULL THEN c.reserved_microusd ELSE 0 END), 0),
			count(*) - count(c.cost_microusd), coalesce(sum(c.cost_microusd * c.estimated), 0)
		FROM (SELECT e.round_id, e.cost_microusd, e.reserved_microusd, 0 AS estimated
				FROM exchanges e WHERE e.state = 'REPLIED' AND e.round_id IN (` + rounds + `)
			UNION ALL SELECT a.round_id,
				coalesce(a.cost_microusd, CASE WHEN a.reserved_microusd > 0 AND a.ended_at < ` + old + ` THEN a.reserved_microusd END),
				a.reserved_microusd, ` + attemptEstimated + " FROM attempts a WHERE a.round_id IN (" + rounds + ")) c" + behind
}

// readSpending reads what callsOf selects; more are its columns.
func readSpending(row scanner, more ...any) (out regie.Spending, err error) {
	var unknown int64
	err = row.Scan(append(more, &out.Cost, &out.Due, &unknown, &out.Estimated)...)
	out.Known = unknown == 0
	return out, err
}

// spentByRound returns the spending of the rounds that Rounds lists. A round without a call has
// none.
func (s *core) spentByRound(ctx context.Context, filter store.RoundFilter) (map[regie.ID]regie.Spending, error) {
	const newest = `SELECT r.id FROM rounds r JOIN sessions s ON s.n = r.session JOIN workspaces w ON w.id = s.workspace_id
		WHERE ` + listedRounds
	out := map[regie.ID]regie.Spending{}
	_, err := queryAll(ctx, s.read, func(row scanner, round *regie.ID) error {
		spent, err := readSpending(row, round)
		out[*round] = spent
		return err
	}, callsOf("c.round_id, ", newest, " GROUP BY c.round_id", "?9"),
		append(roundArgs(filter), time.Now().Add(-worstCaseFor).UnixMicro())...)
	return out, err
}

// SpentToday returns today's spending of the workspace at root, and of all workspaces.
func (s moneyStore) SpentToday(ctx context.Context, root string) (out store.Spent, err error) {
	now := time.Now()
	out.Day = dayBegins(now)
	const sums = `SELECT coalesce(sum(p.spent_microusd - p.due_microusd), 0), coalesce(sum(p.due_microusd), 0), coalesce(sum(p.unknown_calls), 0), 0
		FROM spending p JOIN workspaces w ON w.id = p.owner
		WHERE p.day = ? AND (w.root = ? OR ? = '')`
	if out.Workspace, err = readSpending(s.read.QueryRowContext(ctx, sums, dayOf(now), root, root)); err == nil {
		out.All, err = readSpending(s.read.QueryRowContext(ctx, sums, dayOf(now), "", ""))
	}
	return out, err
}
