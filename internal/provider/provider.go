// Package provider defines the engine's interface to a model (spec 6.3). Each vendor's codec is a
// package below this one. A codec stores nothing and does not retry: each attempt has its own
// reservation (decision 28), so the engine counts attempts.
//
// A provider starts no goroutine that outlives Send.
package provider

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/regie-run/regie"
)

// Role is the side that a turn belongs to.
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
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// Head is all of a request that does not grow with the thread. Two requests with equal heads share
// their prefix byte for byte, so that a vendor's prompt cache hits.
type Head struct {
	Model string `json:"model"`
	// Dialect is the form in which the model replies. Levels and tools already tell it to the
	// model; this field is for records of the request. Empty is native.
	Dialect regie.Dialect `json:"dialect"`
	// Level1 and Level2 are the prompt levels of spec 6.1; an empty one is left out.
	Level1 string `json:"level1,omitempty"`
	Level2 string `json:"level2,omitempty"`
	Tools  []Tool `json:"tools,omitempty"`
	// Encoded caches a codec's encoding of Tools for the next head with the same tools; nil caches
	// nothing.
	Encoded   *Encoded `json:"-"`
	MaxOutput int      `json:"max_output"` // tokens; always set (decision 29)
	// Temperature and TopP are the sampling parameters; nil leaves one to the vendor. Where a model
	// takes no temperature, or not both, TopP is left out too.
	Temperature   *float64 `json:"temperature,omitempty"`
	TopP          *float64 `json:"top_p,omitempty"`
	ParallelCalls bool     `json:"parallel_calls"`
	// ReasoningEffort sets how hard the model thinks: none, minimal, low, medium, high, xhigh or
	// max. A codec takes the nearest that its vendor has; empty leaves it to the vendor.
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	// ServiceTier is the vendor's name for how a request is served and priced; empty leaves it to
	// the account.
	ServiceTier string `json:"service_tier,omitempty"`
}

// Encoded is what codecs have made of one list of tools, each once. Its method may be called from
// many goroutines.
type Encoded struct {
	mu      sync.Mutex
	byCodec map[string][]byte
}

// Get returns the result of the first encode for a codec; the caller must not write to it. A nil
// Encoded calls encode each time.
func (e *Encoded) Get(codec string, encode func() []byte) []byte {
	if e == nil {
		return encode()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byCodec[codec] == nil {
		if e.byCodec == nil {
			e.byCodec = map[string][]byte{}
		}
		e.byCodec[codec] = encode()
	}
	return e.byCodec[codec]
}

// Part is one piece of a turn, in order.
type Part struct {
	Type regie.PartType `json:"type"`
	Text string         `json:"text,omitempty"` // text and thinking
	// Opening marks Regie's text before a person's: the start time of the round and the speaker
	// (decision 14). It differs in each run. For a vendor it is text.
	Opening bool `json:"opening,omitempty"`
	// Provider and Opaque hold what a vendor wants back with the part, mostly with thinking. A
	// codec replays it only under its own name.
	Provider string          `json:"provider,omitempty"`
	Opaque   json.RawMessage `json:"opaque,omitempty"`
	Call     *Call           `json:"call,omitempty"`  // for PartCall
	Media    *Media          `json:"media,omitempty"` // for PartMedia
}

// Media is an image of a person's message. Its JSON form, which recordings and keys hold, names the
// content by its hash.
type Media struct {
	Type string     `json:"type"` // such as image/png
	Blob regie.Hash `json:"blob"` // of Data
	Data []byte     `json:"-"`
}

// ImageWeight is what an image counts in the size of a request, in bytes: 1,600 tokens. Vendors
// count tokens by an image's pixels, so its length in base64 says nothing.
const ImageWeight = 6400

// IsImage reports whether a media type is one of those that every vendor with images takes.
func IsImage(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	default:
		return false
	}
}

