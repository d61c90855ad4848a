package dispatch

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/store"
)

// Prompt is a request as a model gets it, byte for byte, with its parts (decision 14).
type Prompt = engine.Prompt

// PromptPart is a part of a Prompt.
type PromptPart = engine.PromptPart

// PromptRequest names a prompt: what would be sent now in a session, what was sent in an exchange
// of a round, or what was sent when the model proposed a call. Exactly one of the three is named.
type PromptRequest struct {
	Root      string   `query:"root" doc:"The directory of the workspace that it lies in."`
	SessionID regie.ID `query:"session" doc:"What would be sent now in this session."`
	RoundID   regie.ID `query:"round" doc:"What was sent in an exchange of this round."`
	Exchange  int      `query:"exchange" min:"1" doc:"The number of the exchange, from 1."`
	CallID    regie.ID `query:"call" doc:"What was sent when the model proposed this call."`
	CallPart  string   `query:"call_part" doc:"The end of a call's id, or its beginning from eight digits on."`
}

// ProviderRequest gives a round that waits or is paused another provider (decision 54). Model is
// the provider's own where it is empty, Settings are as in RunRequest.
type ProviderRequest struct {
	RoundID  regie.ID   `json:"round_id,omitzero"`
	Provider string     `json:"provider" required:"true"`
	Model    string     `json:"model,omitempty"`
	Settings regie.Hash `json:"settings,omitzero"`
	By       string     `json:"-"`
}

