package sqlite

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/slot"
	"github.com/regie-run/regie/internal/store"
)

const fireColumns = `f.id, f.automation_id, f.trigger_kind, f.nominal_at, f.until, f.count, f.outcome, f.reason, f.version, f.session_id, f.late,
		f.created_at, f.settled_at, f.payload`

func scanFire(row scanner, f *regie.Fire, more ...any) error {
	var payload string
	err := row.Scan(append([]any{
		&f.ID, &f.AutomationID, &f.Trigger, &f.NominalAt, &f.Until, &f.Count, &f.Outcome,
		asJSON{&f.Reason},
		&f.Version,
		&f.SessionID, &f.Late, &f.CreatedAt, &f.SettledAt, &payload,
	}, more...)...)
	if payload != "" {
		f.Payload = []byte(payload)
	}
	return err
}

// DecideFires stores the fires of schedules; see store.DecideFires. A fire that is due while an
// earlier run has not ended becomes what the automation's policy says.
func (s automationStore) DecideFires(ctx context.Context, all []store.DecideFires) error {
	// as every transition holds rows
	slices.SortFunc(all, func(a, b store.DecideFires) int { return compareIDs(a.Automation.ID, b.Automation.ID) })
	return s.writer.do(ctx, func(t *tx) error {
		for i := range all {
			if err := t.automations.decideFires(&all[i], time.Now().UTC()); err != nil {
				return err
			}
		}
		fault.Point(fault.FireBefore)
		return nil
	})
}

func (t automationTx) decideFires(in *store.DecideFires, now time.Time) error {
	a := in.Automation
	if t.count("UPDATE automations SET decided_to = ? WHERE id = ? AND version = ? AND decided_to = ? AND enabled = 1 AND deleted_at IS NULL AND paused = ?",
		in.DecidedTo.UnixMicro(), a.ID, a.Version, a.DecidedTo.UnixMicro(), boolToInt(a.Paused)) == 0 {
		return nil // another engine was faster, or the automation has changed
	}
	open, next, err := t.readBusy(a.ID)
	if err != nil {
		return err
	}
	waits := !next.IsZero()
	for _, f := range in.Fires { // copies: this may run more than once
		if f.Outcome == regie.FireDue {
			f.Outcome, f.Reason = overlapOutcome(&f, a.Definition.Overlap, open, waits)
			waits = waits || f.Outcome == regie.FireDue
		}
		f.ID = regie.NewID()
		t.insertFire(&f, strconv.FormatInt(f.NominalAt.UnixMicro(), 10), next, now)
	}
	return nil
}

// overlapOutcome returns what becomes of a due fire. Missed times that each have to run are not
// joined.
func overlapOutcome(f *regie.Fire, policy regie.OverlapPolicy, open, waits bool) (regie.FireOutcome, regie.Sentence) {
	switch {
	case policy == regie.OverlapParallel:
	case policy == regie.OverlapSkip && (open || waits):
		return regie.FireOverlap, regie.Say("an earlier run has not ended")
	case waits && !f.Late:
		return regie.FireCoalesced, regie.Say("a run waits already")
	}
	return regie.FireDue, f.Reason
}

// readBusy reads whether a run of an automation is open, and which fire is due next; zero for none.
func (t automationTx) readBusy(id regie.ID) (open bool, next regie.ID, err error) {
	err = t.row("SELECT EXISTS (SELECT 1 FROM sessions s WHERE "+openRun("?1")+
		"), (SELECT id FROM fires WHERE automation_id = ?1 AND outcome = 'DUE' ORDER BY nominal_at, id LIMIT 1)", id).Scan(&open, &next)
	return open, next, err
}

// insertFire stores a fire; next is the one that it is joined to where it is COALESCED. An instant
// that has its row keeps it: after a clock was set back, a new schedule may come to it again.
func (t automationTx) insertFire(f *regie.Fire, key string, next regie.ID, now time.Time) {
	if f.Outcome != regie.FireCoalesced {
		next = regie.ID{}
	}
	var settled, reason any
	if f.Outcome != regie.FireDue {
		settled = now.UnixMicro()
	}
	if f.Reason.Format != "" {
		reason = asJSON{f.Reason}
	}
	t.exec(`INSERT INTO fires (id, automation_id, trigger_kind, key, nominal_at, until, count, outcome, reason, version, late, payload, joined_to, created_at, settled_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (automation_id, trigger_kind, key) DO NOTHING`, f.ID, f.AutomationID, string(f.Trigger), key, f.NominalAt.UnixMicro(),
		toMicros(f.Until), max(1, f.Count), string(f.Outcome), reason, f.Version, boolToInt(f.Late), nullIfEmpty(string(f.Payload)),
		next, now.UnixMicro(), settled)
	t.announceFire(f.AutomationID)
}

