package store

import (
	"time"

	"github.com/regie-run/regie"
)

// Channel selects the notifications that a configured channel delivers. An empty Root or User
// selects all workspaces or users.
type Channel struct {
	Name, Root, User string
	Kinds            []regie.NotificationKind
}

// DeliveryState is the state of a delivery.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending DeliveryState = "PENDING"
	DeliverySent    DeliveryState = "SENT"
	DeliveryFailed  DeliveryState = "FAILED"  // after a day of attempts
	DeliverySkipped DeliveryState = "SKIPPED" // its receiver was there, or nothing waited any more
)

// Delivery is a notification on its way through a channel (decision 60). It is delivered at least
// once.
type Delivery struct {
	ID          regie.ID               `json:"id"` // of the notification: receivers deduplicate by it
	Channel     string                 `json:"channel"`
	Kind        regie.NotificationKind `json:"kind"`
	WorkspaceID regie.ID               `json:"workspace_id,omitzero"`
	SessionID   regie.ID               `json:"session_id,omitzero"`
	RoundID     regie.ID               `json:"round_id,omitzero"`
	ObjectID    regie.ID               `json:"object_id,omitzero"` // the approval, the question or the call
	State       DeliveryState          `json:"state"`
	Attempts    int                    `json:"attempts"`
	NextAt      time.Time              `json:"next_at,omitzero"` // of the next attempt, unless another engine makes one
	Error       regie.Sentence         `json:"error,omitzero"`
	CreatedAt   time.Time              `json:"created_at"`
	SettledAt   time.Time              `json:"settled_at,omitzero"`
	// AutomationID is set where a run of it could not begin: then the session is its template.
	AutomationID regie.ID `json:"-"`
	// UserID is the session's owner and SessionName its name. Sealed says that nothing the session
	// holds may leave (decision 34), Moot that what the notification is about no longer waits.
	UserID      regie.ID `json:"-"`
	SessionName string   `json:"-"`
	Sealed      bool     `json:"-"`
	Moot        bool     `json:"-"`
}

// DeliveryFilter selects deliveries, the newest first.
type DeliveryFilter struct {
	Root  string `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	Limit int    `query:"limit" min:"1" max:"500" doc:"How many at most; 50 where it is left out."`
}
