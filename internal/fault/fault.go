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
)

// Points lists all fault points, for the harness.
func Points() []string {
	return []string{
		SubmitBefore, SubmitAfter, ClaimAfter, ModelBefore, ModelMid, ModelAfter, ReplyAfter, IntentBefore, IntentAfter, EffectAfter,
		ResultAfter, QueriesAfter, SettledBefore, SettledAfter, RecoverBefore, RecoverAfter, DecideBefore, DecideAfter,
		AskBefore, AskAfter, EndBefore, EndAfter,
	}
}

// The seeded bugs that the crash harness must catch (spec 12.3). They exist only under the build tag "faults".
const (
	BugEffectBeforeIntent = "effect-before-intent" // an action runs before its intent is committed
	BugRetryOnce          = "retry-once"           // a call of class once is run again after a crash
	BugNewKey             = "new-key"              // a keyed call is repeated under another key
	BugResultFirst        = "result-before-effect" // a result is committed before the effect happens
)

// Bugs lists all seeded bugs, for the harness.
func Bugs() []string {
	return []string{BugEffectBeforeIntent, BugRetryOnce, BugNewKey, BugResultFirst}
}
