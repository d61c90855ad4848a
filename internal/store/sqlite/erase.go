package sqlite

import (
	"bytes"
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// erasedEvent is the body of an erased event: the range of rows of its log that lost their bodies
// (decision 15).
type erasedEvent struct {
	Reason string     `json:"reason"` // DELETED: the session was removed
	Rows   [][2]int64 `json:"rows"`
	Bodies int64      `json:"bodies"`
	By     string     `json:"by,omitempty"`
}

// lately is how long a blob counts as new: the row that references it may not be stored yet.
const lately = 10 * time.Minute

// tombstone is a session that is being removed.
type tombstone struct {
	id    regie.ID
	chain int64
}

// Remove removes a session (decision 15). Its row stays as a tombstone and its log stays, but its
// content is erased, in the rows and in the bodies of its log. An erased event in the same
// transaction records it. Its sub-agents' sessions are removed with it, its session-scoped rules
// are revoked, and unreferenced blobs are erased. Forks have their own copies and stay. It returns
// CodeRoundInProgress while a round is open, CodeConflict for a sub-agent's session, and
// CodeNotFound. Removing again changes nothing.
//
// The freed pages are overwritten. Content that SQLite moved earlier stays in unused bytes of the
// file until VACUUM, in the -wal until its next checkpoint, and in backups.
func (s sessionStore) Remove(ctx context.Context, in store.Remove) (store.Removed, error) {
	now := time.Now().UTC()
	var out store.Removed
	err := s.writer.do(ctx, func(t *tx) error {
		out = store.Removed{SessionIDs: []regie.ID{}}
		family, err := t.sessions.sessionFamily(in.SessionID)
		if err != nil || len(family) == 0 {
			return err
		}
		defer t.overwriteFree()()
		blobs := map[regie.Hash]bool{}
		for _, session := range family {
			t.rounds.leaveClients(store.Fence{SessionID: session.id, Chain: session.chain}, "", now)
			if err := t.sessions.eraseSession(session, in.By, now, blobs, &out); err != nil {
				return err
			}
			out.SessionIDs = append(out.SessionIDs, session.id)
		}
		if err := t.sessions.eraseBlobs(blobs, now, &out); err != nil {
			return err
		}
		out.Forks, err = readAll(t, scanOne[regie.ID],
			"SELECT id FROM sessions WHERE forked_from = ? AND deleted_at IS NULL ORDER BY n", in.SessionID)
		return err
	})
	return out, err
}

// sessionFamily returns a session and its sub-agents', all without an open round; none for a
// removed one.
func (t sessionTx) sessionFamily(id regie.ID) ([]tombstone, error) {
	t.holdRow(ByOwner, id)
	var chain int64
	var kind regie.SessionType
	var deleted time.Time
	err := t.row("SELECT n, type, deleted_at FROM sessions WHERE id = ?", id).Scan(&chain, &kind, &deleted)
	switch {
	case err != nil || !deleted.IsZero():
		return nil, unlessFound(err, notFound("session", id))
	case kind == regie.SessionSubagent:
		return nil, regie.Errorf(regie.CodeConflict,
			"this is the session of a sub-agent: remove the session that started it")
	}
	family := []tombstone{{id, chain}}
	for i := 0; i < len(family); i++ {
		var running, undoing bool
		if err := t.row(`SELECT EXISTS (SELECT 1 FROM rounds WHERE session = ?1 AND state <> 'ENDED'),
			EXISTS (SELECT 1 FROM undos WHERE session = ?1 AND state = 'INTENDED')`, family[i].chain).Scan(&running, &undoing); err != nil {
			return nil, err
		}
		switch {
		case running:
			return nil, errRoundOpen
		case undoing:
			return nil, errUndoing
		}
		children, err := readAll(t.tx, func(row scanner, child *tombstone) error {
			return row.Scan(&child.id, &child.chain)
		}, "SELECT s.id, s.n FROM messages m JOIN calls c ON c.message_id = m.id JOIN sessions s ON s.parent_call = c.id WHERE m.session = ? AND s.deleted_at IS NULL",
			family[i].chain)
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			t.holdRow(ByChain, child.chain)
		}
		family = append(family, children...)
	}
	return family, nil
}

var errRoundOpen = regie.Errorf(regie.CodeRoundInProgress,
	"a run of this session is open: wait until it ends, or interrupt it")

