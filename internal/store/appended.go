package store

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
)

// Appended is what a commit has added to a session's log: rows without a gap between them. It says
// what the log says, so that who listens need not read that. It is not changed once somebody has
// been told.
type Appended struct{ rows []appendedRow }

type appendedRow struct {
	seq  int64
	kind regie.EventType
	at   time.Time
	body string
}

// Add adds the next row, with its body as it is stored.
func (a *Appended) Add(seq int64, kind regie.EventType, at time.Time, body string) {
	a.rows = append(a.rows, appendedRow{seq, kind, at, body})
}

// Events are the rows as Events of a store returns them.
func (a *Appended) Events(session regie.ID) []regie.Event {
	if a == nil {
		return nil
	}
	out := make([]regie.Event, len(a.rows))
	for i := range a.rows {
		row := &a.rows[i]
		out[i] = regie.Event{
			SessionID: session, Seq: row.seq, Type: row.kind, Time: time.UnixMicro(row.at.UnixMicro()).UTC(),
			Body: json.RawMessage(row.body),
		}
	}
	return out
}

// Notify is told, after a commit, what it has added to a session's log; nil where that is not
// known, and the log has to be read. It must not block.
type Notify func(session regie.ID, added *Appended)
