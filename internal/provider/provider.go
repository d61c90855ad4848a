// Package provider says what the engine asks of a model and gets back (spec 6.3). Each vendor's codec is a package below this
// one; none of them stores anything or retries by itself: an attempt has its own reservation (decision 28), so the engine
// counts attempts.
//
// A provider starts no goroutine that outlives Send.
package provider

import (
	"context"
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
)

// Role is whose turn it is.
type Role string

// The roles of a turn.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool" // results, directly after the assistant turn that made the calls
)

// Tool is a tool as it is declared to the model.
type Tool struct {
	// Name is the wire name, toolkit__operation (decision 27).
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Head is all of a request that does not grow with the thread. Two requests with equal heads share their prefix byte for byte,
// so that a vendor's prompt cache hits.
type Head struct {
	Model string
	// Level1 and Level2 are the prompt levels of spec 6.1; an empty one is left out.
	Level1, Level2 string
	Tools          []Tool
	MaxOutput      int // tokens; always set (decision 29)
	Temperature    *float64
	ParallelCalls  bool
}

// Part is one piece of a turn, in order.
type Part struct {
	Type regie.PartType
	Text string // text and thinking
	// Provider and Opaque are a thinking part's provider data; a codec replays it only if Provider is its own name.
	Provider string
	Opaque   json.RawMessage
	Call     *Call // for PartCall
}

// Call is a tool call on the wire.
type Call struct {
	ID        string // the provider's id; may be empty or repeated in a reply: the engine re-issues it (decision 8)
	Name      string // the wire name
	Arguments string // a JSON object, verbatim
}

// Result is the one result of a call.
type Result struct {
	CallID  string // Call.ID of the assistant turn before
	Content string
	IsError bool
}

// Turn is one turn of the thread. Turns are immutable once appended.
type Turn struct {
	Role    Role
	Parts   []Part   // user and assistant
	Results []Result // tool
}

// Delta is a piece of a reply as it streams in: visible text or thinking.
type Delta struct {
	Text     string
	Thinking string
}

// Reply is a whole reply, returned only after the stream's terminal marker and only with parseable calls (spec 12.6).
type Reply struct {
	Parts      []Part // in the order of the stream; adjacent text is joined
	StopReason string
	Usage      regie.Usage
	FirstByte  time.Duration // from sending to the first delta or call fragment
}

// Conversation is a thread rendered for one provider: each turn is encoded once and its bytes are kept (decision 31). It is
// used by one goroutine.
type Conversation interface {
	// Append adds turns to the thread.
	Append(turns ...Turn)
	// Request returns the SHA-256 and the size in bytes of exactly what Send would send now.
	Request() (hash regie.Hash, size int)
	// Send sends the request and reads the reply; sink gets each delta, in order, on the caller's goroutine, and may be nil.
	// Every error is an *Error, or the cause of ctx if that ended first.
	Send(ctx context.Context, sink func(Delta)) (*Reply, error)
}

// Capabilities is what a model can do.
type Capabilities struct {
	NativeTools   bool
	ContextTokens int // 0 = unknown
	// Local providers cost nothing by declaration (decision 29).
	Local bool
}

// Provider is a configured model API.
type Provider interface {
	// Name is the name in the configuration.
	Name() string
	Capabilities(model string) Capabilities
	// Open starts a conversation with no turns. It fails only on a head that cannot be sent to this provider.
	Open(head Head) (Conversation, error)
}

// Error is a failed model call: what a person reads, and whether another attempt can help.
type Error struct {
	Code regie.Code
	// Retryable says that the same request may succeed later (spec 3.6).
	Retryable bool
	// Offline says that the request was certainly not sent (decision 42).
	Offline bool
	// Status is the HTTP status, 0 if there was none.
	Status int
	// RetryAfter is the vendor's own wish, 0 if it said none.
	RetryAfter time.Duration
	// Message is one sentence with the vendor's own words where there are any; never a key.
	Message string
	// Partial is the text that had streamed in before the failure.
	Partial string
	// Usage is what the vendor reported before the failure.
	Usage regie.Usage
	Err   error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