// RunRequest is a message for an agent in a workspace. What it leaves empty of the workspace, the
// agent and the model is that of the session, and else of the engine's own settings.
type RunRequest struct {
	// ClientID makes a repeated request add nothing (spec 2.3).
	ClientID string `json:"client_message_id"`
	// SessionID names the session; its first message makes it.
	SessionID regie.ID `json:"session_id" required:"true"`
	// Root is the workspace's directory, an absolute path; FoundBy says how it was found (spec
	// 8.1). WorkspaceID names a known one instead. Here accepts a new Root even if it is the home
	// directory, / or a system directory (decision 32).
	Root        string   `json:"root,omitempty"`
	FoundBy     string   `json:"found_by,omitempty"`
	Here        bool     `json:"here,omitempty"`
	WorkspaceID regie.ID `json:"workspace_id,omitzero"`
	Text        string   `json:"text,omitempty"`
	// Segments replace Text where the message has enrichments (spec 2.2): texts and blocks in
	// order.
	Segments []regie.Segment `json:"segments,omitempty"`
	// Command is a person's own command instead of Text: it runs in the workspace like the agent's,
	// with the same approval and without a model call (spec 10.1). It is refused with
	// CodeRoundInProgress while a round of the session is open.
	Command string `json:"command,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// Provider and Model name what answers; Settings is the fingerprint of the provider's settings
	// as the caller sees them.
	Provider string     `json:"provider,omitempty"`
	Model    string     `json:"model,omitempty"`
	Settings regie.Hash `json:"settings,omitzero"`
	// ModelDefault says that Provider and Model are those of the caller's settings, not chosen for
	// this run: what the agent names goes before them.
	ModelDefault bool            `json:"model_default,omitempty"`
	Policy       approval.Policy `json:"policy"`
	// Type is the type of a new session: CHAT, also where it is empty, or AUTOMATION, an unattended
	// run.
	Type regie.SessionType `json:"session_type,omitempty"`
	// Dialect forces one on the round (spec 3.3); empty leaves it to the agent and to what the
	// model can.
	Dialect regie.Dialect `json:"dialect,omitempty"`
	// Limits lowers the defaults of spec 3.2 where a field is not zero.
	Limits regie.Limits `json:"limits"`
	// WhenBusy says what becomes of the message while a round of the session is open (decision 10).
	WhenBusy store.WhenBusy `json:"when_busy,omitempty"`
	// RequireValidation has every call of a new session asked about (decision 49).
	RequireValidation bool `json:"require_validation,omitempty"`
	// ApprovalMode is that of the session from this message on (decision 71); empty leaves it. It
	// needs the scope approve.
	ApprovalMode regie.Mode `json:"approval_mode,omitempty"`
	// NoCache bypasses the response cache for the run, regardless of the agent's settings (spec
	// 6.4).
	NoCache bool `json:"no_cache,omitempty"`
	// Origin is the origin of a new session (decision 35). History precedes the message in the
	// thread. Results are a client's results for all calls of its tools that the session waits for:
	// they may come without a text.
	Origin  regie.SessionOrigin     `json:"origin,omitempty"`
	History []regie.ImportedMessage `json:"history,omitempty"`
	Results []regie.ClientResult    `json:"results,omitempty"`
	// LeavesWaits says that the sender may not answer, or does not want to (spec 10.2): a message
	// that would answer a question or withdraw one is refused with CodeMissingScope.
	LeavesWaits bool `json:"leaves_waits,omitempty"`
	// LeavesApprovals has a message that would withdraw an approval refused in the same way, and
	// answers or withdraws a question: of clients that know of no approvals. Only who speaks for
	// such a client says so; no request does.
	LeavesApprovals bool `json:"-"`
	// Visitor names a visitor of a widget to the model, instead of the user; Caps lower those of
	// the configuration.
	Visitor string     `json:"-"`
	Caps    regie.Caps `json:"-"`
	// Fire is the fire of an automation that the run carries out, under Name, after so many Joined
	// events. Tainted says that the message has content of strangers.
	Fire    *regie.Fire `json:"-"`
	Joined  int         `json:"-"`
	Name    string      `json:"-"`
	Tainted bool        `json:"-"`
	// AnswersNothing makes a steering message withdraw an open question even where free text would
	// answer it: its sender does not speak for the person in question.
	AnswersNothing bool `json:"answers_nothing,omitempty"`
	// By is who says it, where that is not the owner, and TokenID the token that they show. Only
	// who lets callers in says so; no request does.
	By      string   `json:"-"`
	TokenID regie.ID `json:"-"`
}

// Run is the answer to a RunRequest.
type Run struct {
	SessionID regie.ID `json:"session_id"`
	RoundID   regie.ID `json:"round_id"`
	MessageID regie.ID `json:"message_id"`
	Seq       int64    `json:"seq"`
	Duplicate bool     `json:"duplicate,omitempty"`
	// Pending says that the message waits for its place in the thread of the open round RoundID
	// (decision 10).
	Pending bool `json:"pending,omitempty"`
	// Answered says that the message was taken as the answer to the question that the round waited
	// for: MessageID and Seq are then those of the answer.
	Answered bool `json:"answered,omitempty"`
	// Position is the run's place in the queue, from 1, where no slot is free (spec 5.1); it starts
	// without further action. 0 means that it runs.
	Position int `json:"queue_position,omitempty"`
}

// Stopped is the answer to Stop.
type Stopped struct {
	// Withdrawn are the messages that waited for the end of the run, in order: no run will read
	// them (decision 10). A repeated stop returns them again.
	Withdrawn []regie.Message `json:"withdrawn"`
}

// TakeBackRequest names a message of a session that waits for its turn.
type TakeBackRequest struct {
	SessionID regie.ID `json:"session_id,omitzero"`
	MessageID regie.ID `json:"message_id" required:"true"`
}

// RevokeRequest takes standing rules back, all of them or none. Taking back what is revoked changes
// nothing.
type RevokeRequest struct {
	RuleIDs []regie.ID `json:"rule_ids" required:"true"`
	By      string     `json:"by,omitempty"`
}

// DecideRequest is a person's word on calls of one approval (spec 4.4).
type DecideRequest struct {
	ApprovalID regie.ID `json:"approval_id"`
	// Request is the answer's own id: saying it again adds nothing.
	Request   string           `json:"request_id"`
	Decisions []regie.Decision `json:"decisions" required:"true"`
	// Shown are the edited calls as the person has seen them: where one would be shown otherwise by
	// now nothing is decided, with CodeStalePreview.
	Shown []ShownEdit `json:"shown,omitempty"`
	By    string      `json:"by"`
}

// ShownEdit is what the preview of an edited call was made from, as Review returned it (decision
// 20).
type ShownEdit struct {
	CallID        regie.ID             `json:"call_id" required:"true"`
	Preconditions []regie.Precondition `json:"preconditions"`
}

// Reviewed is the answer to Review: the edited calls in the order of the decisions, with their
// canonical arguments and what those would do.
type Reviewed struct {
	Reviews []regie.Review `json:"reviews"`
}

// ResolveRequest is a person's word on an UNKNOWN call.
type ResolveRequest struct {
	CallID regie.ID         `json:"call_id"`
	As     regie.ResolvedAs `json:"as" required:"true"`
	Note   string           `json:"note,omitempty"`
	By     string           `json:"by,omitempty"`
}

// SetAsideRequest hides an item of the inbox from its reader until a time; a past one shows it
// again.
type SetAsideRequest struct {
	ItemID regie.ID  `json:"item_id"`
	Until  time.Time `json:"until" required:"true"`
}

// ExtendRequest keeps an approval or a question open until a later time.
type ExtendRequest struct {
	ItemID regie.ID  `json:"item_id"`
	Until  time.Time `json:"until" required:"true"`
	By     string    `json:"-"`
}

// AnswerRequest is a person's answer to a question (spec 4.5).
type AnswerRequest struct {
	QuestionID regie.ID            `json:"question_id"`
	Request    string              `json:"request_id"`
	Reply      regie.QuestionReply `json:"reply" required:"true"`
	By         string              `json:"by"`
}

// ClearRequest names by its root the workspace to clear from the response cache; "" means all.
type ClearRequest struct {
	Root string `json:"root,omitempty"`
}

// Cleared is how many answers went.
type Cleared struct {
	Entries int64 `json:"entries"`
}

// UndoRequest says what is to be undone.
type UndoRequest struct {
	// UndoID is the undo's own id: asking again under it adds nothing.
	UndoID regie.ID `json:"undo_id,omitzero"`
	// Target is a run, or an undo, which is taken back then; Short is a part of such an id. Without
	// either it is the newest run of SessionID, or of the workspace at Root, that changed files and
	// is not undone.
	Target    regie.ID `json:"target,omitzero"`
	Short     string   `json:"short,omitempty"`
	Root      string   `json:"root,omitempty"`
	SessionID regie.ID `json:"session_id,omitzero"`
	// Chat removes the run's messages from the conversation too; without file changes, the newest
	// run may be one that only talked.
	Chat bool `json:"chat,omitempty"`
	// Force puts files back that others have changed since. What they hold now is kept, and an undo
	// of the undo brings it again.
	Force bool `json:"force,omitempty"`
	// Plan is that of the plan which was shown: where it is no longer what would be done, nothing
	// is.
	Plan regie.Hash `json:"plan,omitzero"`
	By   string     `json:"by,omitempty"`
}

// QueryRequest is a call of a query.
type QueryRequest struct {
	WorkspaceID regie.ID        `json:"workspace_id" required:"true"`
	Tool        string          `json:"tool" required:"true"` // its canonical name
	Arguments   json.RawMessage `json:"arguments,omitempty"`
}

// QueryResult is what a query brought.
type QueryResult struct {
	Content string `json:"content"`
}

// WorkspaceRequest names a directory.
type WorkspaceRequest struct {
	// Path is absolute, on the machine of the engine.
	Path string `json:"path" required:"true"`
	// Here takes the directory although it is the home directory or /.
	Here bool `json:"here,omitempty"`
}

// TrustRequest trusts the content of a workspace for agents.
type TrustRequest struct {
	WorkspaceID regie.ID `json:"workspace_id,omitzero"`
	// SHA256 is the hash of the content that was shown.
	SHA256 regie.Hash `json:"sha256" required:"true"`
}

// SessionRequest makes a session. What it leaves empty the engine's settings say.
type SessionRequest struct {
	SessionID   regie.ID          `json:"session_id,omitzero"`
	WorkspaceID regie.ID          `json:"workspace_id" required:"true"`
	Agent       string            `json:"agent,omitempty"`
	Type        regie.SessionType `json:"type,omitempty"`
	Name        string            `json:"name,omitempty"`
	// RequireValidation has every call of the session asked about (decision 49).
	RequireValidation bool `json:"require_validation,omitempty"`
	// ApprovalMode is that of the session (decision 71); it needs the scope approve.
	ApprovalMode regie.Mode `json:"approval_mode,omitempty"`
}

// ProviderView is a configured provider. Keys are never shown; providers of files cannot be changed
// here (decision 52).
type ProviderView struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	BaseURL string `json:"base_url,omitempty"`
	HasKey  bool   `json:"has_key"`
	Chosen  bool   `json:"chosen,omitempty"` // answers where nothing else is said
	// Place is the file or the variable that fixes it. It is empty for a stored one, with its
	// default model.
	Place string `json:"place,omitempty"`
	Model string `json:"model,omitempty"`
	// Restart says that the server uses what is stored from its next start on.
	Restart bool `json:"restart_needed,omitempty"`
	Removed bool `json:"removed,omitempty"` // it answers until then
	// Untested is why storing it did not test it.
	Untested string `json:"untested,omitempty"`
}

// Check is a finding of the doctor.
type Check struct {
	Group, Status string
	Cause         error // says it instead of Text
	Text          regie.Sentence
	Fixes         []CheckFix
}

// CheckFix is a command to type, or a sentence where that is empty.
type CheckFix struct {
	Command string
	Text    regie.Sentence
}

// NewProvider asks to store a provider as regie setup does.
type NewProvider struct {
	Name string `json:"name" required:"true"`
	// Type is anthropic, openai, gemini or ollama. A vendor's name needs no type and no address.
	Type string `json:"type,omitempty"`
	ProviderFields
}

// ProviderEdit changes a stored provider; what is empty stays. A stored key is for its address
// only: a new address needs the key again.
type ProviderEdit struct {
	Name string `json:"-"`
	ProviderFields
}

// ProviderFields are what can be changed of a stored provider.
type ProviderFields struct {
	BaseURL string `json:"base_url,omitempty"`
	// Key is tried and never shown. Keyring keeps it in the keyring of the server's system, not in
	// the private file.
	Key     string `json:"key,omitempty"`
	Keyring bool   `json:"keyring,omitempty"`
	Model   string `json:"model,omitempty"` // answers where nothing names one
	// Chosen makes the provider answer where nothing names one.
	Chosen bool `json:"chosen,omitempty"`
}

// NotificationTest asks for a test notification.
type NotificationTest struct {
	Channel string `json:"channel,omitempty"` // by its name in regie.yaml; empty: each of them
}
