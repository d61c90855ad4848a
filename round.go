package regie

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Reason says why a round started (decision 2).
type Reason string

// The reasons that start a round.
const (
	ReasonUserMessage     Reason = "USER_MESSAGE"
	ReasonAutomationStart Reason = "AUTOMATION_START"
	ReasonTaskCallback    Reason = "TASK_CALLBACK"
)

// ExchangeReason says why a model call is made inside a round (spec 3, decision 2).
type ExchangeReason string

// The reasons of an exchange in addition to the round's own.
const (
	ExchangeStart       ExchangeReason = "START"
	ExchangeData        ExchangeReason = "DATA_RESPONSE"
	ExchangeFormatError ExchangeReason = "FORMAT_ERROR_CORRECTION"
	// ExchangeAnswer asks for an answer alone: the tools are withheld (spec 3.3, relaunch policy
	// answer).
	ExchangeAnswer ExchangeReason = "ANSWER"
	// ExchangeNudge follows a reply that ended nothing in an unattended run (spec 3.1).
	ExchangeNudge ExchangeReason = "NUDGE"
	// ExchangeCommand calls no model: a person's own command is its one call (spec 10.1, the chat's
	// !).
	ExchangeCommand ExchangeReason = "COMMAND"
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

// StopRequest is a stopping word on its way (decision 6): durable before it is acknowledged, obeyed
// at the next step.
type StopRequest string

// The stopping words.
const (
	StopInterrupt StopRequest = "INTERRUPT"
	StopPause     StopRequest = "PAUSE"
	StopStop      StopRequest = "STOP"
	// StopWatchdog is the watchdog's (spec 5.1). It is never stored: a process that dies over it
	// leaves a round that is simply taken up again.
	StopWatchdog StopRequest = "WATCHDOG"
)

// Stronger reports whether w replaces another word: STOP over INTERRUPT over WATCHDOG over PAUSE
// over none (decision 6).
func (w StopRequest) Stronger(than StopRequest) bool {
	rank := map[StopRequest]int{StopPause: 1, StopWatchdog: 2, StopInterrupt: 3, StopStop: 4}
	return rank[w] > rank[than]
}

// Ends reports whether the word ends a round; a pause does not.
func (w StopRequest) Ends() bool { return w != "" && w != StopPause }

// Counters are the round's loop counters (spec 3.2, decision 41).
type Counters struct {
	Total        int `json:"total"`         // model calls with a reply; only rises
	Queries      int `json:"queries"`       // consecutive exchanges of queries only
	Retries      int `json:"retries"`       // consecutive exchanges with a failed action
	FormatErrors int `json:"format_errors"` // consecutive unreadable replies
	Resumes      int `json:"resumes"`       // continuations without progress (spec 5.3)
}

// Limits bound a round (spec 3.2), under the names of decision 52. Where they are asked for, a zero
// field means the default of the session's type and the dialect; in a round a zero Tokens or
// Seconds bounds nothing.
type Limits struct {
	Total        int `json:"max_autonomous_roundtrips" yaml:"max_autonomous_roundtrips,omitempty"`
	Queries      int `json:"max_data_query_iterations" yaml:"max_data_query_iterations,omitempty"`
	Retries      int `json:"max_action_retries" yaml:"max_action_retries,omitempty"`
	FormatErrors int `json:"max_format_error_retries" yaml:"max_format_error_retries,omitempty"`
	CallsInReply int `json:"max_tool_calls" yaml:"max_tool_calls,omitempty"`
	// CallAttempts bounds the attempts of one tool call, CallSeconds the time of each of them,
	// below what the tool itself takes; ResultBytes bounds what the model sees of its result, and
	// SessionCalls the calls of the whole session. A zero one bounds nothing further.
	CallAttempts int   `json:"max_call_attempts,omitempty" yaml:"max_call_attempts,omitempty"`
	CallSeconds  int64 `json:"max_call_seconds,omitempty" yaml:"max_call_seconds,omitempty"`
	ResultBytes  int   `json:"max_result_bytes,omitempty" yaml:"max_result_bytes,omitempty"`
	SessionCalls int   `json:"max_session_calls,omitempty" yaml:"max_session_calls,omitempty"`
	// Tokens bounds what the round's model calls may consume together, input and output.
	Tokens int64 `json:"max_tokens,omitempty" yaml:"max_tokens,omitempty"`
	// Seconds bounds the running time of the round. The clock stops while it waits, is paused, or
	// has no holder.
	Seconds int64 `json:"max_seconds,omitempty" yaml:"max_seconds,omitempty"`
	// ContextTokens is the budget of a prompt (spec 3.4): above it older messages are summarised.
	// ContextMessages bounds the messages of the thread in a prompt as well (decision 39); zero
	// means no bound.
	ContextTokens   int `json:"context_tokens,omitempty" yaml:"context_tokens,omitempty"`
	ContextMessages int `json:"max_context_messages,omitempty" yaml:"max_context_messages,omitempty"`
}

// Deadline is when a round that starts at a time must have ended, or the zero time where nothing
// bounds it.
func (l Limits) Deadline(start time.Time) time.Time {
	if l.Seconds <= 0 {
		return time.Time{}
	}
	return start.Add(time.Duration(l.Seconds) * time.Second)
}

// Lower takes each limit that is wanted and lower; nothing raises one (spec 13).
func (l Limits) Lower(wanted Limits) Limits {
	return l.combine(wanted, func(limit, wanted int64) int64 {
		if wanted > 0 && (limit <= 0 || wanted < limit) {
			return wanted
		}
		return limit
	})
}

// combine picks each limit of two.
func (l Limits) combine(other Limits, pick func(limit, other int64) int64) Limits {
	limits, others := reflect.ValueOf(&l).Elem(), reflect.ValueOf(other)
	for i := range limits.NumField() {
		limit := limits.Field(i)
		limit.SetInt(pick(limit.Int(), others.Field(i).Int()))
	}
	return l
}

// Negative names a limit that is below zero, which none can be; it is empty where none is.
func (l Limits) Negative() string {
	for field, value := range reflect.ValueOf(l).Fields() {
		if value.Int() < 0 {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}

// Over takes each limit that is set over those of other, which are the defaults.
func (l Limits) Over(other Limits) Limits {
	return l.combine(other, func(limit, otherwise int64) int64 { return cmp.Or(limit, otherwise) })
}

// Round is one bounded autonomous run of the loop on a session (spec 1). It keeps its id through
// waits and crashes.
type Round struct {
	ID        ID         `json:"id"`
	SessionID ID         `json:"session_id"`
	Number    int        `json:"number"` // in its session, from 1
	Reason    Reason     `json:"reason"`
	State     RoundState `json:"state"`
	End       RoundEnd   `json:"end_reason,omitempty"`
	// EndNote is one plain sentence on why, where the reason alone does not say it: the limit, the
	// provider's own words.
	EndNote  Sentence    `json:"end_note,omitzero"`
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
	// Dialect is how the round's model proposes calls; the round keeps it (spec 3.3). Empty is
	// DialectNative.
	Dialect Dialect `json:"dialect,omitempty"`
	// Tokens is what the round's replies have consumed so far, input and output.
	Tokens int64 `json:"tokens,omitempty"`
	// Deadline is when the round's time is over if it runs on without a wait; zero: nothing bounds
	// it.
	Deadline time.Time `json:"deadline,omitzero"`
	// Pin is the fingerprint of the settings that the round was started with (decision 36): another
	// configuration, which could mean another server, does not go on with it.
	Pin Hash `json:"agent_pin,omitzero"`
	// Policy is what the surface that started the round allows without asking, as stored JSON
	// (decision 36: the policy is always the current one; this is the run's own addition to it).
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

// ExchangePurpose says what a model call is for.
type ExchangePurpose string

// The purposes.
const (
	PurposeStep    ExchangePurpose = "step"    // the next step of the round
	PurposeSummary ExchangePurpose = "summary" // a CONTEXT_SUMMARY, which is its reply (spec 3.4)
)

// Exchange is one model call with its batch of tool calls, inside a round (spec 1). It describes
// its latest attempt; earlier ones are Attempts.
type Exchange struct {
	RoundID ID             `json:"round_id"`
	Number  int            `json:"number"` // in its round, from 1
	Reason  ExchangeReason `json:"reason"`
	// Purpose is empty for PurposeStep.
	Purpose ExchangePurpose `json:"purpose,omitempty"`
	State   ExchangeState   `json:"state"`
	Attempt int             `json:"attempt"` // from 1
	// Provider and Model name the called or answering provider: the round's own, or a fallback
	// (spec 3.6).
	Provider string `json:"provider_id,omitempty"`
	Model    string `json:"model,omitempty"`
	// What was sent (decision 14): the thread from FirstSeq to LastSeq and the hash of the exact
	// request bytes.
	FirstSeq int64 `json:"first_seq,omitempty"`
	LastSeq  int64 `json:"last_seq,omitempty"`
	Request  Hash  `json:"request,omitzero"`
	// Head names the blob with all of the request that is not its thread, where that is not the one
	// of the exchange before: levels, tools, bounds.
	Head    Hash  `json:"head,omitzero"`
	ReplyID ID    `json:"reply_id,omitzero"`
	Usage   Usage `json:"usage"`
	Money   Money `json:"money"`
	// StopReason is the provider's own word.
	StopReason  string    `json:"stop_reason,omitempty"`
	Error       string    `json:"error,omitempty"`
	OpenedAt    time.Time `json:"opened_at"`
	FirstByteUS int64     `json:"first_byte_us"` // microseconds from sending to the first delta
	ModelUS     int64     `json:"model_us"`      // microseconds from sending to the end of the reply
	RepliedAt   time.Time `json:"replied_at,omitzero"`
}

// Attempt is an earlier, failed try of an exchange's model call (decision 28): kept for the audit
// and for the money.
type Attempt struct {
	RoundID  ID  `json:"round_id"`
	Exchange int `json:"exchange"`
	Number   int `json:"number"`
	// Provider and Model are who was asked.
	Provider string `json:"provider_id,omitempty"`
	Model    string `json:"model,omitempty"`
	// Purpose is empty for PurposeStep: a step may have become a summary since.
	Purpose ExchangePurpose `json:"purpose,omitempty"`
	// What was sent, as in Exchange, with its own head; empty where nothing was sent or its sender
	// died before storing it.
	FirstSeq int64 `json:"first_seq,omitempty"`
	LastSeq  int64 `json:"last_seq,omitempty"`
	Request  Hash  `json:"request,omitzero"`
	Head     Hash  `json:"head,omitzero"`
	Code     Code  `json:"code"`
	// HTTP status, or that of an error in a stream; reported when it happens, not stored; 0 = none
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error"`
	Partial  string    `json:"partial,omitempty"` // text that had arrived
	Usage    Usage     `json:"usage"`
	Money    Money     `json:"money"`
	OpenedAt time.Time `json:"opened_at"`
	EndedAt  time.Time `json:"ended_at"`
	ModelUS  int64     `json:"model_us"`
}
