package regie

import (
	"encoding/json"
	"time"
)

// WaitKind says what a round waits for (decision 12).
type WaitKind string

// The kinds of waits.
const (
	WaitApproval WaitKind = "APPROVAL"
	WaitQuestion WaitKind = "QUESTION"
	WaitTask     WaitKind = "TASK"
	WaitNetwork  WaitKind = "NETWORK"
	WaitChild    WaitKind = "CHILD"
)

// WaitState is the state of a wait.
type WaitState string

// The wait states.
const (
	WaitOpen      WaitState = "OPEN"
	WaitResolved  WaitState = "RESOLVED"
	WaitExpired   WaitState = "EXPIRED"
	WaitWithdrawn WaitState = "WITHDRAWN"
)

// Wait is a round's durable wait for a person, a callback or the network (spec 3.5, decisions 11 and 12): a row, no goroutine.
type Wait struct {
	ID        ID              `json:"id"`
	SessionID ID              `json:"session_id"`
	RoundID   ID              `json:"round_id"`
	Kind      WaitKind        `json:"kind"`
	ObjectID  ID              `json:"object_id"` // approval, module, task, child session
	OwnerID   ID              `json:"owner_id"`  // who is to answer
	Deadline  time.Time       `json:"deadline,omitzero"`
	Default   json.RawMessage `json:"default,omitempty"` // what comes true at the deadline (decision 11)
	State     WaitState       `json:"state"`
	CreatedAt time.Time       `json:"created_at"`
}
