package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// A transition that changes an automation holds the log of its workspace. One that starts a run
// takes the automation's row instead, after the log of the run's session.

// automationEvent is the body of an automation event, in the log of its workspace.
type automationEvent struct {
	AutomationID regie.ID          `json:"automation_id"`
	Automation   *regie.Automation `json:"automation,omitempty"` // of a new version
	Enabled      *bool             `json:"enabled,omitempty"`
	Paused       *bool             `json:"paused,omitempty"`
	Until        *time.Time        `json:"until,omitempty"`
	Reason       regie.Sentence    `json:"reason,omitzero"`
	Removed      bool              `json:"removed,omitempty"`
	By           string            `json:"by,omitempty"`
}

const automationColumns = `a.id, a.workspace_id, a.user_id, a.name, a.version, a.seed_id, a.definition, a.created_by, a.created_at, a.enabled,
		a.paused, a.paused_until, a.pause_reason, a.failures, a.series_from, a.decided_to`

func scanAutomation(row scanner, a *regie.Automation, more ...any) error {
	return row.Scan(append([]any{
		&a.ID, &a.WorkspaceID, &a.UserID, &a.Name, &a.Version, &a.SeedID,
		asJSON{&a.Definition},
		asJSON{&a.CreatedBy},
		&a.CreatedAt, &a.Enabled, &a.Paused, &a.PausedUntil,
		asJSON{&a.PauseReason},
		&a.Failures, &a.SeriesFrom,
		&a.DecidedTo,
	}, more...)...)
}

func noAutomation(id regie.ID) error {
	return regie.Errorf(regie.CodeNotFound, "there is no automation %s here: regie automations list shows them", id)
}

// readAutomation reads an automation that is not removed.
func (t automationTx) readAutomation(id regie.ID) (a regie.Automation, err error) {
	err = scanAutomation(t.row("SELECT "+automationColumns+
		" FROM automations a WHERE a.id = ? AND a.deleted_at IS NULL", id), &a)
	return a, unlessFound(err, noAutomation(id))
}

// SaveAutomation stores a new version of an automation; see store.SaveAutomation for its errors.
// Creating one again under its id changes nothing.
func (s automationStore) SaveAutomation(ctx context.Context, in store.SaveAutomation) (regie.Automation, error) {
	now := fromMicros(time.Now().UnixMicro())
	var create *creation
	if in.Template != nil {
		in.Automation.SeedID = in.Template.Session.ID
		create = newSession(&in.Template.Session, now)
	}
	return transition(ctx, s.writer, func(t *tx, out *regie.Automation) error {
		a := in.Automation
		if create != nil {
			t.holdRow(ByOwner, a.SeedID)
		}
		chain := t.sessions.ownChain("workspace", a.WorkspaceID, now)
		before, err := t.automations.readAutomation(a.ID)
		if there := err == nil; there && in.After == 0 {
			*out = before
			return refuseOther(&before, &a)
		} else if there != (in.After > 0) {
			if in.After == 0 && regie.CodeOf(err) == regie.CodeNotFound {
				err = t.automations.checkUnused(a.ID)
			}
			if err != nil {
				return err
			}
		}
		if in.After > 0 && in.After != before.Version {
			return regie.Errorf(regie.CodeConflict,
				"the automation has version %d, not %d: look at it as it is now, and change it again", before.Version, in.After)
		}
		if err := t.automations.insertTemplate(create, in.Template, now); err != nil {
			return err
		}
		t.automations.putVersion(&a, &before, &in, now)
		t.appendEvent(a.WorkspaceID, chain, now, regie.EventAutomation,
			automationEvent{AutomationID: a.ID, Automation: &a, By: in.By})
		*out = a
		return nil
	})
}

// refuseOther returns CodeConflict for an id that another workspace's automation has.
func refuseOther(before, a *regie.Automation) error {
	if before.WorkspaceID != a.WorkspaceID {
		return regie.Errorf(regie.CodeConflict, "the automation id %s is taken", a.ID)
	}
	return nil
}

// checkUnused returns CodeConflict for the id of a removed automation.
func (t automationTx) checkUnused(id regie.ID) error {
	var used bool
	err := t.row("SELECT EXISTS (SELECT 1 FROM automations WHERE id = ?)", id).Scan(&used)
	if err == nil && used {
		err = regie.Errorf(regie.CodeConflict, "the automation %s was removed: create a new one", id)
	}
	return err
}

// insertTemplate stores the SEED session of a new version with its message.
func (t automationTx) insertTemplate(create *creation, template *store.Template, now time.Time) error {
	if create == nil {
		return nil
	}
	made, chain, err := t.sessions.insertSession(create, "", 0)
	if err != nil || !made {
		return err
	}
	message := template.Message
	message.SessionID, message.Time = create.session.ID, now
	first := t.appendEvents(create.session.ID, chain, now, create.event, newEvent(regie.EventMessage, &message))
	message.Seq = first + 1
	t.rounds.insertMessage(chain, &message, false)
	return nil
}