// contents are the statements that erase a session's content from its rows; ?1 is its chain. The
// schema allows them only for a tombstone.
var contents = []string{
	`UPDATE calls SET arguments = '', executed = NULL, intent = NULL, changed = NULL, result = substr(result, 1, 0), result_blob = NULL
		WHERE id IN (SELECT c.id FROM messages m JOIN calls c ON c.message_id = m.id WHERE m.session = ?1)`,
	`UPDATE calls SET tool = CASE WHEN definition IS NULL THEN '' ELSE tool END, provider_call_id = NULL
		WHERE id IN (SELECT c.id FROM messages m JOIN calls c ON c.message_id = m.id WHERE m.session = ?1)`,
	`UPDATE calls SET error = '{"code":"","message":"","retryable":false}' WHERE error IS NOT NULL AND id IN (SELECT c.id FROM messages m JOIN calls c ON c.message_id = m.id WHERE m.session = ?1)`,
	`UPDATE calls SET resolve_note = '' WHERE resolve_note IS NOT NULL AND id IN (SELECT c.id FROM messages m JOIN calls c ON c.message_id = m.id WHERE m.session = ?1)`,
	`UPDATE reviews SET arguments = 'null', preview = '{}', grounds = '[]', edited = NULL, edited_preview = NULL, reason = NULL, scope = NULL
		WHERE approval_id IN (SELECT id FROM approvals WHERE session = ?1)`,
	`UPDATE questions SET module = '{}' WHERE wait_id IN (SELECT id FROM waits WHERE session = ?1)`,
	`UPDATE waits SET resolution = NULL WHERE session = ?1 AND resolution IS NOT NULL`,
	`UPDATE attempts SET partial = '', error = '' WHERE round_id IN (SELECT id FROM rounds WHERE session = ?1)`,
	`UPDATE exchanges SET error = '', stop_reason = '' WHERE (error <> '' OR stop_reason <> '') AND round_id IN (SELECT id FROM rounds WHERE session = ?1)`,
	`UPDATE rounds SET end_note = '' WHERE session = ?1 AND end_note <> ''`,
	`UPDATE undo_files SET path = '', why = NULL, from_hash = NULL, to_hash = NULL WHERE undo_id IN (SELECT id FROM undos WHERE session = ?1)`,
	`UPDATE undos SET makes = '[]', removes = '[]', effects = '[]' WHERE session = ?1`,
	`UPDATE fires SET payload = NULL WHERE payload IS NOT NULL AND (session_id = (SELECT s.id FROM sessions s WHERE s.n = ?1)
		OR joined_to IN (SELECT f.id FROM sessions s JOIN fires f ON f.session_id = s.id WHERE s.n = ?1))`,
	`DELETE FROM read_marks WHERE session = ?1`,
	`DELETE FROM cached_replies WHERE session = ?1`,
}

// eraseSession reduces a session to its tombstone and its log without bodies, and collects its
// blobs.
func (t sessionTx) eraseSession(session tombstone, by string, now time.Time, blobs map[regie.Hash]bool,
	out *store.Removed,
) error {
	if err := t.blobsOf(session.chain, blobs); err != nil {
		return err
	}
	t.one(notFound("session", session.id),
		"UPDATE sessions SET deleted_at = ?, name = '' WHERE n = ? AND deleted_at IS NULL",
		now.UnixMicro(), session.chain)
	if err := t.revokeOwn(session, by, now, out); err != nil {
		return err
	}
	for _, statement := range contents {
		t.exec(statement, session.chain)
	}
	bodies, err := t.eraseBodies(session.id, session.chain, by, now)
	out.Bodies += bodies
	return err
}

// erasePayloads erases the events of an automation that is removed.
func (t automationTx) erasePayloads(id regie.ID) {
	defer t.overwriteFree()()
	t.exec("UPDATE fires SET payload = NULL WHERE automation_id = ? AND payload IS NOT NULL", id)
}

// eraseBodies deletes all bodies of a log, and logs it.
func (t sessionTx) eraseBodies(owner regie.ID, chain int64, by string, now time.Time) (bodies int64, err error) {
	h, err := t.readHead(chain)
	if err != nil {
		return 0, err
	}
	if err := t.row("SELECT count(*) FROM events e JOIN event_bodies b ON b.n = e.n WHERE e.chain = ?",
		chain).Scan(&bodies); err != nil {
		return 0, err
	}
	t.appendEvent(owner, chain, now, regie.EventErased, erasedEvent{
		Reason: "DELETED", Rows: [][2]int64{{1, h.seq}}, Bodies: bodies, By: by,
	})
	t.exec("DELETE FROM event_bodies WHERE n IN (SELECT n FROM events WHERE chain = ? AND seq <= ?)", chain,
		h.seq)
	return bodies, nil
}

// revokeOwn revokes the session-scoped rules of a removed session.
func (t sessionTx) revokeOwn(session tombstone, by string, now time.Time, out *store.Removed) error {
	rules, err := readAll(t.tx, scanOne[regie.ID], "SELECT id FROM rules WHERE session = ? AND revoked_at IS NULL", session.chain)
	out.Rules += len(rules)
	for _, id := range rules {
		t.waits.revokeRule(id, by, now)
	}
	return err
}

