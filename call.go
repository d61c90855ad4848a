package regie

import (
	"cmp"
	"encoding/json"
	"time"
)

// CallKind tells a query from an action (spec 1).
type CallKind string

// The call kinds.
const (
	KindQuery  CallKind = "query"  // only reads
	KindAction CallKind = "action" // changes something
)

// EffectClass says how recovery may treat a call with an unknown outcome (spec 12.2, decision 22).
type EffectClass string

// The effect classes.
const (
	ClassRead       EffectClass = "read"       // repeat freely
	ClassKeyed      EffectClass = "keyed"      // repeat with the same key: the call id
	ClassVerifiable EffectClass = "verifiable" // a probe tells whether it happened
	ClassOnce       EffectClass = "once"       // never repeat: UNKNOWN, ask
	ClassResumable  EffectClass = "resumable"  // a sub-agent: the same child goes on
)

// CallState is the state of a tool call; the list is closed (decision 3).
type CallState string

// The call states.
const (
	CallProposed         CallState = "PROPOSED"
	CallAwaitingApproval CallState = "AWAITING_APPROVAL"
	CallApproved         CallState = "APPROVED"
	CallStarted          CallState = "STARTED"
	CallSucceeded        CallState = "SUCCEEDED"
	CallFailed           CallState = "FAILED"
	CallUnknown          CallState = "UNKNOWN"
	CallNotRun           CallState = "NOT_RUN"
)

// Settled reports whether the call has its one result (invariant 4).
func (s CallState) Settled() bool {
	return s == CallSucceeded || s == CallFailed || s == CallUnknown || s == CallNotRun
}

// NotRunCode says why a call was not run; it is set exactly in state NOT_RUN (decision 3).
type NotRunCode string

// The codes of NOT_RUN.
const (
	NotRunDenied           NotRunCode = "DENIED"
	NotRunExpired          NotRunCode = "EXPIRED"
	NotRunDuplicateInBatch NotRunCode = "DUPLICATE_IN_BATCH"
	NotRunAntiLoop         NotRunCode = "ANTI_LOOP"
	NotRunCached           NotRunCode = "CACHED"
	NotRunOverLimit        NotRunCode = "OVER_LIMIT"
	NotRunInterrupted      NotRunCode = "INTERRUPTED"
	NotRunSuperseded       NotRunCode = "SUPERSEDED"
	NotRunOutOfScope       NotRunCode = "OUT_OF_SCOPE"
	NotRunInvalid          NotRunCode = "INVALID"
	NotRunRepeatedFailure  NotRunCode = "REPEATED_FAILURE"
)

// CommandStatus is the view of a call's state that results have (spec 4.1, decision 52).
type CommandStatus string

// The statuses of a CommandResult.
const (
	StatusSuccess     CommandStatus = "SUCCESS"
	StatusFailed      CommandStatus = "FAILED"
	StatusCancelled   CommandStatus = "CANCELLED" // a person's word, or their silence
	StatusCached      CommandStatus = "CACHED"
	StatusNotExecuted CommandStatus = "NOT_EXECUTED"
	StatusUnknown     CommandStatus = "UNKNOWN"
)

// Status returns the call's state as a CommandResult has it (decision 52). A call that is not
// settled is not executed.
func (c *Call) Status() CommandStatus {
	settled := map[CallState]CommandStatus{
		CallSucceeded: StatusSuccess, CallFailed: StatusFailed, CallUnknown: StatusUnknown,
	}
	notRun := map[NotRunCode]CommandStatus{
		NotRunDenied: StatusCancelled, NotRunExpired: StatusCancelled, NotRunInterrupted: StatusCancelled,
		NotRunSuperseded: StatusCancelled, NotRunCached: StatusCached,
	}
	return cmp.Or(settled[c.State], notRun[c.NotRun], StatusNotExecuted)
}

// Origin says where a call comes from (spec 4.1, decision 46).
type Origin string

// The origins.
const (
	OriginModel  Origin = "MODEL"
	OriginUser   Origin = "USER"   // an enrichment
	OriginAPI    Origin = "API"    // given through a surface and not by a model: a person's own command
	OriginClient Origin = "CLIENT" // a tool of an OpenAI-compatible client (decision 35)
)

