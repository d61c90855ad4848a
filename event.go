package regie

import (
	"encoding/json"
	"time"
)

// EventType names what an event of the log tells (spec 10.2). Deltas of a running model call are
// not events: they are not durable.
type EventType string

// The durable event types.
const (
	EventSession        EventType = "session" // created, renamed, forked
	EventSessionState   EventType = "session_state"
	EventMessage        EventType = "message"
	EventMessagePending EventType = "message_pending"
	// EventMessageWithdrawn tells that a pending message was given back: it never gets a place in
	// the thread (decision 10).
	EventMessageWithdrawn EventType = "message_withdrawn"
	EventRound            EventType = "round"       // started, stop requested, ended
	EventToolCall         EventType = "tool_call"   // a call was proposed, or started
	EventToolResult       EventType = "tool_result" // a call was settled
	EventApproval         EventType = "approval"    // calls were put to a person, decided, expired, withdrawn
	EventQuestion         EventType = "question"    // a question was put to a person, answered, expired, withdrawn
	EventPlan             EventType = "plan"        // the agent's plan has changed
	EventNotice           EventType = "notice"      // what somebody who is not watching should hear of
	EventStreamReset      EventType = "stream_reset"
	EventFallback         EventType = "fallback" // another provider goes on with a model call
	EventLevels           EventType = "levels"   // what the workspace says has changed while a round waited
	// a standing rule was made, or revoked; in its workspace's log (decision 15)
	EventRule EventType = "rule"
	// EventAutomation says that an automation has changed; it is in its workspace's log too.
	EventAutomation EventType = "automation"
	EventUndo       EventType = "undo"  // an undo is intended, or done (decision 16)
	EventToken      EventType = "token" // a token was made, or revoked; in its user's log (decision 15)
	EventErased     EventType = "erased"
)

// Event is a row of a session's log, which is also its stream (spec 10.2, decision 15): the list,
// the stream and the audit read the same rows.
type Event struct {
	SessionID ID              `json:"session_id"`
	Seq       int64           `json:"seq"` // gapless, from 1 (invariant 6)
	Type      EventType       `json:"type"`
	Time      time.Time       `json:"time"`
	Body      json.RawMessage `json:"data,omitempty"` // absent once erased
}

// Removes reports whether an event is the last one of its log: the session was removed.
func (e *Event) Removes() bool {
	var body struct {
		Reason string `json:"reason"`
	}
	return e.Type == EventErased && json.Unmarshal(e.Body, &body) == nil && body.Reason == "DELETED"
}

// Fallback says that another provider goes on with a model call, because one does not answer (spec
// 3.6): the body of an EventFallback.
type Fallback struct {
	RoundID  ID     `json:"round_id"`
	Exchange int    `json:"exchange"`
	Attempt  int    `json:"attempt"` // the one that failed
	Provider string `json:"provider_id"`
	Model    string `json:"model"`
	// Instead is the provider that did not answer, Code and Text are why.
	Instead string `json:"instead_of"`
	Code    Code   `json:"code"`
	Text    string `json:"text"`
	// Why is Text for people: each surface has what is ours of it in its own language.
	Why Sentence `json:"why,omitzero"`
}

// Levels says that a round goes on with another level 2 than before it waited (spec 6.1, decision
// 53): the body of an EventLevels.
type Levels struct {
	RoundID ID   `json:"round_id"`
	Level2  Hash `json:"level2,omitzero"` // zero where the workspace says nothing any more
}
