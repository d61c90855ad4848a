package sqlite

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// heldRound is a round, with the log of its session held by the transition. The fence has the
// session's epoch.
type heldRound struct {
	fence   store.Fence
	owned   owned
	state   regie.RoundState
	stop    regie.StopRequest
	session regie.SessionState
	paused  time.Time
	holder  string
}

// holdRound holds the log of a round's session, and reads the state of both.
func (t *tx) holdRound(round regie.ID) (r heldRound, err error) {
	t.holdRow(ByRound, round)
	var kind, origin string
	r.fence.RoundID = round
	err = t.row(`SELECT s.id, s.n, s.epoch, r.state, s.state, s.paused_at, s.lease_holder, r.stop_request, s.workspace_id, s.user_id, s.type, s.origin
		FROM rounds r JOIN sessions s ON s.n = r.session WHERE r.id = ?`, round).
		Scan(&r.fence.SessionID, &r.fence.Chain, &r.fence.Epoch, &r.state, &r.session, &r.paused, &r.holder, &r.stop,
			&r.owned.workspace, &r.owned.user, &kind, &origin)
	r.owned.chain, r.owned.kind = r.fence.Chain, kindOf(kind, origin)
	return r, unlessFound(err, notFound("round", round))
}

// heldSession is a session with its log held by the transition; head is the end of the log.
type heldSession struct {
	chain, head int64
	workspace   regie.ID
	name        string
	state       regie.SessionState
	kind        regie.SessionType
}

// holdSession holds the log of a session and reads its state. It returns CodeNotFound for a removed
// session.
func (t *tx) holdSession(id regie.ID) (s heldSession, err error) {
	t.holdRow(ByOwner, id)
	err = t.row(`SELECT s.n, c.head, s.workspace_id, s.name, s.state, s.type FROM sessions s JOIN chains c ON c.n = s.n
		WHERE s.id = ? AND s.deleted_at IS NULL`, id).Scan(&s.chain, &s.head, &s.workspace, &s.name, &s.state, &s.kind)
	return s, unlessFound(err, notFound("session", id))
}
