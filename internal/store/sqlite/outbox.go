package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// news is what a person may want to hear of an event; the zero value is nothing.
type news struct {
	kind   regie.NotificationKind
	object regie.ID // an approval, a question or a call; zero: the run
	// of is the type of the sessions that it is news of, for which automations stand too. API
	// clients get their failures themselves. Empty: all.
	of regie.SessionType
}

// newsOf returns what the body of an event tells people who are not watching.
func newsOf(body any) news {
	switch e := body.(type) {
	case approvalEvent:
		if e.ExpiresAt != nil { // it opens, and is not decided in part or extended
			return news{kind: regie.NotifyApproval, object: e.ApprovalID}
		}
	case questionEvent:
		if e.Module != nil {
			return news{kind: regie.NotifyQuestion, object: e.QuestionID}
		}
	case callEvent:
		if e.State == regie.CallUnknown && e.CopyOf.IsZero() {
			return news{kind: regie.NotifyUnknown, object: e.CallID}
		}
	case regie.Notice: // of a budget; those of failed runs are left out, because their ends are news
		return news{kind: regie.NotifyBudget}
	case *regie.Notice:
		if e.Kind == regie.NoticeNetworkGiveUp {
			return news{kind: regie.NotifyPause}
		}
	case roundEvent:
		return newsOfEnd[e.End]
	}
	return news{}
}

// newsOfEnd is the news of a round's end. An automation that does not say that its work is done has
// failed (decision 44).
var newsOfEnd = map[regie.RoundEnd]news{
	regie.EndProviderError: {kind: regie.NotifyFailure, of: regie.SessionChat},
	regie.EndWatchdog:      {kind: regie.NotifyFailure, of: regie.SessionChat},
	regie.EndNoProgress:    {kind: regie.NotifyFailure, of: regie.SessionAutomation},
	regie.EndLimit:         {kind: regie.NotifyFailure, of: regie.SessionAutomation},
	regie.EndEarlyStop:     {kind: regie.NotifyFailure, of: regie.SessionAutomation},
	regie.EndDenied:        {kind: regie.NotifyFailure, of: regie.SessionAutomation},
	regie.EndAnswered:      {kind: regie.NotifyFailure, of: regie.SessionAutomation},
	regie.EndCompleted:     {kind: regie.NotifyFinished, of: regie.SessionAutomation},
}

// notify stores a notification of a session for each channel that wants it.
func (t *tx) notify(chain int64, n news, at time.Time) {
	if n.kind == "" || len(t.w.channels) == 0 {
		return
	}
	id := regie.NewID()
	for _, c := range t.w.channels {
		if slices.Contains(c.Kinds, n.kind) {
			t.exec(`INSERT INTO outbox (id, channel, kind, session, round_id, object_id, next_at, created_at)
				SELECT ?, ?, ?, s.n, (SELECT r.id FROM rounds r WHERE r.session = s.n ORDER BY r.number DESC LIMIT 1), ?, ?, ?
				FROM sessions s JOIN workspaces w ON w.id = s.workspace_id JOIN users u ON u.id = s.user_id
				WHERE s.n = ? AND (? = '' OR s.type = 'AUTOMATION' OR s.type = ? AND s.origin <> 'api')
					AND (w.root = ? OR ? = '') AND (u.name = ? OR ? = '')`,
				id, c.Name, string(n.kind), n.object, at.UnixMicro(), at.UnixMicro(), chain, string(n.of), string(n.of),
				c.Root, c.Root, c.User, c.User)
		}
	}
}

// SetChannels sets the channels for which notifications are stored, before the store is used.
// Without it none are.
func (s outboxStore) SetChannels(channels []store.Channel) {
	if s.writer != nil {
		s.writer.channels = channels
	}
}

const deliveries = `SELECT o.id, o.channel, o.kind, o.round_id, o.object_id, o.state, o.attempts, o.next_at, o.error,
		o.created_at, o.settled_at, s.id, s.workspace_id, s.user_id, s.name, s.tainted = 1 AND s.read_private = 1,
		s.deleted_at IS NOT NULL OR CASE o.kind
			WHEN 'approval' THEN NOT EXISTS (SELECT 1 FROM approvals a WHERE a.id = o.object_id AND a.state = 'OPEN')
			WHEN 'question' THEN NOT EXISTS (SELECT 1 FROM waits q WHERE q.id = o.object_id AND q.state = 'OPEN')
			WHEN 'unknown' THEN NOT EXISTS (SELECT 1 FROM calls c WHERE c.id = o.object_id AND c.state = 'UNKNOWN')
			ELSE FALSE END,
		CASE WHEN o.round_id IS NULL THEN (SELECT v.automation_id FROM automation_versions v WHERE v.seed_id = s.id LIMIT 1) END
	FROM outbox o JOIN sessions s ON s.n = o.session JOIN workspaces w ON w.id = s.workspace_id WHERE `

func scanDelivery(row scanner, d *store.Delivery) error {
	return row.Scan(&d.ID, &d.Channel, &d.Kind, &d.RoundID, &d.ObjectID, &d.State, &d.Attempts, &d.NextAt, &d.Error,
		&d.CreatedAt, &d.SettledAt, &d.SessionID, &d.WorkspaceID, &d.UserID, &d.SessionName, &d.Sealed, &d.Moot,
		&d.AutomationID)
}

// DueDelivery returns the pending delivery of a channel that has been due for longest, if any is.
func (s outboxStore) DueDelivery(ctx context.Context, channel string, now time.Time) ([]store.Delivery, error) {
	return queryAll(ctx, s.read, scanDelivery, deliveries+"o.channel = ? AND o.state = 'PENDING' AND o.next_at <= ? ORDER BY o.next_at, o.id LIMIT 1",
		channel, now.UnixMicro())
}

// Deliveries returns the newest deliveries.
func (s outboxStore) Deliveries(ctx context.Context, filter store.DeliveryFilter) ([]store.Delivery, error) {
	return queryList(ctx, s.read, scanDelivery, deliveries+"(w.root = ?1 OR ?1 = '') ORDER BY o.id DESC, o.channel LIMIT ?2",
		filter.Root, cmp.Or(filter.Limit, 50))
}

// UpdateDelivery stores a pending delivery's state, attempts, next attempt and error. It reports
// false, and changes nothing, where the delivery no longer has as many attempts: another engine was
// faster.
func (s outboxStore) UpdateDelivery(ctx context.Context, d *store.Delivery, attempts int) (changed bool, err error) {
	err = s.writer.do(ctx, func(t *tx) error {
		changed = t.count(`UPDATE outbox SET state = ?, attempts = ?, next_at = ?, error = ?, settled_at = CASE WHEN ? <> 'PENDING' THEN CAST(? AS BIGINT) END
			WHERE id = ? AND channel = ? AND attempts = ? AND state = 'PENDING'`, string(d.State), d.Attempts, d.NextAt.UnixMicro(), d.Error,
			string(d.State), time.Now().UnixMicro(), d.ID, d.Channel, attempts) == 1
		return nil
	})
	return changed, err
}

// RemoveDeliveries deletes the deliveries from before a time.
func (s outboxStore) RemoveDeliveries(ctx context.Context, before time.Time) error {
	return s.writer.do(ctx, func(t *tx) error {
		t.exec("DELETE FROM outbox WHERE created_at < ?", before.UnixMicro())
		return nil
	})
}
