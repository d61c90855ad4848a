package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
)

// BeginUndo stores the intent of an undo, with the present and the intended state of each file
// (decision 16). No file has changed by then, and both contents are stored as blobs. holder holds
// the session from then on, until FinishUndo. It returns the stored undo: the same undo again
// changes nothing, in any state, and is not held.
//
// It returns CodeRoundInProgress while a round of the session is open, CodeConflict while another
// undo of the workspace is under way or where the id is taken, and CodeNotFound.
func (s undoStore) BeginUndo(ctx context.Context, in regie.Undo, holder string) (out store.HeldUndo, err error) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	in.State, in.CreatedAt, in.Seq, in.MessageID, in.DoneAt = regie.UndoIntended, now, 0, regie.ID{}, time.Time{}
	event, there := newEvent(regie.EventUndo, &in), false
	err = s.writer.do(ctx, func(t *tx) error {
		held, missing := t.holdSession(in.SessionID)
		if there, err = t.undos.undoThere(&in); err != nil || there {
			return err
		}
		err := missing
		if err == nil {
			err = t.undos.mayUndo(held)
		}
		if err == nil {
			err = t.undos.undoFits(held.chain, &in)
		}
		if err != nil {
			return err
		}
		in.Seq = t.appendEvents(in.SessionID, held.chain, now, event)
		t.undos.insertUndo(held, &in)
		out.Epoch = t.undos.holdForUndo(held.chain, holder)
		return nil
	})
	out.Undo = in
	if err == nil && there {
		out.Undo, err = s.Undo(ctx, in.ID)
	}
	return out, err
}

// ClaimUndo makes holder the one that carries out an intended undo, from the present state of its
// files. It raises the session's epoch, so that an earlier holder cannot finish the undo (invariant
// 8). It returns store.ErrElsewhere while another holder's lease covers it, and CodeNotFound. A
// done undo is returned, and not held.
func (s undoStore) ClaimUndo(ctx context.Context, id regie.ID, holder string) (out store.HeldUndo, err error) {
	err = s.writer.do(ctx, func(t *tx) error {
		t.holdRow(ByUndo, id)
		var chain int64
		var state regie.UndoState
		err := t.row("SELECT session, state FROM undos WHERE id = ?", id).Scan(&chain, &state)
		if err != nil || state == regie.UndoDone {
			return unlessFound(err, notFound("undo", id))
		}
		if err := t.slots.mayClaim(chain, holder); err != nil {
			return err
		}
		out.Epoch = t.undos.holdForUndo(chain, holder)
		return nil
	})
	if err == nil {
		out.Undo, err = s.Undo(ctx, id)
	}
	return out, err
}

// holdForUndo raises the session's epoch for a holder. No round of the session is open, and none
// starts until the undo is done.
func (t undoTx) holdForUndo(chain int64, holder string) (epoch int64) {
	t.fail(t.row("SELECT epoch FROM sessions WHERE n = ?", chain).Scan(&epoch))
	epoch++
	t.exec("UPDATE sessions SET epoch = ?, lease_holder = ? WHERE n = ?", epoch, holder, chain)
	return epoch
}

// undoThere looks for a stored undo.
func (t undoTx) undoThere(in *regie.Undo) (bool, error) {
	var round, undoes regie.ID
	err := t.row("SELECT round_id, undoes FROM undos WHERE id = ?", in.ID).Scan(&round, &undoes)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err == nil && (round != in.RoundID || undoes != in.Undoes):
		return true, regie.Errorf(regie.CodeConflict, "the undo id %s is taken", in.ID)
	}
	return true, err
}

// mayUndo returns the error of a session that cannot be undone now, or nil.
func (t undoTx) mayUndo(session heldSession) error {
	var open, undoing bool
	err := t.row(`SELECT EXISTS (SELECT 1 FROM rounds WHERE session = ? AND state <> 'ENDED'),
		EXISTS (SELECT 1 FROM undos WHERE workspace_id = ? AND state = 'INTENDED')`, session.chain, session.workspace).
		Scan(&open, &undoing)
	switch {
	case err == nil && open:
		return store.RunIsOpen(session.state)
	case err == nil && undoing:
		return errUndoing
	}
	return err
}

// undoFits refuses an undo of another session's round, an undo of anything but a done undo of that
// round, and one without stored file contents: no file may change before its content can be
// restored.
func (t undoTx) undoFits(chain int64, u *regie.Undo) error {
	var fits bool
	if err := t.row(`SELECT EXISTS (SELECT 1 FROM rounds WHERE id = ?1 AND session = ?2)
		AND (?3 = 1 OR EXISTS (SELECT 1 FROM undos WHERE id = ?4 AND round_id = ?1 AND state = 'DONE'))`,
		u.RoundID, chain, boolToInt(u.Undoes.IsZero()), u.Undoes).Scan(&fits); err != nil {
		return err
	}
	if !fits {
		return regie.Errorf(regie.CodeConflict, "the undo %s does not belong to the round %s", u.ID, u.RoundID)
	}
	for i := range u.Files {
		for _, hash := range []regie.Hash{u.Files[i].From.Hash, u.Files[i].To.Hash} {
			kept := hash.IsZero()
			if !kept {
				if err := t.row("SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ? AND (data IS NOT NULL OR in_file = 1))",
					hash).Scan(&kept); err != nil {
					return err
				}
			}
			if !kept {
				return regie.Errorf(regie.CodeConflict, "the content of %s is not kept: nothing was undone", u.Files[i].Path)
			}
		}
	}
	return nil
}

// errUndoing has a name above this package: starting a round waits for the end of the undo.
var errUndoing = store.ErrUndoing

