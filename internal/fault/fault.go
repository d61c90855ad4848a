// Package fault names the places where a crash would hurt most (spec 12.3). In a release build a
// point is an empty function that the compiler removes; with the build tag "faults" the process
// kills itself at the point that REGIE_FAULT names.
package fault

// The fault points. Each is the moment just before or after what its name says.
const (
	SubmitBefore = "submit-before" // a user message, before its commit
	SubmitAfter  = "submit-after"  // after its commit
	ClaimAfter   = "claim-after"   // a round was claimed anew
	ModelBefore  = "model-before"  // before the request is sent
	ModelMid     = "model-mid"     // after the first delta
	ModelAfter   = "model-after"   // the whole reply is here, nothing of it is stored
	ReplyAfter   = "reply-after"   // reply, calls and the first intent are committed
	// the hooks of calls that come next have run and that is stored; their intent is not
	HookAfter     = "hook-after"
	IntentBefore  = "intent-before"  // before the commit of a later intent of a batch
	IntentAfter   = "intent-after"   // after it, before the effect
	EffectAfter   = "effect-after"   // the tool has returned, its result is not stored
	ResultAfter   = "result-after"   // a result is committed in the middle of a batch
	QueriesAfter  = "queries-after"  // queries have run, their results are not stored
	SettledBefore = "settled-before" // before the commit that closes a batch
	SettledAfter  = "settled-after"  // after it
	RecoverBefore = "recover-before" // before a started call is recovered
	RecoverAfter  = "recover-after"  // after, before its result is stored
	DecideBefore  = "decide-before"  // a person's answer, before its commit
	DecideAfter   = "decide-after"   // after it, before the round goes on
	AskBefore     = "ask-before"     // before people are asked and the round lets go
	AskAfter      = "ask-after"      // after it
	SummaryBefore = "summary-before" // a prompt is over its budget, nothing of that is stored
	SummaryBegun  = "summary-begun"  // its exchange has become that of a summary, which was not sent
	CompactBefore = "compact-before" // the summary is here, or cannot be had; before its commit
	CompactAfter  = "compact-after"  // after it
	EndBefore     = "end-before"     // before the answer is committed
	EndAfter      = "end-after"      // after it
	FormatBefore  = "format-before"  // a reply that cannot be read is here with its correction, before their commit
	FormatAfter   = "format-after"   // after it, before the model is asked again
	EnrichBefore  = "enrich-before"  // what a message names was read, nothing of it is stored
	EnrichAfter   = "enrich-after"   // it is stored with its DATA_ADDED, the model was not asked
	NudgeBefore   = "nudge-before"   // an automation's reply without calls, before the commit that nudges it
	NudgeAfter    = "nudge-after"    // after it, before the model is asked again
	CloseBefore   = "close-before"   // the end of a round is to close its session, before that commit
	// what a model call may cost is not reserved yet, and the step before did not do it
	ReserveBefore = "reserve-before"
	ReserveAfter  = "reserve-after" // it is, before the call is made

	QueueBefore      = "queue-before"       // no slot is free: a round is to be queued, before that commit
	QueueAfter       = "queue-after"        // after it
	QueueStartBefore = "queue-start-before" // a queued round is to start, before that commit
	QueueStartAfter  = "queue-start-after"  // after it, before the round goes on
	YieldBefore      = "yield-before"       // a running round is to let another one go first, before that commit
	YieldAfter       = "yield-after"        // after it, before the other one starts

	PendingBefore  = "pending-before"  // a message for a busy session, before its commit
	PendingAfter   = "pending-after"   // after it
	AdmitBefore    = "admit-before"    // pending messages get their places in the thread, before that commit
	StopBefore     = "stop-before"     // a stopping word, before its commit
	StopAfter      = "stop-after"      // after it, before it takes effect
	ResumeAfter    = "resume-after"    // a pause is taken back, before the round goes on
	WithdrawBefore = "withdraw-before" // what waited for a person is withdrawn, before that commit
	ExpireBefore   = "expire-before"   // an unanswered wait expires, before that commit
	ExpireAfter    = "expire-after"    // after it, before the round goes on
	FireBefore     = "fire-before"     // fires of a schedule are decided, before that commit
	FireAfter      = "fire-after"      // after it, before their runs begin
	// a due fire gets its session, before that commit
	FireStartBefore = "fire-start-before"
	OpenBefore      = "open-before" // the files are as they were left
	OpenAfter       = "open-after"  // SQLite has replayed its log; nothing has gone on yet

	SecureBefore = "secure-before" // before what a command may change is secured
	SecureAfter  = "secure-after"  // it is safe on the disk, the command's intent is not stored
	TrackBefore  = "track-before"  // the command has ended, or its process died; its changes are not compared yet
	TrackAfter   = "track-after"   // what it changed is known and kept; its result is not stored

	UndoBefore = "undo-before" // an undo is planned and what the files hold is kept; before the commit that intends it
	UndoBegun  = "undo-begun"  // after it, before any file changes
	UndoFile   = "undo-file"   // a file was put back, others were not
	UndoFiles  = "undo-files"  // all were, before the commit that says so
	UndoAfter  = "undo-after"  // after it

	NotifyAfter = "notify-after" // a notification was sent, that is not stored

	BackupBefore  = "backup-before"  // before a migration: its backup is written and has not its name yet
	MigrateBefore = "migrate-before" // the backup is there, the schema is the old one
	MigrateAfter  = "migrate-after"  // the schema is the new one, nothing was read under it
)