// announceFire has watchers look at an automation: its fires are in no log.
func (t automationTx) announceFire(automation regie.ID) {
	t.notices[automation] = []regie.Event{{SessionID: automation, Type: regie.EventAutomation}}
}

// AddFire stores a manual start or an event, or returns the earlier one with its key. It returns
// CodeNotFound for a removed automation, and CodeConflict for an event of a disabled one and for a
// manual start during a run if the automation's policy is skip.
func (s automationStore) AddFire(ctx context.Context, in store.AddFire) (fire regie.Fire, repeated bool, err error) {
	now := time.Now().UTC()
	err = s.writer.do(ctx, func(t *tx) error {
		fire, repeated = in.Fire, false
		t.exec("UPDATE automations SET failures = failures WHERE id = ?", fire.AutomationID) // holds its row
		a, err := t.automations.readAutomation(fire.AutomationID)
		if err != nil {
			return err
		}
		if !a.Enabled && fire.Trigger == regie.TriggerEvent {
			return regie.Errorf(regie.CodeConflict, "the automation is disabled")
		}
		known, err := readAll(t, func(row scanner, f *regie.Fire) error { return scanFire(row, f) }, "SELECT "+fireColumns+
			" FROM fires f WHERE f.automation_id = ? AND f.trigger_kind = ? AND f.key = ?", a.ID, string(fire.Trigger), in.Key)
		if err != nil || len(known) > 0 {
			fire, repeated = slices.Concat(known, []regie.Fire{fire})[0], true
			return err
		}
		open, next, err := t.automations.readBusy(a.ID)
		if err != nil {
			return err
		}
		// a person's start does not wait for what the pause holds
		waits := !next.IsZero() && (open || !a.Paused || fire.Trigger != regie.TriggerManual)
		fire.ID, fire.Version, fire.NominalAt = regie.NewID(), a.Version, fromMicros(now.UnixMicro())
		fire.CreatedAt = fire.NominalAt
		fire.Outcome, fire.Reason = overlapOutcome(&fire, a.Definition.Overlap, open, waits)
		if fire.Outcome == regie.FireOverlap && in.Fire.Trigger == regie.TriggerManual {
			return regie.Errorf(regie.CodeConflict, "the automation runs already, and its overlap policy is skip: wait for the end of the run")
		}
		t.automations.insertFire(&fire, in.Key, next, now)
		return nil
	})
	return fire, repeated, err
}

// takeFire settles a fire as the one that a new session carries out; see store.ErrNotNow,
// store.ErrEventJoined and store.ErrFireSettled.
func (t automationTx) takeFire(start *store.StartFire, session *regie.Session, chain int64, now time.Time) error {
	f := &start.Fire
	t.exec("UPDATE automations SET failures = failures WHERE id = ?", f.AutomationID) // holds its row
	a, err := t.readAutomation(f.AutomationID)
	switch {
	case regie.CodeOf(err) == regie.CodeNotFound:
		return store.ErrFireSettled
	case err != nil:
		return err
	case a.Paused && (a.PausedUntil.IsZero() || a.PausedUntil.After(now)) && f.Trigger != regie.TriggerManual:
		return store.ErrNotNow
	}
	open, _, err := t.readBusy(a.ID)
	if err == nil && open && a.Definition.Overlap != regie.OverlapParallel {
		err = store.ErrNotNow
	}
	var joined int
	if err == nil {
		err = t.row("SELECT count(*) FROM fires WHERE "+joinedTo, f.ID).Scan(&joined)
	}
	if err == nil && joined != start.Joined {
		err = store.ErrEventJoined
	}
	if err != nil {
		return err
	}
	fault.Point(fault.FireStartBefore)
	t.exec("UPDATE sessions SET automation_id = ?, scheduled_at = ? WHERE n = ?", a.ID, scheduledAt(f), chain)
	if t.count("UPDATE fires SET outcome = 'RAN', session_id = ?, version = ?, settled_at = ? WHERE id = ? AND outcome = 'DUE'",
		session.ID, f.Version, now.UnixMicro(), f.ID) == 0 {
		t.fail(store.ErrFireSettled)
	}
	return t.err
}

func scheduledAt(f *regie.Fire) any {
	if f.Trigger == regie.TriggerScheduled {
		return f.NominalAt.UnixMicro()
	}
	return nil
}

// SettleFire settles a fire that does not run; one that is settled stays as it is.
func (s automationStore) SettleFire(ctx context.Context, in store.SettleFire) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		if t.count("UPDATE fires SET outcome = ?, reason = ?, settled_at = ? WHERE id = ? AND outcome = 'DUE'",
			string(in.Outcome), asJSON{in.Reason}, now.UnixMicro(), in.ID) == 0 {
			return nil
		}
		var automation regie.ID
		var seed int64 // stands for the session that there is none of
		if err := t.row("SELECT a.id, s.n FROM fires f JOIN automations a ON a.id = f.automation_id JOIN sessions s ON s.id = a.seed_id WHERE f.id = ?",
			in.ID).Scan(&automation, &seed); err != nil {
			return err
		}
		if t.automations.announceFire(automation); in.Outcome != regie.FireFailed {
			return nil
		}
		t.notify(seed, news{kind: regie.NotifyFailure}, now)
		return t.automations.countEnd(automation, seed, regie.SessionError, now)
	})
}

