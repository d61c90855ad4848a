// Package store holds the words of the domain transitions: what each one takes and returns. The
// transitions themselves are methods of the stores below this package, one transaction each, with
// one suite (storetest) for every database; the interfaces that the engine and dispatch need are
// declared by them (docs/design.md, "Store").
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
	// Wants has as much reserved as caps leave of it (Reservation), in this very transition; nil,
	// or where they leave too little, reserves nothing: then the call is not made before Reserve.
	Wants *Reservation
	// Provider and Model name the called provider; empty means the round's own for a new exchange,
	// and the same as before for a further attempt.
	Provider, Model string
}

// End ends a round.
type End struct {
	Reason regie.RoundEnd
	Note   regie.Sentence
	// Close also closes the session, with this reason, and gives back what waited for the end of
	// the round (decision 44); empty leaves it open. EndStopped always closes it as cancelled.
	Close regie.SessionEnd
	// Notice informs people who are not watching of the end; nil for nothing.
	Notice *regie.Notice
}

// Advance is where a transition leaves the round: its phase, its counters, and either the next
// model call or the end.
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
	Holder   string   // who claims the round at once; empty leaves it to whoever claims it
	WhenBusy WhenBusy // what becomes of the message where a round is open; empty means Queue
	// LeavesWaits has a message that steers past what a person was asked refused with
	// ErrLeavesWaits.
	LeavesWaits bool
	// LeavesApprovals is LeavesWaits for approvals alone: an open question is withdrawn.
	LeavesApprovals bool
	// Command says that the message is a person's own command (spec 10.1): the round asks no model,
	// and cannot wait for another one's end.
	Command bool
	// History precedes Message in the thread of a new session: the messages of an OpenAI-compatible
	// client (decision 35).
	History []Imported
	// Results are the client's results for all calls of its tools that the session waits for.
	// Without a text, Message is their message, a DATA_ADDED, which the transition fills; else they
	// come before it. Without results such calls are NOT_RUN.
	Results []regie.ClientResult
}

// Opens is why the first exchange of the round is there.
func (s *Submission) Opens() regie.ExchangeReason {
	if s.Command {
		return regie.ExchangeCommand
	}
	return regie.ExchangeStart
}

// Imported is a message of a client's history with the calls that it owns, which are settled
// (decision 35). Their round is the one that starts.
type Imported struct {
	Message regie.Message
	Calls   []regie.Call
}

// Accepted is the answer to a Submission.
type Accepted struct {
	Message regie.Message
	RoundID regie.ID
	// Duplicate says that the message was there already (spec 2.3): nothing was added.
	Duplicate bool
	Fence     Fence // set where the submission claimed the round
	// Claimed is the round that it claimed in a session that was there already.
	Claimed Claimed
	// Created says that the submission made the session: the message is all that is in it.
	Created bool
	// Pending says that a round is open, RoundID: the message waits for its place in the thread
	// (decision 10).
	Pending bool
	// Ready says that the open round waits for nothing any more, as of Resolved.
	Ready bool
	// Position is the round's place in the queue, from 1, where no slot is free (spec 5.1); it has
	// no holder. 0 means that it runs.
	Position int
}

// Claimed is everything that a holder needs to continue a round.
type Claimed struct {
	Fence     Fence
	Session   regie.Session
	Workspace regie.Workspace
	Round     regie.Round
	Exchange  regie.Exchange
	// Reply and Calls are those of the current exchange, once it has a reply.
	Reply *regie.Message
	Calls []regie.Call
	// Resumed says that the holder before died without letting go: what is open may have been sent
	// or started.
	Resumed bool
	// Woken says that time has passed since the round was submitted, or last ran: it waited, or its
	// holder died.
	Woken bool
	// Reviews are those of the current exchange's calls that a person was asked about, the latest
	// of each.
	Reviews map[regie.ID]regie.Review
	// Asked are those calls that put a question to a person.
	Asked map[regie.ID]bool
	// Outage is the last outage of the current exchange; nil without one, or after a manual resume.
	Outage *regie.Outage
	// Thread is the session's whole thread where the claimer knows it; nil has it read from the
	// store.
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
	// Keep is the answer as the response cache keeps it, Hit the key under which it was found there
	// (spec 6.4).
	Keep *CachedReply
	Hit  regie.Hash
}

