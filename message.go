package regie

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Sender is who a message comes from (spec 2.2).
type Sender string

// The senders.
const (
	SenderUser   Sender = "USER"
	SenderAI     Sender = "AI"
	SenderSystem Sender = "SYSTEM"
)

// Variant says which one of the content fields of a message is filled (spec 2.2).
type Variant string

// The variants.
const (
	VariantRich   Variant = "rich"   // an enriched user message
	VariantText   Variant = "text"   // typed text, the answer to a module, post text
	VariantAI     Variant = "ai"     // a model reply
	VariantSystem Variant = "system" // results and notices of the system
)

// SystemType is the type of a system message (spec 2.2, decisions 13 and 16).
type SystemType string

// The system message types.
const (
	SystemDataAdded              SystemType = "DATA_ADDED"
	SystemActionsExecuted        SystemType = "ACTIONS_EXECUTED"
	SystemLimitReached           SystemType = "LIMIT_REACHED"
	SystemFormatError            SystemType = "FORMAT_ERROR"
	SystemCompleteRefused        SystemType = "COMPLETE_REFUSED"
	SystemValidationCancelled    SystemType = "VALIDATION_CANCELLED"
	SystemCommunicationCancelled SystemType = "COMMUNICATION_CANCELLED"
	SystemTaskResult             SystemType = "TASK_RESULT"
	SystemContextSummary         SystemType = "CONTEXT_SUMMARY"
	SystemUndone                 SystemType = "UNDONE"
	SystemNetworkError           SystemType = "NETWORK_ERROR"   // audit only, never in a prompt
	SystemSessionTimeout         SystemType = "SESSION_TIMEOUT" // audit only, never in a prompt
)

// InPrompt reports whether messages of this type are part of the thread that a model reads (spec
// 2.2).
func (t SystemType) InPrompt() bool {
	return t != SystemNetworkError && t != SystemSessionTimeout
}

// AuthorKind says what wrote a message (decision 45).
type AuthorKind string

// The author kinds.
const (
	AuthorUser      AuthorKind = "user"
	AuthorAgent     AuthorKind = "agent"
	AuthorComponent AuthorKind = "component"
)

// Author is who wrote a message: a user's id, an agent's name with its model, a component's name, a
// task's id (decision 45).
type Author struct {
	Kind  AuthorKind `json:"kind"`
	ID    string     `json:"id"`
	Model string     `json:"model,omitempty"`
	// Provider is set where a fallback has answered instead of the run's own provider (spec 3.6).
	Provider string `json:"provider_id,omitempty"`
	// TokenID is the token with which a user's message came, zero where none did.
	TokenID ID `json:"token_id,omitzero"`
}

// PartType is the type of a part of a canonical turn (decision 7).
type PartType string

// The part types.
const (
	PartText     PartType = "text"
	PartThinking PartType = "thinking"
	PartCall     PartType = "call"
	PartMedia    PartType = "media" // of a person's message, only on the way to a model
)

// Part is one piece of the canonical turn, in the model's order (decision 7).
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitempty"`
	// Provider and Opaque carry what a provider wants back with a part (a signature, encrypted
	// reasoning), replayed only to the same provider.
	Provider string          `json:"provider,omitempty"`
	Opaque   json.RawMessage `json:"opaque,omitempty"`
	// CallID points to the call row that owns arguments and result. Tool and Arguments, the hash of
	// what the model wrote, are repeated here so that the log says what was proposed, and binds it
	// (decision 15).
	CallID    ID     `json:"call_id,omitzero"`
	Tool      string `json:"tool,omitempty"`
	Arguments Hash   `json:"arguments,omitzero"`
	// ProviderCallID is the id that the model gave the call, where the row has another one because
	// it repeats (decision 8).
	ProviderCallID string `json:"provider_call_id,omitempty"`
}

// Attachment is a blob with a name and a type inside a message (decision 18).
type Attachment struct {
	Blob      Hash   `json:"blob"`
	MediaType string `json:"media_type"`
	Name      string `json:"name"`
	Size      int64  `json:"size"` // bytes
}

// The bounds of images, so that every vendor takes them (decision 18).
const (
	MaxImageBytes  = 3_932_160  // of one; they grow by a third on the wire
	MaxImagesBytes = 15 << 20   // of all of a session
	MaxImageSide   = 8000       // pixels
	MaxImagePixels = 25_000_000 // of one
)

// Segment is one piece of an enriched user message: text, an attachment, or an enrichment block
// (spec 2.2, 7.3).
type Segment struct {
	Text       string           `json:"text,omitempty"`
	Attachment *Attachment      `json:"attachment,omitempty"`
	Enrichment *EnrichmentBlock `json:"enrichment,omitempty"`
}

