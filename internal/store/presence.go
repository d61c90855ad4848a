package store

import (
	"time"

	"github.com/regie-run/regie"
)

// PresenceKept is how long a heartbeat is kept (decision 39).
const PresenceKept = 24 * time.Hour

// Mode says whether a user is present (spec 5.4).
type Mode string

// The modes.
const (
	ModeUI      Mode = "UI"      // a heartbeat is younger than the configured time: a person watches
	ModeBackend Mode = "BACKEND" // no heartbeat: messages stay unread until they are seen
)

// PresenceMark is one engine's record of one user's heartbeats (spec 5.4).
type PresenceMark struct {
	UserID regie.ID
	// Place names the engine.
	Place string
	// Since is the first heartbeat of the current unbroken series, Seen the last one.
	Since, Seen time.Time
}
