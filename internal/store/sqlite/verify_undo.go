package sqlite

import (
	"context"
	"reflect"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// spokenUndo is what the log says of an undo: all of it, each time.
type spokenUndo struct {
	seq  int64 // where it was intended; 0 where that body was erased
	last regie.Undo
}

// superseded says which messages the log has taken out of the conversation.
func (l *spokenLog) superseded() map[regie.ID]bool {
	var gone regie.Supersede
	for i := range l.thread {
		gone.See(&l.thread[i])
	}
	out := map[regie.ID]bool{}
	for i := range l.thread {
		if m := &l.thread[i]; gone.Hides(i+1, m) {
			out[m.ID] = true
		}
	}
	return out
}

// verifyUndos compares the undos of a session, with each of their files, with what the log says was
// intended and done.
func verifyUndos(ctx context.Context, q querier, report *store.VerifyReport, said *spokenLog) error {
	undos, err := readUndos(ctx, q, "WHERE s.id = ?", report.OwnerID)
	if err != nil {
		return err
	}
	for i := range undos {
		log, ok := said.undos[undos[i].ID]
		if !ok && report.Erased > 0 {
			continue
		}
		if !ok {
			return broken("the log knows no undo %s", undos[i].ID)
		}
		delete(said.undos, undos[i].ID)
		if column := log.compare(&undos[i], report.Erased > 0); column != "" {
			return broken("the log does not say the same of undo %s: %s", undos[i].ID, column)
		}
	}
	for id := range said.undos {
		return broken("undo %s is missing", id)
	}
	return nil
}

// compare returns the first column of an undo that the log has otherwise, "" for none.
func (log *spokenUndo) compare(u *regie.Undo, erased bool) string {
	var d differs
	is, was := u, &log.last
	d.in("seq", is.Seq != log.seq && (log.seq != 0 || !erased))
	d.in("round_id", is.RoundID != was.RoundID)
	d.in("undoes", is.Undoes != was.Undoes)
	d.in("state", is.State != was.State && !erased)
	d.in("forced", is.Forced != was.Forced)
	d.in("chat", is.Chat != was.Chat)
	d.in("author", asLogged(is.By) != was.By)
	d.in("makes", !sameList(is.Makes, was.Makes))
	d.in("removes", !sameList(is.Removes, was.Removes))
	d.in("effects", !sameList(is.Effects, was.Effects))
	d.in("created_at", is.CreatedAt.UnixMicro() != was.CreatedAt.UnixMicro())
	if is.State == was.State {
		d.in("done_at", microsOf(&is.DoneAt) != microsOf(&was.DoneAt))
		d.in("message_id", is.MessageID != was.MessageID)
		d.in("files", !sameList(is.Files, was.Files))
	}
	return d.column
}

func sameList[T any](a, b []T) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}