// Call is a tool call on the wire.
type Call struct {
	// the provider's id; may be empty or repeated in a reply: the engine re-issues it (decision 8)
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`      // the wire name
	Arguments string `json:"arguments"` // a JSON object, verbatim
}

// Result is the one result of a call.
type Result struct {
	CallID  string `json:"call"` // Call.ID of the assistant turn before
	Content string `json:"content"`
	IsError bool   `json:"is_error,omitempty"`
}

// Turn is one turn of the thread. Turns are immutable once appended.
type Turn struct {
	Role    Role     `json:"role"`
	Parts   []Part   `json:"parts,omitempty"`   // user and assistant
	Results []Result `json:"results,omitempty"` // tool
}

// MaxSilence is the longest time for which a codec waits for a server that sends nothing.
const MaxSilence = 10 * time.Minute

// Delta is a piece of a reply as it streams in: visible text or thinking. One without either says
// that the model writes a call.
type Delta struct {
	Text     string `json:"text,omitempty"`
	Thinking string `json:"thinking,omitempty"`
}

// Reply is a whole reply, returned only after the stream's terminal marker and only with parseable
// calls (spec 12.6).
type Reply struct {
	Parts      []Part `json:"parts"` // in the order of the stream; adjacent text is joined
	StopReason string `json:"stop_reason,omitempty"`
	// Cut says that the reply is not whole: it reached the limit of its length, or its server held
	// the rest back. StopReason says which.
	Cut bool `json:"cut,omitempty"`
	// HeldBack says of a cut reply that a filter of its server held the rest back.
	HeldBack bool        `json:"held_back,omitempty"`
	Usage    regie.Usage `json:"usage"`
	// Sources are the pages that a searching vendor answered from, in the order of their numbers in
	// the text, from 1.
	Sources []Source `json:"sources,omitempty"`
	// Cached is the time of the model's reply if it came from the response cache (spec 6.4); zero
	// if the model was called.
	Cached time.Time `json:"cached,omitzero"`
	// FirstByte is from sending to the first delta or call fragment. It is another one each time,
	// so no recording holds it.
	FirstByte time.Duration `json:"-"`
}

// Source is a page that an answer is from.
type Source struct {
	Title string `json:"title,omitempty"` // may be empty
	URL   string `json:"url"`             // http or https
}

// Tail is the end of a request, behind the thread. It is never part of the thread: the thread keeps
// its bytes, and so a vendor's prompt cache.
type Tail struct {
	// Withheld forbids calls and leaves the declarations as they are: a thread that holds calls
	// needs them (spec 3.3).
	Withheld bool `json:"withheld,omitempty"`
	// Guidance is the last text on the user's side; empty adds none (spec 6.2).
	Guidance string `json:"guidance,omitempty"`
	// Temperature goes before that of the head, where the model takes one; nil changes nothing.
	Temperature *float64 `json:"temperature,omitempty"`
}

// Conversation is a thread rendered for one provider: each turn is encoded once and its bytes are
// kept (decision 31). It is used by one goroutine.
type Conversation interface {
	// Append adds turns to the thread.
	Append(turns ...Turn)
	// EndWith has the requests from now on end with tail.
	EndWith(tail Tail)
	// Request returns the SHA-256 of exactly what Send would send now, and its size in bytes, in
	// which an image counts as ImageWeight.
	Request() (hash regie.Hash, size int)
	// Send sends the request and reads the reply; sink gets each delta, in order, on the caller's
	// goroutine, and may be nil. Every error is an *Error, or the cause of ctx if that ended first,
	// which a *Cut may wrap.
	Send(ctx context.Context, sink func(Delta)) (*Reply, error)
}

// Shower is a Conversation that can show the request that it would send (decision 14).
type Shower interface {
	// Body returns a copy of exactly the bytes that Request describes.
	Body() []byte
}

// Marks are the positions of cache marks in a request: the vendor may cache everything before them.
type Marks struct {
	Level1, Level2 bool
	Turns          []int // indexes, from 0 in order of appending, of the turns that have a mark on their last block
}

// Marker is a Conversation that marks its requests for the vendor's prompt cache.
type Marker interface {
	// Marks returns those of the request that Send would send now.
	Marks() Marks
}

// Capabilities lists the abilities of a model.
type Capabilities struct {
	NativeTools bool
	// NativeOnly says that the model takes no dialect: it supports the API's own calls only.
	NativeOnly bool
	Thinking   bool // it thinks before it answers, or can be asked to
	Embeds     bool // it turns texts into vectors, as far as its server says so
	Images     bool // it takes images in a person's message
	// Temperature says with which efforts a request carries the temperature.
	Temperature   Tempering
	ContextTokens int // of prompt and reply together; 0 = unknown
	MaxOutput     int // tokens of one reply; 0 = unknown
	// the least bound of a reply that the server takes, in tokens: a smaller one is raised to it; 0
	// = any
	LeastOutput int
	// Free models cost nothing by declaration, such as those of self-hosted servers (decision 29).
	// An address on this machine proves nothing: it may be a tunnel or gateway to a paid vendor.
	Free bool
}

// WithImages returns the capabilities with the configured setting for images, if there is one.
func (c Capabilities) WithImages(configured *bool) Capabilities {
	if configured != nil {
		c.Images = *configured
	}
	return c
}

// Tempering says when a request to a model carries Head.Temperature: at some vendors a thinking
// model refuses it.
type Tempering int

// The ways of a model with the temperature.
const (
	TemperedAlways Tempering = iota
	TemperedPlain            // unless the request asks for an effort other than none
	TemperedIfNone           // only if the effort is none
	TemperedNever
)

// Carried reports whether a request with an effort carries the temperature.
func (t Tempering) Carried(effort string) bool {
	switch t {
	case TemperedAlways:
		return true
	case TemperedPlain:
		return effort == "" || effort == "none"
	case TemperedIfNone:
		return effort == "none"
	default:
		return false
	}
}

// Provider is a configured model API.
type Provider interface {
	// Name is the name in the configuration.
	Name() string
	Capabilities(model string) Capabilities
	// Open starts a conversation with no turns. It fails only on a head that cannot be sent to this
	// provider.
	Open(head Head) (Conversation, error)
}

// Model is a model that a server has.
type Model struct {
	Name string // as a request names it
	Capabilities
}

// Lister is a provider that can list its server's models. The list also shows, at no cost, whether
// the server is reachable and accepts the key.
type Lister interface {
	// Models lists the server's models. Every error is an *Error, or the cause of ctx if that ended
	// first.
	Models(ctx context.Context) ([]Model, error)
}

// Error is a failed model call, with a message for people and whether a retry can help.
type Error struct {
	Code regie.Code `json:"code"`
	// Retryable says that the same request may succeed later (spec 3.6).
	Retryable bool `json:"retryable,omitempty"`
	// Offline says that the request was certainly not sent (decision 42).
	Offline bool `json:"offline,omitempty"`
	// Misplaced says that the failure concerns the server, not the request: no such model or path,
	// or no server of this API. Another provider may answer the same request (spec 3.6).
	Misplaced bool `json:"-"`
	// Status is the HTTP status, or 503 if a stream reports an overloaded server; 0 if there was
	// none.
	Status int `json:"status,omitempty"`
	// RetryAfter is the wait that the vendor asks for, 0 for none.
	RetryAfter time.Duration `json:"-"`
	// Message is one sentence with the vendor's own words if there are any; never a key.
	Message string `json:"message"`
	// Said is Regie's translatable sentence for it, with the vendor's words unchanged; zero if
	// there is only Message.
	Said regie.Sentence `json:"-"`
	// Partial is the text that had streamed in before the failure.
	Partial string `json:"partial,omitempty"`
	// Received is the size in bytes of all that had streamed in: text, thinking and calls.
	Received int `json:"-"`
	// Usage is the usage that the vendor reported before the failure.
	Usage regie.Usage `json:"usage"`
	Err   error       `json:"-"`
}

// Unbilled reports whether the vendor charges nothing for the call: the request was not sent, or
// the server refused it before any of a reply came.
func (e *Error) Unbilled() bool {
	if e.Received > 0 || e.Partial != "" || e.Usage != (regie.Usage{}) {
		return false
	}
	switch e.Code {
	case regie.CodeTimeout, regie.CodeProviderBroken, regie.CodeTruncatedStream,
		regie.CodeEmptyReply, regie.CodeBadReply:
		return false // the model may have been at work
	default:
		return true
	}
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Tell sets the error's sentence, and its English text as the message.
func (e *Error) Tell(said regie.Sentence) *Error {
	e.Said, e.Message = said, said.String()
	return e
}

// Sentence is the message for people: in their language as far as it is Regie's own.
func (e *Error) Sentence() regie.Sentence {
	if e.Said.IsZero() {
		return regie.Verbatim(e.Message)
	}
	return e.Said
}

// Advise appends a remedy to the message.
func (e *Error) Advise(words string) {
	_ = e.Tell(regie.SayOf("%s: %s", e.Sentence(), regie.Verbatim(words)))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Cut is the error of a model call that its context ended. It carries the cost to book for the
// call.
type Cut struct {
	// Unsent says that no byte of the request can have left this machine.
	Unsent bool
	// Usage is the vendor's count so far, Received the size of the reply so far in bytes.
	Usage    regie.Usage
	Received int
	// Err is the cause of the context.
	Err error
}

// Error implements error.
func (c *Cut) Error() string { return c.Err.Error() }

// Unwrap returns the cause.
func (c *Cut) Unwrap() error { return c.Err }

// CodeOf returns the code of the first Error in err's chain, else regie.CodeOf.
func CodeOf(err error) regie.Code {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Code
	}
	return regie.CodeOf(err)
}
