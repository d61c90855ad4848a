package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

const undoColumns = `u.id, s.id, u.round_id, u.undoes, u.state, u.forced, u.chat, u.makes, u.removes, u.effects, u.author, u.seq, u.message_id, u.created_at, u.done_at
	FROM undos u JOIN sessions s ON s.n = u.session `

// Undo returns a stored undo, or CodeNotFound.
func (s undoStore) Undo(ctx context.Context, id regie.ID) (out regie.Undo, err error) {
	err = s.readSnapshot(ctx, func(ctx context.Context, q querier) error {
		all, err := readUndos(ctx, q, "WHERE u.id = ? AND s.deleted_at IS NULL", id)
		if err == nil && len(all) == 0 {
			err = notFound("undo", id)
		}
		if err == nil {
			out = all[0]
		}
		return err
	})
	return out, err
}

// readUndos reads undos with their files; where selects them.
func readUndos(ctx context.Context, q querier, where string, args ...any) ([]regie.Undo, error) {
	out, err := queryAll(ctx, q, func(row scanner, u *regie.Undo) error {
		return row.Scan(&u.ID, &u.SessionID, &u.RoundID, &u.Undoes, &u.State, &u.Forced, &u.Chat, asJSON{&u.Makes},
			asJSON{&u.Removes}, asJSON{&u.Effects}, &u.By, &u.Seq, &u.MessageID, &u.CreatedAt, &u.DoneAt)
	}, "SELECT "+undoColumns+where+" ORDER BY u.session, u.seq", args...)
	for i := 0; err == nil && i < len(out); i++ {
		out[i].Files, err = readUndoFiles(ctx, q, out[i].ID)
	}
	return out, err
}

func readUndoFiles(ctx context.Context, q querier, undo regie.ID) ([]regie.UndoFile, error) {
	return queryList(ctx, q, func(row scanner, f *regie.UndoFile) error {
		return row.Scan(&f.Path, &f.From.Hash, &f.From.Size, &f.From.Perm, &f.To.Hash, &f.To.Size, &f.To.Perm,
			&f.To.DirPerm, &f.Outcome, &f.Code, asJSON{&f.Why})
	}, `SELECT path, from_hash, from_size, from_perm, to_hash, to_size, to_perm, to_dir_perm, outcome, code, why FROM undo_files
		WHERE undo_id = ? ORDER BY ordinal`, undo)
}

// OpenUndos returns the intended undos, oldest first: a process died in the middle of each.
func (s undoStore) OpenUndos(ctx context.Context) ([]store.OpenUndo, error) {
	var out []store.OpenUndo
	err := s.readSnapshot(ctx, func(ctx context.Context, q querier) error {
		out = nil
		undos, err := readUndos(ctx, q, "WHERE u.state = 'INTENDED'")
		for i := range undos {
			open := store.OpenUndo{Undo: undos[i]}
			if _, open.Workspace, err = readSession(ctx, q, undos[i].SessionID); err != nil {
				return err
			}
			out = append(out, open)
		}
		return err
	})
	return out, err
}

// acted selects rounds r that started an action.
const acted = `EXISTS (SELECT 1 FROM exchanges e CROSS JOIN calls c ON c.message_id = e.reply_id WHERE e.round_id = r.id AND c.kind = 'action' AND c.started_at IS NOT NULL)`

// UndoCandidates returns the rounds and undos that a filter selects, the newest first. It returns
// CodeBadID for a part that is not hexadecimal.
func (s undoStore) UndoCandidates(ctx context.Context, filter store.UndoFilter) ([]store.UndoCandidate, error) {
	if err := checkPart(filter.Short); err != nil {
		return nil, err
	}
	return queryAll(ctx, s.read, func(row scanner, c *store.UndoCandidate) error { return row.Scan(&c.RoundID, &c.UndoID) },
		`SELECT o.round, o.undo FROM (
			SELECT r.id AS round, NULL AS undo, r.started_at AS at, r.session AS session, r.number AS number FROM rounds r
				WHERE (r.id = ?3 OR ?3 IS NULL) AND (?4 = '' OR `+hasPart("r.id", "?4")+`) AND (?3 IS NOT NULL OR ?4 <> '' OR ?5 OR `+acted+`)
			UNION ALL SELECT u.round_id, u.id, u.created_at, u.session, u.seq FROM undos u
				WHERE (?3 IS NOT NULL OR ?4 <> '') AND (u.id = ?3 OR ?3 IS NULL) AND (?4 = '' OR `+hasPart("u.id", "?4")+`)) o
		JOIN sessions s ON s.n = o.session JOIN workspaces w ON w.id = s.workspace_id
		WHERE s.deleted_at IS NULL AND s.type <> 'SUBAGENT' AND (w.root = ?1 OR ?1 = '') AND (s.id = ?2 OR ?2 IS NULL)
		ORDER BY CASE WHEN ?2 IS NULL THEN o.at ELSE o.number END DESC, o.number DESC LIMIT ?6`,
		filter.Root, filter.SessionID, filter.ID, filter.Short, filter.Talk, cmp.Or(filter.Limit, 100))
}