// Settle is the transition CommitCalls: results one by one, and what follows them (decision 4).
type Settle struct {
	Exchange int
	Settled  []regie.Call    // with their final state, result, duration
	Start    *regie.Call     // the intent of the next action
	Plan     json.RawMessage // what the surfaces show as the agent's plan; nil where it has not changed
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
	// Unasked says, with Advance, that no model call was under way when the round ended: the
	// exchange fails with Attempt's error, and no attempt is stored.
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
	// Delay is how long the round waits, still held, before the next attempt: viewers see it.
	Delay time.Duration
	// Fallback tells that another provider goes on, with Retry.
	Fallback *regie.Fallback
	// Pause pauses the session, like a person's request, until a person resumes it.
	Pause  bool
	Notice *regie.Notice
}

// Note is the transition Note: a message for the audit that is no step of the round, and, where the
// round cannot go on for now, its wait.
type Note struct {
	// Message is excluded from prompts; nil where it was told before.
	Message *regie.Message
	// Waits is the STARTED call that the round waits with, marked as recovered: the next holder
	// knows that it may have had its effect, although the round was released cleanly (decision 5).
	// Zero where the round goes on.
	Waits regie.ID
	// Until is when the round is taken up again at the latest, with Waits (decision 42).
	Until time.Time
}

// Enrichment is the transition Enrich: what a person's message names was read (decision 46).
// Message is its DATA_ADDED, Calls are the queries that it owns, each with its result.
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
	// Notices are the round's messages for people outside its exchanges: which tools were missing
	// (regie.ToolNotice).
	Notices []regie.Message `json:"notices,omitempty"`
	// Enrichments are what was read of what the person's messages named, in order (decision 46).
	Enrichments []EnrichmentView `json:"enrichments,omitempty"`
	Exchanges   []ExchangeView   `json:"exchanges"`
	// Undos are what people took back of what the round did, and what they brought again, in order.
	Undos []regie.Undo `json:"undos,omitempty"`
	// Spent is what its model calls have cost.
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
	// Summary is the CONTEXT_SUMMARY that an exchange of PurposeSummary left, whether or not a
	// model wrote it.
	Summary *regie.Message `json:"summary,omitempty"`
}

// RoundFilter selects rounds of sessions that were not removed.
type RoundFilter struct {
	Root      string   `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	SessionID regie.ID // zero for all
	// Before selects what comes behind this place of the list; Limit is 20 where it is zero.
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
	// Spent is what its model calls have cost.
	Spent regie.Spending `json:"spent"`
	// Undone says that an undo is in force, for all of its files or for some.
	Undone bool `json:"undone,omitempty"`
}

// Thread is a session's admitted messages from a sequence number on, with the calls they own, in
// order.
type Thread struct {
	Messages []regie.Message
	Calls    map[regie.ID][]regie.Call // by message
}

// ErrElsewhere says that another process holds the session, and lives: it runs there.
var ErrElsewhere = regie.Errorf(regie.CodeConflict, "another process holds this session: its run goes on there")

// ErrNewerSchema says that a newer program has brought the database's schema forward below an
// engine, which has to end: what it knows of the tables is not so any more.
var ErrNewerSchema = regie.Errorf(regie.CodeNewerSchema,
	"a newer program has migrated the database: this engine ends, go on with the newer program")

// Orphan is a running round without a holder: its holder died (decision 25).
type Orphan struct {
	SessionID regie.ID
	RoundID   regie.ID
	Since     time.Time
}

// Notify receives after a commit the events added to a session's log, as Events returns them; nil
// where they are unknown and the log has to be read. It must not block, nor change the events.
type Notify func(session regie.ID, added []regie.Event)

// VerifyReport says whether a log is what was written (decision 15).
type VerifyReport struct {
	// OwnerID is the session or the workspace of the log; zero for those of several workspaces
	// together.
	OwnerID regie.ID `json:"owner_id,omitzero"`
	Events  int64    `json:"events"`
	Erased  int64    `json:"erased"`
	Head    string   `json:"head,omitempty"` // the last MAC, hexadecimal
}
