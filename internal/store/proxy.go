package store

import (
	"time"

	"github.com/regie-run/regie"
)

// Proxied is a model call forwarded for a client, without a session (decision 35): a line of the
// log of these (spec 11.4).
type Proxied struct {
	ID          regie.ID
	WorkspaceID regie.ID
	UserID      regie.ID
	Provider    string
	Model       string
	Code        regie.Code // why it brought no answer; empty where it did
	Usage       regie.Usage
	Money       regie.Money // Reserved is what was reserved for it under a cap
	StartedAt   time.Time
	Duration    time.Duration
}
