// Package store has the types of the domain transitions: their arguments and results. The
// transitions are methods of the stores below this package, one transaction each, with one suite
// (storetest) for every database. The engine and dispatch declare the interfaces that they need
// (docs/design.md, "Store").
package store

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
)

// Fence names a running round and the epoch under which its holder claimed it. Every transition of
// a round carries one; a write under an older epoch is refused with CodeStale (invariant 8).
type Fence struct {
	SessionID regie.ID
	RoundID   regie.ID
	Epoch     int64
	Chain     int64 // the store's own key of the session
}

// Open is the intent of the next model call, with its reservation (decisions 4 and 29).
type Open struct {
	Number   int
	Reason   regie.ExchangeReason
	Reserved int64 // millionths of a US dollar
	// Wants reserves as much as the caps leave (Reservation), in this transition. nil, or too
	// little left, reserves nothing: then the call waits for Reserve.
	Wants *Reservation
	// Provider and Model name the model to call. Empty means the round's own for a new exchange,
	// and the same as before for a further attempt.
	Provider, Model string
}

// End ends a round.
type End struct {
	Reason regie.RoundEnd
	Note   regie.Sentence
	// Close also closes the session, with this reason, and withdraws the messages that wait for the
	// end of the round (decision 44). Empty leaves it open. EndStopped also closes it, as
	// cancelled.
	Close regie.SessionEnd
	// Notice notifies a person who is not watching of the end; nil for no notice.
	Notice *regie.Notice
}

// Advance is the state that a transition leaves the round in: its phase, its counters, and either
// the next model call or the end.
type Advance struct {
	Phase    regie.Phase
	Counters regie.Counters
	Open     *Open
	End      *End
}

// Submission is a message on its way into a session, with the round that it starts.
type Submission struct {
	SessionID regie.ID
	// New is the session itself where its first message makes it; it is ignored where the session
	// is there already.
	New *regie.Session
	// Workspace is that of New; it is carried to the engine, not stored.
	Workspace regie.Workspace
	Message   regie.Message
	// ID, Reason, Limits, Agent, Provider, Model, Dialect, TraceID, Policy, Level1, Level2 are read
	Round    regie.Round
	Reserved int64    // for the first model call
	Holder   string   // claims the round at once; empty leaves it unclaimed
	WhenBusy WhenBusy // how to handle the message while a round is open; empty means Queue
	// LeavesWaits has a message that steers past what a person was asked refused with
	// ErrLeavesWaits.
	LeavesWaits bool
	// LeavesApprovals is LeavesWaits for approvals alone: an open question is withdrawn.
	LeavesApprovals bool
	// Command says that the message is a person's own command (spec 10.1): the round calls no
	// model, and cannot wait for the end of another one.
	Command bool
	// History is the earlier conversation that an OpenAI-compatible client sends; it comes before
	// Message in a new session (decision 35).
	History []Imported
	// Results are the client's results of all the client tool calls that the session waits for.
	// Where Message has no text it is their message, a DATA_ADDED, which the transition fills; else
	// they come before it. Without results such calls become NOT_RUN.
	Results []regie.ClientResult
	// Fire is the fire of an automation that the new session carries out; nil for none. The
	// transition returns ErrNotNow, ErrNoSlot, ErrEventJoined and ErrFireSettled.
	Fire *StartFire
}

// Opens returns the reason of the round's first exchange.
func (s *Submission) Opens() regie.ExchangeReason {
	if s.Command {
		return regie.ExchangeCommand
	}
	return regie.ExchangeStart
}

// Imported is a message of a client's history with its settled calls (decision 35). They belong to
// the round that starts.
type Imported struct {
	Message regie.Message
	Calls   []regie.Call
}

// Accepted is the answer to a Submission.
type Accepted struct {
	Message regie.Message
	RoundID regie.ID
	// Duplicate says that the message was stored before (spec 2.3): nothing was added.
	Duplicate bool
	Fence     Fence // set where the submission claimed the round
	// Claimed is the round that the submission claimed in an existing session.
	Claimed Claimed
	// Created says that the submission made the session, which has no other message.
	Created bool
	// Pending says that the round RoundID is open: the message waits for its place in the thread
	// (decision 10).
	Pending bool
	// Ready says that the open round has no open wait any more, as Resolved.Ready does.
	Ready bool
	// Position is the round's place in the queue, from 1, where no slot is free (spec 5.1): the
	// round has no holder. 0: it runs.
	Position int
}