// AIReply is a model's reply: the canonical turn and, in the JSON dialect, the fields that have no
// native form (decision 7).
type AIReply struct {
	Parts []Part `json:"parts"`
	// StopReason is the provider's own word.
	StopReason string `json:"stop_reason,omitempty"`
	// Verbatim is what the model wrote, kept where the parts do not say it all: text around the
	// object of a JSON reply, a draft that results in plain language have replaced.
	Verbatim string `json:"verbatim,omitempty"`
	// PostText is shown to the person once all actions of the reply have succeeded; KeepControl
	// continues the round after that (spec 3.1). Only the JSON dialect has them (decision 40).
	PostText    string `json:"post_text,omitempty"`
	KeepControl bool   `json:"keep_control,omitempty"`
	// Cached is when the model gave the answer, where it came from the response cache and no model
	// was asked (spec 6.4).
	Cached time.Time `json:"cached,omitzero"`
}

// CommandMark begins the text of a person's own command (spec 10.1): !git status.
const CommandMark = "!"

// Marks in the results of the tool that runs commands, for surfaces: the beginning of a report,
// that of a stopped command, and the line above the end of the output.
const (
	CommandExit    = "exit code: "
	CommandStopped = "it was stopped: "
	CommandPutOut  = "The end of its output:\n"
)

// InvalidFormat begins the text of a reply that could not be read in its dialect, before what the
// model wrote (spec 2.2): the person still sees it.
const InvalidFormat = "ai_response_invalid_format"

// Dialect is how a model proposes calls and reads results (spec 3.3).
type Dialect string

// The dialects, as rounds store them.
const (
	DialectNative Dialect = "native" // tools are declared to the API
	DialectJSON   Dialect = "json"   // the reply is one JSON object
)

// Text returns the reply's visible text: its text parts, joined.
func (r *AIReply) Text() string {
	var text strings.Builder
	for _, part := range r.Parts {
		if part.Type == PartText {
			text.WriteString(part.Text)
		}
	}
	return text.String()
}

// SystemContent is the content of a system message. Results are not repeated here: CallIDs name the
// call rows that own them (decision 7).
type SystemContent struct {
	Type    SystemType `json:"type"`
	CallIDs []ID       `json:"call_ids,omitempty"`
	Summary string     `json:"summary,omitempty"`
	// Said is what Summary tells a model, sentence by sentence, for people; empty where that is for
	// the model alone.
	Said []Sentence `json:"said,omitempty"`
	// Enriches is set in the DATA_ADDED of a person's enrichments (decision 46): the message that
	// they stand in.
	Enriches ID `json:"enriches,omitzero"`
	// Queries are then the calls that the message makes and brings the results of, one for each
	// block, as in a reply: with the block's label as Text, the tool, and the hash of the
	// arguments.
	Queries []Part `json:"queries,omitempty"`
	// Compaction is set in a CONTEXT_SUMMARY: what a model is no longer shown.
	Compaction *Compaction `json:"compaction,omitempty"`
	// Undone is set in an UNDONE message.
	Undone *Undone `json:"undone,omitempty"`
}

// Compaction is what a CONTEXT_SUMMARY removes from later prompts (spec 3.4). The messages stay
// stored. It counts all messages from the beginning of the thread, so that it means the same in a
// fork; earlier removals persist.
type Compaction struct {
	// Hidden is the number of messages from the first one on that the summary replaces; 0 where it
	// hides no more than before.
	Hidden int `json:"hidden,omitempty"`
	// Requests are those among them, counted from 1, that are shown word for word behind the
	// summary: what the person asked last.
	Requests []int `json:"requests,omitempty"`
	// Dropped is the number of messages from the first one on whose call results are named but not
	// shown; DroppedCalls is the number of such calls in the next message.
	Dropped      int `json:"dropped,omitempty"`
	DroppedCalls int `json:"dropped_calls,omitempty"`
	// Fallback says why no model wrote the summary; empty where one did.
	Fallback string `json:"fallback,omitempty"`
	// Before and After are the estimated sizes of the prompt, in tokens.
	Before int `json:"tokens_before"`
	After  int `json:"tokens_after"`
}

// Missing is a toolkit that a run lacks because the server of its tools is down, such as an MCP
// server (spec 4.2).
type Missing struct {
	Toolkit string `json:"toolkit"`
	Why     string `json:"why"` // a sentence, in the words of whoever serves it
}

// ComponentTools is the author of messages with a ToolNotice.
const ComponentTools = "tools"

// ToolNotice is what a run tells people about tools that are away, and about a document that it was
// not given: the execution metadata of a NETWORK_ERROR message, for the audit.
type ToolNotice struct {
	Missing []Missing `json:"missing"`
	// CallID is the call that the run waits with until its tool is back; zero where the run goes on
	// without.
	CallID ID `json:"call_id,omitzero"`
	// Document is set where the workspace's document was not read in full.
	Document Sentence `json:"document,omitzero"`
	// Hooks are what came of the hooks that ran.
	Hooks []HookRun `json:"hooks,omitempty"`
}

