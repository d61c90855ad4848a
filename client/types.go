package client

import (
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// The types that a Client's methods take and give, for programs outside of this module, which
// cannot name those of its internal packages. Each is described where it is defined, and as a
// schema in the server's /openapi.json. Those of a noun with a file of its own are there.
type (
	// AnswerRequest is a person's answer to a question (spec 4.5).
	AnswerRequest = dispatch.AnswerRequest
	// ClearRequest names by its root the workspace to clear from the response cache; "" means all.
	ClearRequest = dispatch.ClearRequest
	// Cleared is how many answers went.
	Cleared = dispatch.Cleared
	// DecideRequest is a person's word on calls of one approval (spec 4.4).
	DecideRequest = dispatch.DecideRequest
	// Delta is a piece of a reply as it streams in.
	Delta = dispatch.Delta
	// ExtendRequest keeps an approval or a question open until a later time.
	ExtendRequest = dispatch.ExtendRequest
	// Fallback is a provider that may go on with a run.
	Fallback = approval.Fallback
	// Found is what a search found.
	Found = dispatch.Found
	// Item is one thing on a session's stream.
	Item = dispatch.Item
	// OnApproval decides about a call that needs an approval in an unattended run (spec 4.4, 10.1).
	OnApproval = approval.OnApproval
	// Policy is what a run allows without asking.
	Policy = approval.Policy
	// Presence is what is known of a user being there (spec 5.4).
	Presence = dispatch.Presence
	// Prompt is a request as a model gets it (spec 6.1 prompt show).
	Prompt = dispatch.Prompt
	// PromptRequest names a prompt.
	PromptRequest = dispatch.PromptRequest
	// ProviderModels is a configured provider with the models that it has.
	ProviderModels = dispatch.ProviderModels
	// NewProvider asks to store a provider.
	NewProvider = dispatch.NewProvider
	// ProviderEdit changes a stored provider.
	ProviderEdit = dispatch.ProviderEdit
	// ProviderFields are what can be changed of a stored provider.
	ProviderFields = dispatch.ProviderFields
	// ProviderView is a configured provider.
	ProviderView = dispatch.ProviderView
	// QueryRequest is a call of a query.
	QueryRequest = dispatch.QueryRequest
	// QueryResult is what a query brought.
	QueryResult = dispatch.QueryResult
	// Relaunch says what the model may do once its calls have succeeded; empty is RelaunchChain
	// (spec 3.3).
	Relaunch = approval.Relaunch
	// Restitution says how an answer after tool results is held to plain language: guided, strict
	// or off.
	Restitution = approval.Restitution
	// OnDeny says what follows a refusal without a reason: explain or end.
	OnDeny = approval.OnDeny
	// ResolveRequest is a person's word on an UNKNOWN call.
	ResolveRequest = dispatch.ResolveRequest
	// RevokeRequest takes standing rules back, all of them or none.
	RevokeRequest = dispatch.RevokeRequest
	// Reviewed is what edited calls would do.
	Reviewed = dispatch.Reviewed
	// Run is the answer to a RunRequest.
	Run = dispatch.Run
	// RunRequest is a message for an agent in a workspace.
	RunRequest = dispatch.RunRequest
	// SearchRequest is what is looked for.
	SearchRequest = dispatch.SearchRequest
	// SessionRequest makes a session.
	SessionRequest = dispatch.SessionRequest
	// SetAsideRequest hides an item of the inbox from its reader until a time; a past one shows it
	// again.
	SetAsideRequest = dispatch.SetAsideRequest
	// ShownEdit is what the preview of an edited call was made from.
	ShownEdit = dispatch.ShownEdit
	// Stopped is the answer to Stop.
	Stopped = dispatch.Stopped
	// TakeBackRequest names a message of a session that waits for its turn.
	TakeBackRequest = dispatch.TakeBackRequest
	// TrustRequest trusts the content of a workspace for agents.
	TrustRequest = dispatch.TrustRequest
	// UndoRequest says what is to be undone.
	UndoRequest = dispatch.UndoRequest
	// WorkspaceRequest names a directory.
	WorkspaceRequest = dispatch.WorkspaceRequest
	// WorkspaceTrust is the content of a workspace for agents, and whether it is trusted.
	WorkspaceTrust = control.WorkspaceTrust
	// CacheStats is what is in the response cache of a workspace, or of all of them.
	CacheStats = store.CacheStats
	// Inbox is what waits for people (spec 4.4).
	Inbox = store.Inbox
	// InboxFilter selects what waits for people.
	InboxFilter = store.InboxFilter
	// Mark is a place in a list that has the newest first.
	Mark = store.Mark
	// Resolved is what became of a wait.
	Resolved = store.Resolved
	// RoundFilter selects rounds of sessions that were not removed.
	RoundFilter = store.RoundFilter
	// RoundSummary is one line of runs list.
	RoundSummary = store.RoundSummary
	// RoundView is a round with everything that happened in it (spec 10.1 runs show, 10.2 GET
	// /rounds/{id}).
	RoundView = store.RoundView
	// RuleFilter selects standing rules (spec 4.4).
	RuleFilter = store.RuleFilter
	// RuleList is standing rules, the oldest first, with what verifying the logs of their
	// workspaces found (decision 15).
	RuleList = store.RuleList
	// StatFilter selects a period of the roll-ups, and how they are grouped.
	StatFilter = store.StatFilter
	// StatReport is what rounds did in a period, and what waits now.
	StatReport = store.StatReport
	// Spent is what its model calls have cost.
	Spent = store.Spent
	// WhenBusy says what becomes of a message that comes during a round (spec 3).
	WhenBusy = store.WhenBusy
)

// What becomes of a message while a round of its session is open (decision 10).
const (
	Queue  = store.Queue
	Steer  = store.Steer
	Reject = store.Reject
)

// Outcomes of a call that needs an approval (spec 4.4): the round waits for a person, the model
// gets a refusal and goes on, or the round ends.
const (
	Park        = approval.Park
	DenyAndGoOn = approval.DenyAndGoOn
	FailRun     = approval.FailRun
)

// What follows a round that acted (spec 3.3).
const (
	RelaunchChain  = approval.RelaunchChain
	RelaunchAnswer = approval.RelaunchAnswer
)

// Where a search looks, and how.
const (
	SearchSessions = dispatch.SearchSessions
	SearchFiles    = dispatch.SearchFiles
	SearchExact    = dispatch.SearchExact
	SearchRegex    = dispatch.SearchRegex
	SearchSemantic = dispatch.SearchSemantic
)