// endRun counts the end of a session's run for its automation.
func (t automationTx) endRun(chain int64, reason regie.SessionEnd, now time.Time) {
	var automation regie.ID
	if t.fail(t.row("SELECT automation_id FROM sessions WHERE n = ?", chain).Scan(&automation)) || automation.IsZero() {
		return
	}
	t.fail(t.countEnd(automation, chain, reason, now))
}

// countEnd counts failed runs in a row; store.MaxFailures pause the automation (decision 57), which
// people hear of as news of a session.
func (t automationTx) countEnd(automation regie.ID, chain int64, reason regie.SessionEnd, now time.Time) error {
	switch reason {
	case regie.SessionCompleted:
		t.exec("UPDATE automations SET failures = 0 WHERE id = ?", automation)
	case regie.SessionError, regie.SessionTimeout:
		t.exec("UPDATE automations SET failures = failures + 1 WHERE id = ?", automation)
		if t.count("UPDATE automations SET paused = 1, paused_until = NULL, pause_reason = ? WHERE id = ? AND failures >= ? AND paused = 0",
			asJSON{regie.Say("its last runs failed: %s", strconv.Itoa(store.MaxFailures))}, automation, store.MaxFailures) > 0 {
			t.notify(chain, news{kind: regie.NotifyPause}, now)
		}
	}
	return t.err
}

// DueFires are the fires that have not begun, the oldest first.
func (s automationStore) DueFires(ctx context.Context) ([]store.DueFire, error) {
	return queryAll(ctx, s.read, func(row scanner, f *store.DueFire) error {
		return scanFire(row, &f.Fire, &f.WorkspaceID)
	}, "SELECT "+fireColumns+` , a.workspace_id FROM fires f JOIN automations a ON a.id = f.automation_id
		WHERE f.outcome = 'DUE' ORDER BY f.nominal_at, f.id`)
}

// joinedTo selects the events that were joined to a fire before it began.
const joinedTo = "joined_to = ? AND trigger_kind = 'EVENT'"

// JoinedPayloads are those of the events that were joined to a fire, the oldest first. count is how
// many events there were before they were read: StartFire.Joined of a message with them.
func (s automationStore) JoinedPayloads(ctx context.Context, fire regie.ID, limit int) (payloads []string, count int, err error) {
	if err = s.read.QueryRowContext(ctx, "SELECT count(*) FROM fires WHERE "+joinedTo, fire).Scan(&count); err != nil {
		return nil, 0, err
	}
	payloads, err = queryAll(ctx, s.read, scanOne[string],
		"SELECT payload FROM fires WHERE "+joinedTo+" AND payload IS NOT NULL ORDER BY created_at, id LIMIT ?", fire, limit)
	return payloads, count, err
}

// Fires lists the fires of an automation, the latest first.
func (s automationStore) Fires(ctx context.Context, filter store.FireFilter) ([]store.FireView, error) {
	return readFires(ctx, s.read, `f.automation_id = ?1 AND (CAST(?2 AS BIGINT) = 0 OR f.nominal_at < ?2 OR f.nominal_at = ?2 AND f.id < ?3)
		ORDER BY f.nominal_at DESC, f.id DESC LIMIT ?4`, filter.AutomationID, filter.Before.Micros(), filter.Before.ID, limitOf(filter.Limit))
}

func readFires(ctx context.Context, q querier, where string, args ...any) ([]store.FireView, error) {
	return queryList(ctx, q, func(row scanner, f *store.FireView) error {
		return scanFire(row, &f.Fire, &f.State, &f.EndReason, &f.StartedAt, &f.EndedAt, &f.SpentMicroUSD, &f.CostUnknown)
	}, "SELECT "+fireColumns+`, s.state, s.end_reason, s.created_at, s.closed_at,
			(SELECT CAST(coalesce(sum(r.spent_microusd), 0) AS BIGINT) FROM rounds r WHERE r.session = s.n),
			CASE WHEN EXISTS (SELECT 1 FROM spending p WHERE p.day = 0 AND p.owner = s.id AND p.unknown_calls > 0) THEN 1 ELSE 0 END
		FROM fires f LEFT JOIN sessions s ON s.id = f.session_id WHERE `+where, args...)
}

// askOf returns the row of the table of slots for a submission.
func askOf(in *store.Submission, kind slot.Kind) slot.Ask {
	if in.Fire != nil {
		return in.Fire.Ask
	}
	return askFor(kind, in.Round.Reason)
}