// Claimed is the state of a round that its new holder needs to continue it.
type Claimed struct {
	Fence     Fence
	Session   regie.Session
	Workspace regie.Workspace
	Round     regie.Round
	Exchange  regie.Exchange
	// Reply and Calls are those of the current exchange, once it has a reply.
	Reply *regie.Message
	Calls []regie.Call
	// Resumed says that the previous holder died without releasing the round: open work may have
	// been sent or started.
	Resumed bool
	// Woken says that time has passed since the round was submitted, or last ran: it waited, or its
	// holder died.
	Woken bool
	// Reviews are the latest reviews of the current exchange's calls.
	Reviews map[regie.ID]regie.Review
	// Asked are those calls that put a question to a person.
	Asked map[regie.ID]bool
	// Outage is the network outage that the current exchange last waited out; nil where there was
	// none, or a person has resumed the round since.
	Outage *regie.Outage
	// Thread is the session's whole thread where the claimer has it; nil reads it from the store.
	Thread *Thread
}

// Reply is the transition AppendReply: a model's reply with all its calls, whole or not at all
// (spec 2.3). The reply of an exchange of PurposeSummary is the CONTEXT_SUMMARY itself.
type Reply struct {
	Message regie.Message
	// Calls are PROPOSED, settled at once (not runnable), or one of them STARTED: the intent of the
	// first action (decision 4).
	Calls []regie.Call
	// Results closes the batch where nothing is left to run.
	Results *regie.Message
	Ask     *Asked
	Park    bool // the round waits, if anything is open
	// Usage, Money, Request, Head, FirstSeq, LastSeq, StopReason, FirstByteUS, ModelUS, Provider,
	// Model are stored
	Exchange regie.Exchange
	Advance  Advance
	// Keep is the answer for the response cache, Hit the key of the entry that answered (spec 6.4).
	Keep *CachedReply
	Hit  regie.Hash
}

// Settle is the transition CommitCalls: results one by one, and the next step (decision 4).
type Settle struct {
	Exchange int
	Settled  []regie.Call    // with their final state, result, duration
	Start    *regie.Call     // the intent of the next action
	Plan     json.RawMessage // the agent's plan for display; nil where it has not changed
	Ask      *Asked
	Park     bool // the round waits, if anything is open
	// Message closes the batch: DATA_ADDED or ACTIONS_EXECUTED, with Advance.
	Message *regie.Message
	// Post is a message behind Message, which no model reads: what the model had to say once all of
	// its actions succeeded (spec 2.2), or SESSION_TIMEOUT.
	Post    *regie.Message
	Advance *Advance // nil while the batch goes on
}

// Failure is the transition FailAttempt: a model call that brought no reply (decision 28).
type Failure struct {
	Attempt regie.Attempt
	// Unasked says, with Advance, that no model call was running when the round ended: the exchange
	// fails as Attempt says, and no attempt is stored.
	Unasked bool
	// Retry opens the next attempt with its own reservation; else Advance ends the round, or opens
	// the step that goes on without the summary.
	Retry   *Open
	Message *regie.Message // NETWORK_ERROR, for the audit, or the CONTEXT_SUMMARY that no model wrote
	Advance *Advance
	// WaitUntil has the round wait for the network before the next attempt (decision 42); zero does
	// not. Outage is what it waits out.
	WaitUntil time.Time
	Outage    *regie.Outage
	// Delay is how long the holder backs off before the next attempt, without releasing the round.
	// The event stream shows it.
	Delay time.Duration
	// Fallback says that another provider continues, with Retry.
	Fallback *regie.Fallback
	// Pause pauses the session, as a person's request does, until a person resumes it.
	Pause  bool
	Notice *regie.Notice
}

// Note is the transition Note: a message for the audit that is no step of the round, and a wait
// where the round cannot continue for now.
type Note struct {
	// Message is excluded from prompts; nil where the notice was given before.
	Message *regie.Message
	// Waits is the STARTED call that the round waits with, marked as recovered. The next holder
	// learns from the mark that the call may have had its effect, even after an orderly release
	// (decision 5). Zero where the round continues.
	Waits regie.ID
	// Until is when the round is claimed again at the latest, with Waits (decision 42).
	Until time.Time
}

// Enrichment is the transition Enrich: the data that a person's message names (decision 46).
// Message is its DATA_ADDED, Calls are its queries, each with its result.
type Enrichment struct {
	Message regie.Message
	Calls   []regie.Call
}