// putVersion stores the automation's row and its version.
func (t automationTx) putVersion(a, before *regie.Automation, in *store.SaveAutomation, now time.Time) {
	begins := now.Truncate(time.Second)
	a.Version, a.SeriesFrom, a.DecidedTo, a.CreatedAt = in.After+1, begins, now, now
	if in.After > 0 {
		a.CreatedAt, a.CreatedBy, a.UserID = before.CreatedAt, before.CreatedBy, before.UserID
		a.Enabled, a.Paused, a.PausedUntil, a.PauseReason = before.Enabled, before.Paused, before.PausedUntil, before.PauseReason
		if a.Definition.Schedule.Equal(before.Definition.Schedule) {
			a.SeriesFrom, a.DecidedTo = before.SeriesFrom, before.DecidedTo
		}
	}
	t.exec(`INSERT INTO automations (id, workspace_id, user_id, name, version, seed_id, definition, created_by, created_at, enabled, series_from, decided_to)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version, seed_id = excluded.seed_id, definition = excluded.definition,
			series_from = excluded.series_from, decided_to = excluded.decided_to, failures = 0`,
		a.ID, a.WorkspaceID, a.UserID, a.Name, a.Version, a.SeedID, asJSON{a.Definition}, asJSON{a.CreatedBy}, a.CreatedAt.UnixMicro(),
		boolToInt(a.Enabled), a.SeriesFrom.UnixMicro(), a.DecidedTo.UnixMicro())
	t.exec("INSERT INTO automation_versions (automation_id, version, name, seed_id, definition, by, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
		a.ID, a.Version, a.Name, a.SeedID, asJSON{a.Definition}, in.By, now.UnixMicro())
	if !in.Hook.IsZero() || !a.Definition.Webhook {
		t.exec("UPDATE automations SET hook = ? WHERE id = ?", in.Hook, a.ID)
	}
}

// ChangeAutomation enables, disables, pauses, resumes or removes an automation. Changing nothing
// logs nothing. Runs that have begun go on.
func (s automationStore) ChangeAutomation(ctx context.Context, in store.AutomationChange) error {
	now := fromMicros(time.Now().UnixMicro())
	var workspace regie.ID
	err := s.read.QueryRowContext(ctx, "SELECT workspace_id FROM automations WHERE id = ?", in.ID).Scan(&workspace)
	if err != nil {
		return unlessFound(err, noAutomation(in.ID))
	}
	return s.writer.do(ctx, func(t *tx) error {
		chain := t.sessions.ownChain("workspace", workspace, now)
		a, err := t.automations.readAutomation(in.ID)
		if err != nil {
			return err
		}
		event := automationEvent{AutomationID: in.ID, Reason: in.Reason, Removed: in.Removed, By: in.By}
		if in.Enabled != nil && *in.Enabled != a.Enabled {
			event.Enabled = in.Enabled
			// what passed while it was disabled was never due
			t.exec("UPDATE automations SET enabled = ?, decided_to = CASE WHEN decided_to < ? THEN ? ELSE decided_to END, failures = 0 WHERE id = ?",
				boolToInt(*in.Enabled), now.UnixMicro(), now.UnixMicro(), in.ID)
		}
		if in.Paused != nil && (*in.Paused != a.Paused || !in.Until.Equal(a.PausedUntil)) {
			event.Paused = in.Paused
			if !in.Until.IsZero() {
				event.Until = &in.Until
			}
			t.automations.setPaused(&a, &in, now)
		}
		if in.Removed {
			t.automations.erasePayloads(in.ID)
			t.exec("UPDATE automations SET deleted_at = ?, enabled = 0, hook = NULL WHERE id = ?", now.UnixMicro(), in.ID)
		}
		if in.Removed || event.Enabled != nil && !*event.Enabled {
			t.exec("UPDATE fires SET outcome = 'SKIPPED', reason = ?, settled_at = ? WHERE automation_id = ? AND outcome = 'DUE'",
				asJSON{regie.Say("the automation was disabled or removed")}, now.UnixMicro(), in.ID)
		}
		if event.Enabled != nil || event.Paused != nil || in.Removed {
			t.appendEvent(workspace, chain, now, regie.EventAutomation, event)
		}
		return nil
	})
}

// setPaused pauses or resumes an automation, which then starts again with no failures. What passed
// during the pause was never due.
func (t automationTx) setPaused(a *regie.Automation, in *store.AutomationChange, now time.Time) {
	var why any
	if *in.Paused && in.Reason.Format != "" {
		why = asJSON{in.Reason}
	}
	decided := a.DecidedTo
	if a.Paused && !*in.Paused {
		if !a.PausedUntil.IsZero() && a.PausedUntil.Before(now) {
			now = a.PausedUntil.Add(-time.Microsecond)
		}
		decided = slices.MaxFunc([]time.Time{decided, now}, time.Time.Compare)
	}
	t.exec("UPDATE automations SET paused = ?, paused_until = ?, pause_reason = ?, failures = 0, decided_to = ? WHERE id = ?",
		boolToInt(*in.Paused), toMicros(in.Until), why, decided.UnixMicro(), a.ID)
}

