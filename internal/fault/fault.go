// Package fault names the places where a crash would hurt most (spec 12.3). In a release build a point is an empty function that
// the compiler removes; with the build tag "faults" the process kills itself at the point that REGIE_FAULT names.
package fault

// The fault points. Each is the moment just before or after what its name says.
const (
	SubmitBefore  = "submit-before"  // a user message, before its commit
	SubmitAfter   = "submit-after"   // after its commit
	ClaimAfter    = "claim-after"    // a round was claimed anew
	ModelBefore   = "model-before"   // before the request is sent
	ModelMid      = "model-mid"      // after the first delta
	ModelAfter    = "model-after"    // the whole reply is here, nothing of it is stored
	ReplyAfter    = "reply-after"    // reply, calls and the first intent are committed
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
	EndBefore     = "end-before"     // before the answer is committed
	EndAfter      = "end-after"      // after it

	PendingBefore  = "pending-before"  // a message for a busy session, before its commit
	PendingAfter   = "pending-after"   // after it
	AdmitBefore    = "admit-before"    // pending messages get their places in the thread, before that commit
	StopBefore     = "stop-before"     // a stopping word, before its commit
	StopAfter      = "stop-after"      // after it, before anybody obeys
	ResumeAfter    = "resume-after"    // a pause is taken back, before anybody goes on
	WithdrawBefore = "withdraw-before" // what waited for a person is withdrawn, before that commit
	ExpireBefore   = "expire-before"   // what nobody answered in time is given up, before that commit
	ExpireAfter    = "expire-after"    // after it, before the round goes on
	OpenBefore     = "open-before"     // the files are as they were left
	OpenAfter      = "open-after"      // SQLite has replayed its log; nothing has gone on yet

	BackupBefore  = "backup-before"  // before a migration: its backup is written and has not its name yet
	MigrateBefore = "migrate-before" // the backup is there, the schema is the old one
	MigrateAfter  = "migrate-after"  // the schema is the new one, nothing was read under it
)

// MigrationPoints lists the fault points of a migration: a process passes them once in the life of a database.
func MigrationPoints() []string { return []string{BackupBefore, MigrateBefore, MigrateAfter} }

// Points lists the fault points that a run can pass, for the harness.
func Points() []string {
	return []string{
		SubmitBefore, SubmitAfter, ClaimAfter, ModelBefore, ModelMid, ModelAfter, ReplyAfter, IntentBefore, IntentAfter, EffectAfter,
		ResultAfter, QueriesAfter, SettledBefore, SettledAfter, RecoverBefore, RecoverAfter, DecideBefore, DecideAfter,
		AskBefore, AskAfter, EndBefore, EndAfter, PendingBefore, PendingAfter, AdmitBefore, StopBefore, StopAfter, ResumeAfter, WithdrawBefore,
		ExpireBefore, ExpireAfter, OpenBefore, OpenAfter,
	}
}

// The seeded bugs that the crash harness must catch (spec 12.3). They exist only under the build tag "faults".
const (
	BugEffectBeforeIntent = "effect-before-intent" // an action runs before its intent is committed
	BugRetryOnce          = "retry-once"           // a call of class once is run again after a crash
	BugNewKey             = "new-key"              // a keyed call is repeated under another key
	BugResultFirst        = "result-before-effect" // a result is committed before the effect happens
	BugUnedited           = "unedited-arguments"   // an approved call runs with the arguments from before the person's edit
	BugDecidedTwice       = "decided-twice"        // a second decision on a call is accepted, and wins
	BugUnsynced           = "commit-before-sync"   // a commit is acknowledged before it is on the disk
)

// Bugs lists the seeded bugs that show when processes are killed, for the harness. BugUnsynced shows only when power is lost.
func Bugs() []string {
	return []string{BugEffectBeforeIntent, BugRetryOnce, BugNewKey, BugResultFirst, BugUnedited, BugDecidedTwice}
}
