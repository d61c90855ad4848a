package regie

import (
	"encoding/json"
	"time"
)

// Reason says why a round started (decision 2).
type Reason string

// The reasons that start a round.
const (
	ReasonUserMessage     Reason = "USER_MESSAGE"
	ReasonManualTrigger   Reason = "MANUAL_TRIGGER"
	ReasonAutomationStart Reason = "AUTOMATION_START"
	ReasonTaskCallback    Reason = "TASK_CALLBACK"
)

// ExchangeReason says why a model call is made inside a round (spec 3, decision 2).
type ExchangeReason string

// The reasons of an exchange beside the round's own.
const (
	ExchangeStart       ExchangeReason = "START"
	ExchangeData        ExchangeReason = "DATA_RESPONSE"
	ExchangeFormatError ExchangeReason = "FORMAT_ERROR_CORRECTION"
	ExchangeWake        ExchangeReason = "WAKE"
)

// RoundState is the state of a round; the list is closed (decision 3).
type RoundState string

// The round states.
const (
	RoundRunning RoundState = "RUNNING"
	RoundWaiting RoundState = "WAITING"
	RoundEnded   RoundState = "ENDED"
)

// RoundEnd says why a round ended; it is set exactly in state ENDED (decision 3).
type RoundEnd string

// The end reasons of a round.
const (
	EndAnswered      RoundEnd = "ANSWERED"
	EndCompleted     RoundEnd = "COMPLETED"
	EndLimit         RoundEnd = "LIMIT"
	EndEarlyStop     RoundEnd = "EARLY_STOP"
	EndDenied        RoundEnd = "DENIED"
	EndInterrupted   RoundEnd = "INTERRUPTED"
	EndStopped       RoundEnd = "STOPPED"
	EndProviderError RoundEnd = "PROVIDER_ERROR"
	EndNoProgress    RoundEnd = "NO_PROGRESS"
	EndWatchdog      RoundEnd = "WATCHDOG"
	EndClientTools   RoundEnd = "CLIENT_TOOLS"
)

// Phase is the place of a running round in the loop (spec 3.1): what the next step is.
type Phase string

// The phases.
const (
	PhaseModel Phase = "MODEL" // call the model for the current exchange
	PhaseCalls Phase = "CALLS" // settle the calls of the current exchange
	PhaseEnd   Phase = "END"   // nothing: the round has ended
)

// StopRequest is a stopping word on its way (decision 6): durable before it is acknowledged, obeyed at the next step.
type StopRequest string

// The stopping words.
const (
	StopInterrupt StopRequest = "INTERRUPT"
	StopPause     StopRequest = "PAUSE"
	StopStop      StopRequest = "STOP"
)

// Stronger reports whether w replaces another word: STOP over INTERRUPT over PAUSE over none (decision 6).
func (w StopRequest) Stronger(than StopRequest) bool {
	rank := map[StopRequest]int{StopPause: 1, StopInterrupt: 2, StopStop: 3}
	return rank[w] > rank[than]
}

// Counters are the round's loop counters (spec 3.2, decision 41).
type Counters struct {
	Total        int `json:"total"`         // model calls with a reply; only rises
	Queries      int `json:"queries"`       // consecutive exchanges of queries only
	Retries      int `json:"retries"`       // consecutive exchanges with a failed action
	FormatErrors int `json:"format_errors"` // consecutive unreadable replies
	Resumes      int `json:"resumes"`       // continuations without progress (spec 5.3)
}

// Limits bound a round (spec 3.2). A zero field means the default of the session's type.
type Limits struct {
	Total        int `json:"max_autonomous_roundtrips"`
	Queries      int `json:"max_data_query_iterations"`
	Retries      int `json:"max_action_retries"`
	FormatErrors int `json:"max_format_error_retries"`
	CallsInReply int `json:"max_tool_calls"`
}