// blobsOf collects the blobs that a session references: whole results, attachments, prompt levels
// of its workspace, and files from before its writes (decisions 14, 16, 18).
func (t sessionTx) blobsOf(chain int64, blobs map[regie.Hash]bool) error {
	named, err := readAll(t.tx, scanOne[regie.Hash], `SELECT c.result_blob FROM messages m JOIN calls c ON c.message_id = m.id WHERE m.session = ?1 AND c.result_blob IS NOT NULL
		UNION SELECT a.blob FROM messages m JOIN attachments a ON a.message_id = m.id WHERE m.session = ?1
		UNION SELECT r.level2 FROM rounds r WHERE r.session = ?1 AND r.level2 IS NOT NULL
		UNION SELECT f.level2 FROM rounds r JOIN former_levels f ON f.round_id = r.id WHERE r.session = ?1
		UNION SELECT f.from_hash FROM undos u JOIN undo_files f ON f.undo_id = u.id WHERE u.session = ?1 AND f.from_hash IS NOT NULL
		UNION SELECT f.to_hash FROM undos u JOIN undo_files f ON f.undo_id = u.id WHERE u.session = ?1 AND f.to_hash IS NOT NULL`, chain)
	if err != nil {
		return err
	}
	for _, hash := range named {
		blobs[hash] = true
	}
	return t.findEvidence("FROM messages m JOIN calls c ON c.message_id = m.id WHERE m.session = ? AND", []any{chain},
		func(hash regie.Hash) { blobs[hash] = true })
}

// findEvidence finds the hashes in the stored file states of calls, before they ran and after; from
// selects the calls c.
func (t sessionTx) findEvidence(from string, args []any, fn func(regie.Hash)) error {
	for _, column := range []string{"c.intent", "c.changed"} {
		texts, err := readAll(t.tx, scanOne[string], "SELECT "+column+" "+from+" "+column+" IS NOT NULL", args...)
		if err != nil {
			return err
		}
		for _, text := range texts {
			for _, word := range hashes.FindAllString(text, -1) {
				var hash regie.Hash
				if hash.UnmarshalText([]byte(word)) == nil {
					fn(hash)
				}
			}
		}
	}
	return nil
}

// hashes matches the strings of a JSON text that may be hashes of blobs.
var hashes = regexp.MustCompile(`\b[0-9a-fA-F]{64}\b`)

// eraseBlobs erases the blobs that no row references any more. A blob that was stored recently may
// belong to a call without a stored intent, and stays.
func (t sessionTx) eraseBlobs(blobs map[regie.Hash]bool, now time.Time, out *store.Removed) error {
	// New blobs may not be referenced yet, as long as any round runs.
	var before int64
	if err := t.row("SELECT CASE WHEN EXISTS (SELECT 1 FROM rounds WHERE state <> 'ENDED' AND state = 'RUNNING') THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END",
		now.Add(-lately).UnixMicro(), int64(math.MaxInt64)).Scan(&before); err != nil {
		return err
	}
	if len(blobs) == 0 {
		return nil
	}
	if err := t.findEvidence("FROM calls c WHERE", nil, func(hash regie.Hash) { delete(blobs, hash) }); err != nil {
		return err
	}
	for _, hash := range slices.SortedFunc(maps.Keys(blobs), compareHashes) {
		out.Blobs += t.count(strings.Join([]string{
			"UPDATE blobs SET data = NULL WHERE hash = ?1 AND data IS NOT NULL AND noted_at <= ?2",
			"NOT EXISTS (SELECT 1 FROM calls WHERE result_blob = ?1)",
			"NOT EXISTS (SELECT 1 FROM uploads WHERE blob = ?1)",
			"NOT EXISTS (SELECT 1 FROM attachments a JOIN messages m ON m.id = a.message_id JOIN sessions s ON s.n = m.session WHERE a.blob = ?1 AND s.deleted_at IS NULL)",
			"NOT EXISTS (SELECT 1 FROM rounds WHERE level1 = ?1)", // all users share them
			"NOT EXISTS (SELECT 1 FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.level2 = ?1 AND s.deleted_at IS NULL)",
			"NOT EXISTS (SELECT 1 FROM former_levels f JOIN rounds r ON r.id = f.round_id JOIN sessions s ON s.n = r.session WHERE f.level2 = ?1 AND s.deleted_at IS NULL)",
			"NOT EXISTS (SELECT 1 FROM undo_files WHERE from_hash = ?1)",
			"NOT EXISTS (SELECT 1 FROM undo_files WHERE to_hash = ?1)",
		}, " AND "), hash, before)
	}
	return nil
}

func compareHashes(a, b regie.Hash) int { return bytes.Compare(a[:], b[:]) }