// RoundView is a round with everything that happened in it (spec 10.1 runs show, 10.2 GET
// /rounds/{id}).
type RoundView struct {
	Workspace regie.Workspace `json:"workspace"`
	Session   regie.Session   `json:"session"`
	Round     regie.Round     `json:"round"`
	Trigger   *regie.Message  `json:"trigger,omitempty"`
	// Notices are messages of the round outside its exchanges: which tools were missing
	// (regie.ToolNotice).
	Notices []regie.Message `json:"notices,omitempty"`
	// Enrichments are the data that the person's messages named, in order (decision 46).
	Enrichments []EnrichmentView `json:"enrichments,omitempty"`
	Exchanges   []ExchangeView   `json:"exchanges"`
	// Undos are the undos of the round, and the undos of these, in order.
	Undos []regie.Undo `json:"undos,omitempty"`
	// Spent is the cost of its model calls.
	Spent regie.Spending `json:"spent"`
	Head  int64          `json:"head"` // the last sequence number of the session's log
}

// EnrichmentView is the DATA_ADDED of one message's enrichments with its calls.
type EnrichmentView struct {
	Message regie.Message `json:"message"`
	Calls   []regie.Call  `json:"calls"`
}

// ExchangeView is one exchange with its reply, its failed attempts and its calls.
type ExchangeView struct {
	regie.Exchange
	Reply    *regie.Message  `json:"reply,omitempty"`
	Attempts []regie.Attempt `json:"attempts,omitempty"`
	Calls    []regie.Call    `json:"calls,omitempty"`
	// Summary is the CONTEXT_SUMMARY of an exchange of PurposeSummary, even where no model wrote
	// it.
	Summary *regie.Message `json:"summary,omitempty"`
}

// RoundFilter selects rounds of sessions that were not removed.
type RoundFilter struct {
	Root      string    `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	SessionID regie.ID  // zero for all
	State     string    `query:"state" enum:"RUNNING WAITING ENDED FAILED" doc:"Those in a state; FAILED: those that ended by an error, without progress or by the watchdog."`
	From, To  time.Time // when they started: From is the earliest, To is past the latest; zero: any
	// Before is the cursor: the list continues behind it. Limit is the page size; zero means 20.
	Before Mark `query:"cursor" list:"rounds" doc:"next_cursor of the page before."`
	Limit  int  `query:"limit" min:"1" max:"1000" doc:"How many at most; 50 where it is left out."`
}

// RoundSummary is one line of runs list.
type RoundSummary struct {
	Round     regie.Round   `json:"round"`
	Session   regie.Session `json:"session"`
	Text      string        `json:"text"` // the message that started it
	Exchanges int           `json:"exchanges"`
	Calls     int           `json:"calls"`
	// Spent is the cost of its model calls.
	Spent regie.Spending `json:"spent"`
	// Undone says that some or all of its files are undone.
	Undone bool `json:"undone,omitempty"`
}

// Thread is a session's admitted messages from a sequence number on, with the calls they own, in
// order.
type Thread struct {
	Messages []regie.Message
	Calls    map[regie.ID][]regie.Call // by message
}

// ErrElsewhere says that another live process holds the session.
var ErrElsewhere = regie.Errorf(regie.CodeConflict, "another process has this session: its run continues there")

// ErrNewerSchema says that a newer program has migrated the database while this engine runs. The
// engine has to end, because it does not know the new schema.
var ErrNewerSchema = regie.Errorf(regie.CodeNewerSchema,
	"a newer version has migrated the database: this engine stops, use the newer version")

// Orphan is a running round without a live holder (decision 25).
type Orphan struct {
	SessionID regie.ID
	RoundID   regie.ID
	Since     time.Time
}

// Notify receives the events that a commit added to a session's log, in the form that Events
// returns. nil means that they are not known and the log has to be read. Notify must not block, nor
// change the events.
type Notify func(session regie.ID, added []regie.Event)

// VerifyReport is the result of verifying a log (decision 15).
type VerifyReport struct {
	// OwnerID is the session or workspace that owns the log; zero for the logs of several
	// workspaces together.
	OwnerID regie.ID `json:"owner_id,omitzero"`
	Events  int64    `json:"events"`
	Erased  int64    `json:"erased"`
	Head    string   `json:"head,omitempty"` // the last MAC, hexadecimal
}

// Setting is a value that was set through the interface and overrides the default (decision 52).
type Setting struct {
	// Name is its key in the configuration: limits.chat.max_action_retries.
	Name string
	// Value has the configuration's format; empty removes an earlier value.
	Value string
}

// Proxied is a model call forwarded for a client, without a session (decision 35): a line of the
// log of these (spec 11.4).
type Proxied struct {
	ID          regie.ID
	WorkspaceID regie.ID
	UserID      regie.ID
	Provider    string
	Model       string
	Code        regie.Code // why it brought no answer; empty where it did
	Usage       regie.Usage
	Money       regie.Money // Reserved is what was reserved for it under a cap
	StartedAt   time.Time
	Duration    time.Duration
}
