package store

import (
	"time"

	"github.com/regie-run/regie"
)

// PresenceKept is how long a user's last heartbeat is remembered (decision 39).
const PresenceKept = 24 * time.Hour

// Mode says whether a user is there (spec 5.4).
type Mode string

// The modes.
const (
	ModeUI      Mode = "UI"      // a heartbeat is younger than the configured time: somebody watches
	ModeBackend Mode = "BACKEND" // nobody does: what comes is unread until it is seen
)

// PresenceMark is what one engine knows of one user's heartbeats (spec 5.4).
type PresenceMark struct {
	UserID regie.ID
	// Place names the engine.
	Place string
	// Since is the first heartbeat of those that followed on one another, Seen the last one.
	Since, Seen time.Time
}
