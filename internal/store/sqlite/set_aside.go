package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// SetItemAside hides an item of the inbox from a user until a time; a past time shows it again
// (decision 61). Its deadline stays. It returns CodeNotFound for an id that is no approval,
// question, call or session, and CodeConflict for an item that no longer waits.
func (s approvalStore) SetItemAside(ctx context.Context, in store.Aside) error {
	return s.writer.do(ctx, func(t *tx) error {
		if err := t.waits.stillWaits(in.ItemID, time.Now()); err != nil {
			return err
		}
		t.exec("DELETE FROM set_aside WHERE user_id = ? AND until < ?", in.UserID, time.Now().UnixMicro())
		t.exec(`INSERT INTO set_aside (user_id, item_id, until) VALUES (?, ?, ?)
			ON CONFLICT (user_id, item_id) DO UPDATE SET until = excluded.until`, in.UserID, in.ItemID, in.Until.UnixMicro())
		t.announceLists()
		return nil
	})
}

// ExtendDeadline moves the deadline of an open approval or question to a later time, never back. It
// returns CodeNotFound and CodeConflict as SetItemAside, and CodeConflict for an item without a
// deadline.
func (s approvalStore) ExtendDeadline(ctx context.Context, in store.Extension) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error {
		t.holdRow(ByApproval, in.ItemID)
		t.holdRow(ByWait, in.ItemID)
		if err := t.waits.stillWaits(in.ItemID, now); err != nil {
			return err
		}
		found, err := t.waits.openWaitsOf("(w.id = ? AND w.kind = 'QUESTION' OR w.object_id = ? AND w.kind = 'APPROVAL')", in.ItemID, in.ItemID)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return regie.Errorf(regie.CodeConflict, "%s has no deadline: only approvals and questions have one", in.ItemID)
		}
		w := found[0]
		if t.count("UPDATE waits SET deadline = ? WHERE id = ? AND deadline < ?", in.Until.UnixMicro(), w.id, in.Until.UnixMicro()) == 0 {
			return nil // it is open as long already
		}
		b := batch{fence: store.Fence{SessionID: w.session, RoundID: w.round, Chain: w.chain}, now: now}
		until := fromMicros(in.Until.UnixMicro())
		if w.kind == regie.WaitApproval {
			t.exec("UPDATE approvals SET expires_at = ? WHERE id = ?", in.Until.UnixMicro(), in.ItemID)
			b.addEvent(regie.EventApproval, approvalEvent{
				ApprovalID: in.ItemID, RoundID: w.round, State: regie.ApprovalOpen, ExtendedTo: &until, By: in.By,
			})
		} else {
			b.addEvent(regie.EventQuestion, questionEvent{
				QuestionID: w.id, RoundID: w.round, CallID: w.object, State: regie.WaitOpen, ExtendedTo: &until, By: in.By,
			})
		}
		b.writeBatch(t)
		return nil
	})
}

// stillWaits returns CodeConflict for an item of the inbox that was decided or has expired.
func (t waitTx) stillWaits(id regie.ID, now time.Time) error {
	var open bool
	err := t.row(`SELECT CASE WHEN state = 'OPEN' AND expires_at > ?2 THEN 1 ELSE 0 END FROM approvals WHERE id = ?1
		UNION ALL SELECT CASE WHEN state = 'OPEN' AND deadline > ?2 THEN 1 ELSE 0 END FROM waits WHERE id = ?1 AND kind = 'QUESTION'
		UNION ALL SELECT CASE WHEN state = 'UNKNOWN' THEN 1 ELSE 0 END FROM calls WHERE id = ?1
		UNION ALL SELECT 1 FROM sessions WHERE id = ?1 AND deleted_at IS NULL`, id, now.UnixMicro()).Scan(&open)
	if err != nil {
		return unlessFound(err, notFound("item of the inbox", id))
	}
	if !open {
		return regie.Errorf(regie.CodeConflict, "%s no longer waits: it was answered, withdrawn or has expired", id)
	}
	return nil
}

// readUnknown returns the calls without a known outcome or finding, the newest first.
func readUnknown(ctx context.Context, q querier, filter store.InboxFilter) ([]regie.Call, error) {
	return readCalls(ctx, q, `FROM calls c JOIN sessions s ON s.n = c.session JOIN workspaces w ON w.id = s.workspace_id
		WHERE c.state = 'UNKNOWN' AND c.copy_of IS NULL AND s.deleted_at IS NULL AND (s.id = ?1 OR ?1 IS NULL) AND (w.root = ?2 OR ?2 = '')
		ORDER BY c.proposed_at DESC, c.id LIMIT ?3`, filter.SessionID, filter.Root, limitOf(filter.Limit))
}

// readAside returns until when the filter's user has set items aside.
func readAside(ctx context.Context, q querier, user regie.ID) (out map[regie.ID]time.Time, err error) {
	_, err = queryAll(ctx, q, func(row scanner, id *regie.ID) error {
		var until time.Time
		if err := row.Scan(id, &until); err != nil {
			return err
		}
		if out == nil {
			out = map[regie.ID]time.Time{}
		}
		out[*id] = until
		return nil
	}, "SELECT item_id, until FROM set_aside WHERE user_id = ? AND until > ?", user, time.Now().UnixMicro())
	return out, err
}