func (t undoTx) insertUndo(session heldSession, u *regie.Undo) {
	t.exec(`INSERT INTO undos (id, session, workspace_id, round_id, undoes, state, forced, chat, makes, removes, effects, author, seq, created_at)
		VALUES (?, ?, ?, ?, ?, 'INTENDED', ?, ?, ?, ?, ?, ?, ?, ?)`, u.ID, session.chain, session.workspace, u.RoundID, u.Undoes, boolToInt(u.Forced), boolToInt(u.Chat),
		asList(u.Makes), asList(u.Removes), asList(u.Effects), u.By, u.Seq, u.CreatedAt.UnixMicro())
	for i := range u.Files {
		f := &u.Files[i]
		t.exec(
			"INSERT INTO undo_files (undo_id, ordinal, path, from_hash, from_size, from_perm, to_hash, to_size, to_perm, to_dir_perm) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			u.ID, i, f.Path, f.From.Hash, f.From.Size, int64(f.From.Perm), f.To.Hash, f.To.Size, int64(f.To.Perm),
			int64(f.To.DirPerm))
	}
}

// asList encodes a list as JSON; an empty one is [].
func asList[T any](items []T) asJSON { return asJSON{append([]T{}, items...)} }

// FinishUndo stores the outcome of each file of an intended undo, which is done then, with the
// UNDONE message in the thread. Where the undo includes the chat, it supersedes or restores the
// round's messages. Finishing a done one changes nothing. It returns CodeStale after a takeover by
// another holder.
func (s undoStore) FinishUndo(ctx context.Context, in store.FinishUndo) (out regie.Undo, err error) {
	u, err := s.Undo(ctx, in.UndoID)
	if err != nil || u.State == regie.UndoDone {
		return u, err
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	seq := u.Seq
	u.Files, u.State, u.DoneAt, u.MessageID, u.Seq = in.Files, regie.UndoDone, now, in.Message.ID, 0
	done := newEvent(regie.EventUndo, &u)
	u.Seq = seq
	message := in.Message
	err = s.writer.do(ctx, func(t *tx) error {
		t.holdRow(ByOwner, u.SessionID)
		var state string
		b := batch{now: now, events: []logEvent{done}}
		if err := t.row("SELECT s.id, s.n, u.state FROM undos u JOIN sessions s ON s.n = u.session WHERE u.id = ?",
			u.ID).Scan(&b.fence.SessionID, &b.fence.Chain, &state); err != nil {
			return err
		}
		if state == string(regie.UndoDone) {
			return nil
		}
		if !fault.Bug(fault.BugNoEpoch) {
			t.one(errStale,
				"UPDATE sessions SET lease_holder = NULL, lease_until = NULL WHERE n = ? AND epoch = ?", b.fence.Chain,
				in.Epoch)
		}
		t.undos.settleFiles(&u)
		undone, err := t.undos.supersedeMessages(b.fence.Chain, &u)
		if err != nil {
			return err
		}
		content := *in.Message.System
		content.Undone = &undone
		message.System = &content
		b.addMessage(&message)
		b.writeBatch(t)
		t.one(errUndone,
			`UPDATE undos SET state = 'DONE', done_at = ?, message_id = ? WHERE id = ? AND state = 'INTENDED'
				AND NOT EXISTS (SELECT 1 FROM undo_files WHERE undo_id = undos.id AND outcome IS NULL)`, // each file is settled
			now.UnixMicro(), message.ID, u.ID)
		return nil
	})
	if err != nil {
		return u, err
	}
	return s.Undo(ctx, u.ID)
}

var errUndone = regie.Errorf(regie.CodeConflict, "the undo is done already")

func (t undoTx) settleFiles(u *regie.Undo) {
	for i := range u.Files {
		f := &u.Files[i]
		t.one(errUndone,
			"UPDATE undo_files SET outcome = ?, code = ?, why = ? WHERE undo_id = ? AND ordinal = ? AND path = ? AND outcome IS NULL",
			string(f.Outcome), nullIfEmpty(f.Code), asJSON{f.Why}, u.ID, i, f.Path)
	}
}

// supersedeMessages marks the messages of an undo of the chat, and returns them.
func (t undoTx) supersedeMessages(chain int64, u *regie.Undo) (regie.Undone, error) {
	out := regie.Undone{UndoID: u.ID, RoundID: u.RoundID}
	if !u.Chat {
		return out, nil
	}
	gone := true // an undo of the round's own; each undo of an undo turns it round
	for id := u.Undoes; !id.IsZero(); gone = !gone {
		if err := t.row("SELECT undoes FROM undos WHERE id = ?", id).Scan(&id); err != nil {
			return out, err
		}
	}
	var first, last int64
	var places regie.Places
	if err := t.row("SELECT min(seq), max(seq) FROM messages WHERE session = ? AND round_id = ? AND seq IS NOT NULL",
		chain, u.RoundID).Scan(&first, &last); err != nil || first == 0 {
		return out, err
	}
	if err := t.row(
		"SELECT count(*) FILTER (WHERE seq <= ?), count(*) FILTER (WHERE seq <= ?) FROM messages WHERE session = ? AND seq IS NOT NULL", first, last, chain).
		Scan(&places.From, &places.To); err != nil {
		return out, err
	}
	t.exec(
		"UPDATE messages SET superseded = ? WHERE session = ? AND seq BETWEEN ? AND ? AND system_type IS DISTINCT FROM 'CONTEXT_SUMMARY'",
		boolToInt(gone), chain, first, last)
	if gone {
		out.Superseded = &places
	} else {
		out.Restored = &places
	}
	return out, nil
}