// MigrationPoints lists the fault points of a migration: a process passes them once in the life of
// a database.
func MigrationPoints() []string { return []string{BackupBefore, MigrateBefore, MigrateAfter} }

// FirePoints lists the fault points of the fires of automations, without those of their runs.
func FirePoints() []string { return []string{FireBefore, FireAfter, FireStartBefore} }

// Points lists the fault points that a run can pass, for the harness.
func Points() []string {
	return []string{
		SubmitBefore, SubmitAfter, ClaimAfter, ModelBefore, ModelMid, ModelAfter, ReplyAfter,
		IntentBefore, IntentAfter, EffectAfter,
		ResultAfter, QueriesAfter, SettledBefore, SettledAfter, RecoverBefore, RecoverAfter, DecideBefore, DecideAfter,
		HookAfter, AskBefore, AskAfter, SummaryBefore, SummaryBegun, CompactBefore, CompactAfter, EndBefore, EndAfter,
		FormatBefore, FormatAfter, EnrichBefore, EnrichAfter,
		NudgeBefore, NudgeAfter, CloseBefore, ReserveBefore, ReserveAfter,
		QueueBefore, QueueAfter, QueueStartBefore, QueueStartAfter, YieldBefore, YieldAfter,
		PendingBefore, PendingAfter, AdmitBefore, StopBefore, StopAfter, ResumeAfter, WithdrawBefore,
		ExpireBefore, ExpireAfter, OpenBefore, OpenAfter, SecureBefore, SecureAfter, TrackBefore, TrackAfter,
		UndoBefore, UndoBegun, UndoFile, UndoFiles, UndoAfter,
	}
}

// The seeded bugs that the crash harness must catch (spec 12.3). They exist only under the build
// tag "faults".
const (
	BugEffectBeforeIntent = "effect-before-intent" // an action runs before its intent is committed
	BugRetryOnce          = "retry-once"           // a call of class once is run again after a crash
	BugNewKey             = "new-key"              // a keyed call is repeated under another key
	BugResultFirst        = "result-before-effect" // a result is committed before the effect happens
	// an approved call runs with the arguments from before the person's edit
	BugUnedited     = "unedited-arguments"
	BugDecidedTwice = "decided-twice"      // a second decision on a call is accepted, and wins
	BugUndoFirst    = "undo-before-intent" // files are put back before the undo is committed as intended
	BugUndoBlind    = "undo-blind"         // after a crash an undo is called done without a look at its files
	BugUnsynced     = "commit-before-sync" // a commit is acknowledged before it is on the disk
)

// The seeded bugs of the loop, which the simulation must catch (spec 12.4).
const (
	BugCounter = "counter-stuck" // replies are not counted
	BugTwice   = "result-twice"  // a model is given the results of a batch twice
	BugHalf    = "half-batch"    // a prompt holds a batch without its last result
	BugBudget  = "budget-blind"  // a model call is reserved without a look at what is spent
)

// Bugs lists the seeded bugs that show when processes are killed in the midst of calls, for the
// harness and the simulation. BugUnsynced shows only when power is lost.
func Bugs() []string {
	return []string{BugEffectBeforeIntent, BugRetryOnce, BugNewKey, BugResultFirst, BugUnedited, BugDecidedTwice}
}

// UndoBugs lists the seeded bugs that show when processes are killed while they put files back, for
// the harness: the simulation has no files.
func UndoBugs() []string { return []string{BugUndoFirst, BugUndoBlind} }

// The seeded bugs that show only where several engines share a database.
const (
	BugNoLease = "lease-ignored"   // a round is taken from an engine that holds it and lives
	BugNoEpoch = "epoch-unchecked" // who was taken over from may write all the same
)

// SharedBugs lists the seeded bugs that show only where several engines share a database, for the
// harness of nodes.
func SharedBugs() []string { return []string{BugNoLease, BugNoEpoch} }

// LoopBugs lists the seeded bugs that show in a whole session, also where nothing dies, for the
// simulation.
func LoopBugs() []string { return []string{BugCounter, BugTwice, BugHalf, BugBudget} }