// RunnableAutomations are the automations that a scheduler looks at: those that are enabled, and
// those with a pause that ends.
func (s automationStore) RunnableAutomations(ctx context.Context) ([]regie.Automation, error) {
	return queryAll(ctx, s.read, func(row scanner, a *regie.Automation) error { return scanAutomation(row, a) },
		"SELECT "+automationColumns+" FROM automations a WHERE (a.enabled = 1 OR a.paused = 1 AND a.paused_until IS NOT NULL) AND a.deleted_at IS NULL")
}

// Automations lists the automations that a filter selects, the oldest first. It returns CodeBadID
// for a part that is not hexadecimal.
func (s automationStore) Automations(ctx context.Context, filter store.AutomationFilter) (
	out []store.AutomationRow, err error,
) {
	if err := checkPart(filter.Short); err != nil {
		return nil, err
	}
	err = s.readSnapshot(ctx, func(ctx context.Context, q querier) error {
		out, err = queryList(ctx, q, scanAutomationRow, "SELECT "+automationColumns+`, coalesce(w.root, ''), s.agent, s.agent_version, s.provider, s.model, s.approval_mode,
				CASE WHEN a.hook IS NULL THEN 0 ELSE 1 END, (SELECT b.body FROM messages m JOIN events e ON e.chain = m.session AND e.seq = m.seq JOIN event_bodies b ON b.n = e.n
					WHERE m.session = s.n ORDER BY m.seq LIMIT 1)
			FROM automations a JOIN workspaces w ON w.id = a.workspace_id JOIN sessions s ON s.id = a.seed_id
			WHERE a.deleted_at IS NULL AND (a.id = ?1 OR ?1 IS NULL) AND (w.root = ?2 OR ?2 = '') AND (?3 = '' OR `+hasPart("a.id", "?3")+")"+
			afterClause("a.created_at", "a.id", "?4", "?5")+" LIMIT ?6", filter.ID, filter.Root, filter.Short,
			filter.After.Micros(), filter.After.ID, limitOf(filter.Limit))
		for i := range out {
			if err == nil {
				err = completeRow(ctx, q, &out[i])
			}
		}
		return err
	})
	return out, err
}

func scanAutomationRow(row scanner, a *store.AutomationRow) error {
	return scanAutomation(row, &a.Automation, &a.Root, &a.Seed.Agent, &a.Seed.AgentVersion, &a.Seed.Provider, &a.Seed.Model,
		&a.Seed.ApprovalMode, &a.HasHook, asJSON{&a.Message})
}

// completeRow adds the latest fire and the open runs.
func completeRow(ctx context.Context, q querier, a *store.AutomationRow) (err error) {
	last, err := readFires(ctx, q, "f.automation_id = ?1 ORDER BY f.nominal_at DESC, f.id DESC LIMIT 1", a.ID)
	if len(last) > 0 {
		a.LastFire = &last[0]
	}
	if err == nil {
		a.Running, err = queryAll(ctx, q, scanOne[regie.ID], "SELECT s.id FROM sessions s WHERE "+openRun("?"), a.ID)
	}
	return err
}

// openRun selects the sessions s of an automation that have a run without an end. An interrupted
// one is IDLE.
func openRun(automation string) string {
	return "s.automation_id = " + automation + " AND s.state <> 'CLOSED' AND s.state <> 'IDLE' AND s.deleted_at IS NULL"
}

// AutomationVersions returns the versions of an automation, the oldest first.
func (s automationStore) AutomationVersions(ctx context.Context, id regie.ID) ([]store.AutomationVersion, error) {
	return queryList(ctx, s.read, func(row scanner, v *store.AutomationVersion) error {
		return row.Scan(&v.Version, &v.Name, &v.SeedID, asJSON{&v.Definition}, &v.By, &v.At)
	}, "SELECT version, name, seed_id, definition, by, at FROM automation_versions WHERE automation_id = ? ORDER BY version", id)
}

// AutomationByHook returns the automation with the hash of a token. It returns CodeNotFound for an
// unknown one.
func (s automationStore) AutomationByHook(ctx context.Context, id regie.ID, hook regie.Hash) (
	a regie.Automation, err error,
) {
	err = scanAutomation(s.read.QueryRowContext(ctx, "SELECT "+automationColumns+
		" FROM automations a WHERE a.hook = ? AND a.id = ? AND a.deleted_at IS NULL", hook, id), &a)
	return a, unlessFound(err, regie.Errorf(regie.CodeNotFound, "there is no such webhook here"))
}