// Round is one bounded autonomous run of the loop on a session (spec 1). It keeps its id through waits and crashes.
type Round struct {
	ID        ID         `json:"id"`
	SessionID ID         `json:"session_id"`
	Number    int        `json:"number"` // in its session, from 1
	Reason    Reason     `json:"reason"`
	State     RoundState `json:"state"`
	End       RoundEnd   `json:"end_reason,omitempty"`
	// EndNote is one plain sentence on why, where the reason alone does not say it: the limit, the provider's own words.
	EndNote  string      `json:"end_note,omitempty"`
	Phase    Phase       `json:"phase"`
	Exchange int         `json:"exchange"` // the current exchange, from 1
	Counters Counters    `json:"counters"`
	Limits   Limits      `json:"limits"`
	Stop     StopRequest `json:"stop_request,omitempty"`
	Epoch    int64       `json:"-"`
	TraceID  string      `json:"trace_id"`
	Agent    string      `json:"agent"`
	Provider string      `json:"provider_id"`
	Model    string      `json:"model"`
	// Pin is the fingerprint of the settings that the round was started with (decision 36): another configuration, which could
	// mean another server, does not go on with it.
	Pin Hash `json:"agent_pin,omitzero"`
	// Policy is what the surface that started the round allows without asking, as stored JSON (decision 36: the policy is
	// always the current one; this is the run's own addition to it).
	Policy json.RawMessage `json:"policy,omitempty"`
	// Level1 and Level2 name the frozen prompt levels (decision 14).
	Level1    Hash      `json:"level1,omitzero"`
	Level2    Hash      `json:"level2,omitzero"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

// ExchangeState is the state of an exchange.
type ExchangeState string

// The exchange states.
const (
	ExchangeOpen    ExchangeState = "OPEN"    // the model call is intended; it may have been sent
	ExchangeReplied ExchangeState = "REPLIED" // the reply and its calls are stored; the calls say how far they are
	ExchangeFailed  ExchangeState = "FAILED"  // no reply came
)

// Exchange is one model call with its batch of tool calls, inside a round (spec 1). It describes its latest attempt; earlier
// ones are Attempts.
type Exchange struct {
	RoundID ID             `json:"round_id"`
	Number  int            `json:"number"` // in its round, from 1
	Reason  ExchangeReason `json:"reason"`
	State   ExchangeState  `json:"state"`
	Attempt int            `json:"attempt"` // from 1
	// What was sent (decision 14): the thread from FirstSeq to LastSeq and the hash of the exact request bytes.
	FirstSeq int64 `json:"first_seq,omitempty"`
	LastSeq  int64 `json:"last_seq,omitempty"`
	Request  Hash  `json:"request,omitzero"`
	ReplyID  ID    `json:"reply_id,omitzero"`
	Usage    Usage `json:"usage"`
	Money    Money `json:"money"`
	// StopReason is the provider's own word.
	StopReason  string    `json:"stop_reason,omitempty"`
	Error       string    `json:"error,omitempty"`
	OpenedAt    time.Time `json:"opened_at"`
	FirstByteUS int64     `json:"first_byte_us"` // microseconds from sending to the first delta
	ModelUS     int64     `json:"model_us"`      // microseconds from sending to the end of the reply
	RepliedAt   time.Time `json:"replied_at,omitzero"`
}

// Attempt is an earlier, failed try of an exchange's model call (decision 28): kept for the audit and for the money.
type Attempt struct {
	RoundID  ID        `json:"round_id"`
	Exchange int       `json:"exchange"`
	Number   int       `json:"number"`
	Code     Code      `json:"code"`
	Error    string    `json:"error"`
	Partial  string    `json:"partial,omitempty"` // text that had arrived
	Usage    Usage     `json:"usage"`
	Money    Money     `json:"money"`
	EndedAt  time.Time `json:"ended_at"`
	ModelUS  int64     `json:"model_us"`
}

// Money is what a model call reserves and costs, in millionths of a US dollar (decision 29).
type Money struct {
	Reserved int64 `json:"reserved_microusd"`
	// Cost is the booked price; it means nothing unless Known: an unknown price is shown as unknown, never as 0 (spec 6.3).
	Cost    int64 `json:"cost_microusd"`
	Overrun int64 `json:"overrun_microusd,omitempty"` // what the usage cost above the reservation
	Known   bool  `json:"cost_known"`
}