// callsOfTree reads the started actions of a round, and of the rounds of the sub-agents that its
// calls made.
const callsOfTree = `FROM exchanges e CROSS JOIN calls c ON c.message_id = e.reply_id JOIN sessions s ON s.n = c.session
	WHERE c.kind = 'action' AND c.started_at IS NOT NULL AND e.round_id IN (
		WITH RECURSIVE tree (id) AS (SELECT id FROM rounds WHERE id = ? UNION SELECT r.id FROM tree t JOIN exchanges x ON x.round_id = t.id
			JOIN calls k ON k.message_id = x.reply_id JOIN sessions d ON d.parent_call = k.id JOIN rounds r ON r.session = d.n)
		SELECT id FROM tree) ORDER BY c.started_at, c.exchange, c.ordinal`

// UndoSource returns the data for planning an undo of a round, or of an undo of it, in one
// snapshot.
func (s undoStore) UndoSource(ctx context.Context, round regie.ID) (store.UndoSource, error) {
	var out store.UndoSource
	err := s.readSnapshot(ctx, func(ctx context.Context, q querier) (err error) {
		if out.Round, err = readRound(ctx, q, round); err != nil {
			return err
		}
		if out.Session, out.Workspace, err = readSession(ctx, q, out.Round.SessionID); err != nil {
			return err
		}
		if out.Calls, err = readCalls(ctx, q, callsOfTree, round); err != nil {
			return err
		}
		// clocks jump, sequence numbers do not
		if !slices.ContainsFunc(out.Calls, func(c regie.Call) bool { return c.RoundID != round }) {
			slices.SortStableFunc(out.Calls, func(a, b regie.Call) int {
				return cmp.Or(cmp.Compare(a.Exchange, b.Exchange), cmp.Compare(a.Ordinal, b.Ordinal))
			})
		}
		if out.Undos, err = readUndos(ctx, q, "WHERE u.round_id = ?", round); err != nil {
			return err
		}
		triggers, err := readMessages(ctx, q, "JOIN rounds r ON r.trigger_message_id = m.id WHERE r.id = ?", round)
		if err == nil && len(triggers) == 1 {
			out.Text = triggers[0].LinearText()
		}
		if err != nil {
			return err
		}
		return q.QueryRowContext(ctx, `SELECT count(*) FROM messages m JOIN rounds r ON r.session = m.session WHERE r.id = ?1 AND m.round_id = r.id AND m.seq IS NOT NULL
			AND m.excluded = 0 AND m.system_type IS DISTINCT FROM 'CONTEXT_SUMMARY'`, round).Scan(&out.Messages)
	})
	return out, err
}

// Later returns the changes to files of a workspace since a moment, finished or under way. They
// explain why a file is not as an action left it.
func (s undoStore) Later(ctx context.Context, workspace regie.ID, since time.Time) (store.Later, error) {
	var out store.Later
	err := s.readSnapshot(ctx, func(ctx context.Context, q querier) (err error) {
		if out.Calls, err = readCalls(ctx, q, callsOfThread+`WHERE s.workspace_id = ? AND s.deleted_at IS NULL AND c.kind = 'action' AND (c.state IN ('SUCCEEDED', 'STARTED') OR c.changed IS NOT NULL) AND c.started_at > ?
			AND c.intent IS NOT NULL AND c.copy_of IS NULL ORDER BY c.started_at`, workspace, since.UnixMicro()); err != nil {
			return err
		}
		out.Undos, err = readUndos(ctx, q, "WHERE u.workspace_id = ? AND u.done_at > ?", workspace, since.UnixMicro())
		return err
	})
	return out, err
}
