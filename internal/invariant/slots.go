package invariant

import (
	"bytes"
	"context"

	"github.com/regie-run/regie"
)

// checkSlots asserts spec 5.1 on the rows: a round that waits or has ended holds no slot and is not
// queued, no kind has more of one owner in one workspace than there are, and no session is QUEUED
// without a round that is.
func (c *check) checkSlots(ctx context.Context) {
	runs := false
	for i := range c.views {
		runs = runs || c.views[i].Round.State == regie.RoundRunning
	}
	var own, lost int
	err := c.DB.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM slots q JOIN sessions s ON s.n = q.session WHERE s.id = ? AND q.state <> 'RESERVED'),
		(SELECT count(*) FROM sessions s WHERE s.state = 'QUEUED' AND NOT EXISTS (SELECT 1 FROM slots q WHERE q.session = s.n AND q.state = 'QUEUED'))`, c.Session).Scan(&own, &lost)
	switch {
	case err != nil:
		c.Fail("the slots cannot be read: %v", err)
	case own > 0 && !runs:
		c.Fail("no round of the session runs, and it has a slot or a place in the queue (spec 5.1)")
	case lost > 0:
		c.Fail("%d sessions are QUEUED and stand in no queue (spec 5.1)", lost)
	}
	for i := range c.events {
		if e := &c.events[i]; e.Type == regie.EventSessionState && bytes.Contains(e.Body, []byte(`"state":"QUEUED"`)) {
			c.saw("queued")
		}
	}
}
