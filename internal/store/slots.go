package store

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
)

// ErrQueued is the error of a claim without a free slot: the round is queued and has no holder
// (spec 5.1).
var ErrQueued = regie.Errorf(regie.CodeConflict, "the run is queued: it starts when a slot is free")

// QueueView is the possible moves of the rounds that wait for a slot, of one (user, workspace) or
// of all.
type QueueView struct {
	// Start are those that can start now, in order.
	Start []Resolved
	// Yield are running rounds that have to release their slot at the end of their step: a chat
	// takes their place, or they were queued while they ran.
	Yield []Resolved
	// Queued are all that wait.
	Queued []Resolved
	// Moved are sessions with an outdated last logged place in the queue.
	Moved []regie.ID
	// Until is when the next reservation expires and a queued round may start; zero for no
	// reservation.
	Until time.Time
}

// SetAside is the transition of a round that no engine here can run. With Notice it waits for the
// settings of its provider, until Until at the latest; without, it leaves the queue.
type SetAside struct {
	RoundID regie.ID
	Holder  string
	Notice  *regie.Notice
	Until   time.Time
}

// SlotCount counts the sessions in one state of one kind of slot.
type SlotCount struct {
	Kind     slot.Kind
	State    slot.State
	Sessions int
	Since    time.Time // of the one that has had it for the longest time
}

// Controlled is the answer to a request for control of a session (spec 5.1, decision 43): the slot
// that a round started now would get.
type Controlled struct {
	State ControlState `json:"state"`
	// Position is the place in the queue, from 1, where State is ControlQueued.
	Position int `json:"position,omitempty"`
	// Until is when a reserved slot is given to others, unless a message comes. Where State is
	// ControlQueued it is the slot of a chat that yields at the end of its step.
	Until time.Time `json:"reserved_until,omitzero"`
}

// ControlState says which slot a round would get.
type ControlState string

// The states.
const (
	ControlActivated ControlState = "ACTIVATED"      // it runs at once
	ControlActive    ControlState = "ALREADY_ACTIVE" // one of this session runs
	ControlQueued    ControlState = "QUEUED"         // it waits at Position
	// a scheduled run is never queued: it starts when slot and queue are free
	ControlRefused ControlState = "REFUSED"
)

// Control is the transition of a request for control.
type Control struct {
	SessionID regie.ID
	// For is how long a free slot is reserved.
	For time.Duration
	// Ask is the row of the table.
	Ask slot.Ask
}