// ToolNotice returns the notice that a message is, if it is one.
func (m *Message) ToolNotice() (ToolNotice, bool) {
	var notice ToolNotice
	if m.System == nil || m.System.Type != SystemNetworkError || m.Author.ID != ComponentTools {
		return notice, false
	}
	return notice, json.Unmarshal(m.ExecutionMetadata, &notice) == nil &&
		(len(notice.Missing) > 0 || !notice.Document.IsZero() || len(notice.Hooks) > 0)
}

// Usage is what one model call consumed, in tokens, as its provider counts them (spec 6.3). Input
// is the whole prompt; what was read from the provider's cache or written to it is a part of that,
// as Reasoning is of Output.
type Usage struct {
	Input         int64 `json:"input"` // of the whole request, with what came from a cache
	Output        int64 `json:"output"`
	CacheCreation int64 `json:"cache_creation,omitempty"`
	CacheRead     int64 `json:"cache_read,omitempty"`
	Reasoning     int64 `json:"reasoning,omitempty"`
	// Estimated says that the provider counted nothing, or what cannot be true: Input or Output was
	// made from the bytes.
	Estimated bool `json:"estimated,omitempty"`
}

// Message is the one unified record (spec 2.2). Its JSON form is the body of its log event; seq,
// session and time stand in the event around it.
type Message struct {
	ID        ID        `json:"id"`
	SessionID ID        `json:"-"`
	Seq       int64     `json:"-"` // position in the session's log; 0 while pending (decision 10)
	Time      time.Time `json:"-"`
	Sender    Sender    `json:"sender"`
	Author    Author    `json:"author"`
	// ClientID makes a retried submission add nothing (spec 2.3).
	ClientID string `json:"client_message_id,omitempty"`
	RoundID  ID     `json:"round_id,omitzero"`
	Exchange int    `json:"exchange,omitempty"`

	Rich   []Segment      `json:"rich_content,omitempty"`
	Text   string         `json:"text_content,omitempty"`
	AI     *AIReply       `json:"ai_message_json,omitempty"`
	System *SystemContent `json:"system_message,omitempty"`

	ExecutionMetadata json.RawMessage `json:"execution_metadata,omitempty"`
	ExcludeFromPrompt bool            `json:"exclude_from_prompt,omitempty"`
	Usage             *Usage          `json:"usage,omitempty"`
	TraceID           string          `json:"trace_id,omitempty"`
	// Opening is set in the first message of a round.
	Opening *Opening `json:"opening,omitempty"`
	// Copied is set in a fork. Round and exchange are then the original ones, of the source
	// session.
	Copied *Copied `json:"copied,omitempty"`
	// Superseded says that an undo has taken the message out of the conversation: no prompt shows
	// it (decision 16).
	Superseded bool `json:"-"`
}

// Variant returns which content field is filled, or CodeBadRequest where not exactly one is, or
// where the sender may not fill it (spec 2.2).
func (m *Message) Variant() (Variant, error) {
	var filled []Variant
	var senders []Sender // of the last one that is filled
	for _, content := range []struct {
		variant Variant
		there   bool
		senders []Sender
	}{
		{VariantRich, len(m.Rich) > 0, []Sender{SenderUser}},
		{VariantText, m.Text != "", []Sender{SenderUser, SenderAI}},
		{VariantAI, m.AI != nil, []Sender{SenderAI}},
		{VariantSystem, m.System != nil, []Sender{SenderSystem}},
	} {
		if content.there {
			filled, senders = append(filled, content.variant), content.senders
		}
	}
	switch {
	case len(filled) != 1:
		return "", Errorf(CodeBadRequest,
			"a message has exactly one content, this one has %d: fill one of rich_content, text_content, ai_message_json, system_message", len(filled))
	case !slices.Contains(senders, m.Sender):
		return "", Errorf(CodeBadRequest, "a message of sender %s cannot carry %s content", m.Sender, filled[0])
	}
	return filled[0], nil
}

// CallIDs returns the calls that the message owns, in order: those that a reply proposes, or the
// queries of a person's enrichments.
func (m *Message) CallIDs() []ID {
	var ids []ID
	for _, part := range m.CallParts() {
		if part.Type == PartCall {
			ids = append(ids, part.CallID)
		}
	}
	return ids
}

// CallParts returns the parts among which those of CallIDs are.
func (m *Message) CallParts() []Part {
	switch {
	case m.AI != nil:
		return m.AI.Parts
	case m.System != nil:
		return m.System.Queries
	default:
		return nil
	}
}
