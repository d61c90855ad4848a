package regie

import "time"

// WaitKind says what a round waits for (decision 12).
type WaitKind string

// The kinds of waits.
const (
	WaitApproval WaitKind = "APPROVAL"
	WaitQuestion WaitKind = "QUESTION"
	WaitNetwork  WaitKind = "NETWORK"
	WaitProvider WaitKind = "PROVIDER" // the settings of its provider (decision 54)
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

// Wait is something that a round waits for (decision 12).
type Wait struct {
	ID      ID       `json:"id"`
	RoundID ID       `json:"round_id"`
	Kind    WaitKind `json:"kind"`
	// ObjectID is the approval or question; zero for what is neither.
	ObjectID ID `json:"object_id,omitzero"`
	// Deadline is when the wait ends by itself; zero: never.
	Deadline time.Time `json:"deadline,omitzero"`
	Since    time.Time `json:"since"`
}

// Outage is a failure of the network that a round waits out before it asks its model again
// (decisions 25 and 42).
type Outage struct {
	Exchange int       `json:"exchange"` // the exchange whose model call cannot be made
	Since    time.Time `json:"since"`
	Tries    int       `json:"tries"`             // that found no network
	Noticed  bool      `json:"noticed,omitempty"` // people were told that it lasts
}

// NoticeKind says what a notice is about.
type NoticeKind string

// The kinds of notices.
const (
	NoticeNetworkDown   NoticeKind = "network_down"    // the network has been away for long, and is waited for
	NoticeNetworkGiveUp NoticeKind = "network_give_up" // it has been away for too long: the session is paused
	NoticeProvider      NoticeKind = "provider"        // a run waits for the settings of its provider
	NoticeFailed        NoticeKind = "failed"          // a run that nobody watches has failed
	// a budget does not allow its next model call: the session is paused (decision 44)
	NoticeBudget NoticeKind = "budget"
)

// Notice is news for people who are not watching: the body of an EventNotice.
type Notice struct {
	RoundID ID         `json:"round_id"`
	Kind    NoticeKind `json:"kind"`
	Since   time.Time  `json:"since"`
	Text    string     `json:"text"` // the last failure's own words
	// Said is what it says where those are ours: each surface has it in its own language.
	Said []Sentence `json:"said,omitempty"`
	// Why is Text where it is ours, or ours around others' words.
	Why Sentence `json:"why,omitzero"`
}