// CallError is a failed call's error, for the model to repair the call with (spec 3.3).
type CallError struct {
	Code      Code   `json:"code"`
	Message   string `json:"message"`
	Param     string `json:"param,omitempty"`
	Retryable bool   `json:"retryable"`
	Hint      string `json:"hint,omitempty"`
}

// Call is one invocation of a tool (spec 4.3). Its row owns arguments and result (decision 7).
type Call struct {
	ID        ID     `json:"id"` // primary key and idempotency key for ever (decision 8)
	SessionID ID     `json:"session_id"`
	RoundID   ID     `json:"round_id"`
	Exchange  int    `json:"exchange"`
	Ordinal   int    `json:"ordinal"` // place in its batch, from 0
	MessageID ID     `json:"message_id"`
	Origin    Origin `json:"origin"`
	// Tool is the canonical name toolkit.operation (decision 27), or what the model wrote if there
	// is no such tool.
	Tool           string      `json:"tool"`
	ProviderCallID string      `json:"provider_call_id,omitempty"` // verbatim for the wire
	Kind           CallKind    `json:"kind"`
	Class          EffectClass `json:"class"`
	// Signature is the hash of tool and canonical arguments (decision 8), Definition that of the
	// tool's definition (decision 20).
	Signature  Hash `json:"signature"`
	Definition Hash `json:"definition,omitzero"`
	// Arguments is what the model wrote, verbatim; Executed what ran instead, where a person edited
	// it.
	Arguments string          `json:"arguments"`
	Executed  json.RawMessage `json:"executed,omitempty"`
	// Ask says that the model itself asked for a person's check (decision 40).
	Ask    bool       `json:"ask,omitempty"`
	State  CallState  `json:"state"`
	NotRun NotRunCode `json:"code,omitempty"`
	// Intent is the evidence stored with STARTED that a probe later compares with (decisions 4 and
	// 20).
	Intent json.RawMessage `json:"intent,omitempty"`
	// Changed is what it made of files, where that is known only after it has run (decision 16):
	// the tool's evidence, stored with the result.
	Changed json.RawMessage `json:"changed,omitempty"`
	// Result is what the model reads: text or JSON. Error is set instead of it.
	Result string     `json:"result,omitempty"`
	Error  *CallError `json:"error,omitempty"`
	// ResultBlob holds the whole result where Result is a shortened one (spec 3.2).
	ResultBlob Hash `json:"result_blob,omitzero"`
	// ResultLost is the size in bytes of a whole result that is not kept: it could not be stored,
	// or was erased since. Zero: it is.
	ResultLost  int64 `json:"result_lost,omitempty"`
	DuplicateOf ID    `json:"duplicate_of,omitzero"`
	Attempts    int   `json:"attempts"`
	Recovered   bool  `json:"recovered,omitempty"` // settled after a crash, by a probe or by running again
	DurationUS  int64 `json:"duration_us"`         // microseconds
	// Tainted says that its result holds what others wrote, ReadPrivate that it may hold a secret
	// (decision 34). Its session keeps both for ever; they are not read back with a call.
	Tainted, ReadPrivate bool `json:"-"`

	// CopyOf is the call that was made, where this one is its copy in a fork: a copy tells what
	// happened and runs nothing (decision 17).
	CopyOf ID `json:"copy_of,omitzero"`

	// Resolution is a person's finding about a call with an unknown outcome (decision 5).
	Resolution *Resolution `json:"resolution,omitempty"`

	ProposedAt time.Time `json:"proposed_at"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	SettledAt  time.Time `json:"settled_at,omitzero"`
}

// ResolvedAs is what a person found out about an UNKNOWN call (decision 5).
type ResolvedAs string

// The findings.
const (
	ResolvedHappened     ResolvedAs = "happened"
	ResolvedDidNotHappen ResolvedAs = "did_not_happen"
)

// Resolution settles an UNKNOWN call by evidence (invariant 5).
type Resolution struct {
	As   ResolvedAs `json:"as"`
	Note string     `json:"note,omitempty"`
	By   string     `json:"by"`
	At   time.Time  `json:"at"`
}
