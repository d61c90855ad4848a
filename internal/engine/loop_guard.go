package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

const (
	maxStalled = 2    // exchanges in a row without progress (spec 3.2)
	maxQuoted  = 1000 // bytes of an earlier result or error inside a sentence
)

// loopGuard tells honest repetition from going round in circles (spec 4.3, decisions 9 and 30). It
// reads the session's thread in order and judges the next proposed calls. It does no I/O and knows
// no clock: its windows are exchanges, and after reading the stored thread again it judges as
// before. One goroutine uses it.
//
// It remembers the calls of the present round, the ids of earlier actions, and UNKNOWN calls. What
// it forgets, it lets run.
type loopGuard struct {
	tools *tool.Registry
	byID  map[callKey]*remembered
	// reused says that ids of this session's provider do not tell calls apart. A query then runs
	// again; an action does not (decision 9).
	reused  bool
	unknown map[regie.ID]regie.Hash // by call: what ran and has no known outcome

	last  *remembered // the last action that ran; nil where it does not matter any more
	heard bool        // a person said something since

	// The rest is about one round and starts anew with the next.
	round    regie.ID
	answered map[regie.Hash]*remembered // cacheable queries since the last action
	failed   map[regie.Hash]*failure
	seen     map[regie.Hash]struct{}
	stalled  int // exchanges in a row without progress
}

// callKey is a provider's id with the signature that came with it: two calls may share an id by
// accident, but not both.
type callKey struct {
	id        string
	signature regie.Hash
}

// remembered is an executed call without its arguments.
type remembered struct {
	call regie.Call
	ran  regie.Hash // the signature of what ran: of the edited arguments, where a person edited them
}

// failure is a call that would fail again with the same arguments.
type failure struct {
	first   *remembered
	repeats int // how often it was proposed again since
}

// proposed is what the guard needs of a call in addition to its row.
type proposed struct {
	// providerID is the id as the model wrote it: that of the row is another one where it repeats
	// (decision 8).
	providerID string
	// before are the calls of the same reply that stand before it, as they are now. One that is
	// still open is taken to run.
	before []regie.Call
}

// guardVerdict is what becomes of a proposed call. Where notRun is set the call is settled with it
// and with either result or problem; else the guard has nothing against it.
type guardVerdict struct {
	notRun  regie.NotRunCode
	result  string
	problem *regie.CallError
	// overridable says that a person's approval of this very call lets it run all the same.
	overridable bool
	// endRound says that the round ends EARLY_STOP once the batch is stored; note is the sentence
	// that names the rule.
	endRound bool
	note     regie.Sentence
}

// The codes that the model reads (spec 4.3).
const (
	codeAntiLoopID        regie.Code = "ANTI_LOOP_ID"
	codeAntiLoopSignature regie.Code = "ANTI_LOOP_SIGNATURE"
	codeRepeatedFailure   regie.Code = "REPEATED_FAILURE"
)

// newLoopGuard returns a guard that has seen nothing.
func newLoopGuard(tools *tool.Registry) *loopGuard {
	g := &loopGuard{tools: tools, byID: map[callKey]*remembered{}, unknown: map[regie.ID]regie.Hash{}}
	g.leaveRound()
	return g
}

// observeMessage takes the next stored message of the thread with its calls, all settled. A system
// message has none: results belong to the calls of their reply.
func (g *loopGuard) observeMessage(message *regie.Message, calls []regie.Call) {
	if isNews(message) {
		g.noteWord()
	}
	if message.System != nil && message.System.Type == regie.SystemUndone {
		g.forgetUndone(message.System.Undone)
	}
	if message.System != nil || len(calls) == 0 {
		return
	}
	g.enterRound(calls[0].RoundID)
	if message.AI != nil { // a person's enrichments are no exchange
		g.stalled++
		if g.hasProgress(calls) {
			g.stalled = 0
		}
	}
	for i := range calls {
		g.addCall(&calls[i], modelCallID(message, &calls[i]))
	}
}

// isNews reports whether a message gives a reason to do once more what was just done: a person
// spoke, a task came back, or what was done was undone.
func isNews(message *regie.Message) bool {
	if message.System != nil {
		return message.System.Type == regie.SystemTaskResult || message.System.Type == regie.SystemUndone
	}
	return message.Sender == regie.SenderUser
}

// noteWord clears what a person's message makes obsolete: the person may have repaired what failed.
func (g *loopGuard) noteWord() {
	g.heard, g.stalled = true, 0
	clear(g.failed)
}

// enterRound begins another round.
func (g *loopGuard) enterRound(round regie.ID) {
	if round != g.round {
		g.leaveRound()
		g.round, g.stalled = round, 0
	}
}

// leaveRound drops what only the round that has ended needs.
func (g *loopGuard) leaveRound() {
	g.answered, g.failed, g.seen = map[regie.Hash]*remembered{}, map[regie.Hash]*failure{}, map[regie.Hash]struct{}{}
	maps.DeleteFunc(g.byID, func(_ callKey, entry *remembered) bool { return entry.call.Kind == regie.KindQuery })
}

// addCall remembers a settled call.
func (g *loopGuard) addCall(call *regie.Call, providerID string) {
	entry := &remembered{call: *call, ran: g.signatureOf(call)}
	entry.call.Arguments, entry.call.Executed, entry.call.Intent = "", nil, nil
	definition := g.definitionOf(call)
	if hasOwnID(call) && call.NotRun != regie.NotRunAntiLoop && call.NotRun != regie.NotRunDuplicateInBatch {
		g.reused = true
	}
	delete(g.unknown, call.ID)
	if call.State == regie.CallUnknown {
		g.unknown[call.ID] = entry.ran
	}
	g.addFailure(entry)
	g.seen[resultHash(call)] = struct{}{}
	switch {
	case !hasRun(call):
		return
	case call.Kind == regie.KindAction:
		g.last, g.heard = entry, false
		clear(g.answered)
	case call.State == regie.CallSucceeded && definition.Role == regie.RoleQuestion:
		g.noteWord() // the person's answer
	case call.State == regie.CallSucceeded && definition.Cacheable:
		g.answered[entry.ran] = entry
	}
	if providerID != "" {
		g.byID[callKey{providerID, call.Signature}] = entry
	}
}

// addFailure counts failures that would come again, and proposals of them.
func (g *loopGuard) addFailure(entry *remembered) {
	call := &entry.call
	before := g.failed[entry.ran]
	switch {
	case call.State == regie.CallSucceeded:
		delete(g.failed, entry.ran)
	case before == nil && failedForGood(call):
		g.failed[entry.ran] = &failure{first: entry}
	case before != nil && (failedForGood(call) || call.NotRun == regie.NotRunRepeatedFailure):
		before.repeats++
	}
}

// judgeProposal decides whether a proposed call may run, and returns the earlier call that speaks
// against it, without its arguments. It runs before the row gets a new provider id, and may run
// again before the call starts: then the calls before it are settled, and its verdict is exact.
func (g *loopGuard) judgeProposal(call *regie.Call, definition regie.ToolDefinition, in proposed) (guardVerdict,
	*regie.Call,
) {
	signature := g.signatureOf(call)
	var verdict guardVerdict
	acted := actedOtherwise(in.before, signature, g.signatureOf)
	earlier := g.sameID(call, in)
	switch {
	case earlier != nil:
		verdict.sameID(earlier, call)
	case call.RoundID == g.round && g.failed[signature] != nil:
		f := g.failed[signature]
		earlier = f.first
		verdict.sameFailure(f, call)
	case call.Kind == regie.KindAction && !acted && g.justDone(signature):
		earlier = g.last
		verdict.sameAction(earlier, call)
	case definition.Cacheable && call.Kind == regie.KindQuery && call.RoundID == g.round && !acted &&
		g.answered[signature] != nil:
		earlier = g.answered[signature]
		verdict.notRun, verdict.result = regie.NotRunCached, earlier.call.Result
	}
	if earlier == nil {
		return verdict, nil
	}
	found := earlier.call
	return verdict, &found
}

// sameID finds an executed call that came with the same provider id and signature (decision 9).
func (g *loopGuard) sameID(call *regie.Call, in proposed) *remembered {
	if in.providerID == "" || g.reused && call.Kind == regie.KindQuery {
		return nil
	}
	return g.byID[callKey{in.providerID, call.Signature}]
}

// justDone reports whether an identical action is the last thing that happened, and succeeded.
func (g *loopGuard) justDone(signature regie.Hash) bool {
	return g.last != nil && !g.heard && g.last.ran == signature && g.last.call.State == regie.CallSucceeded
}

func (g *loopGuard) isUnknown(signature regie.Hash) bool {
	return slices.Contains(slices.Collect(maps.Values(g.unknown)), signature)
}

// hasProgress reports whether a settled batch brought anything that its round did not have
// (decision 30): an action changed something, or may have; a query gave another answer than before;
// a call failed in a way that is new, or that a retry may get over, which the retry counter bounds;
// a query that polls was asked, which the query limit bounds.
func (g *loopGuard) hasProgress(calls []regie.Call) bool {
	return len(calls) == 0 || anyCall(calls, g.isProgress)
}

func (g *loopGuard) isProgress(call *regie.Call) bool {
	switch call.NotRun {
	case regie.NotRunCached, regie.NotRunAntiLoop, regie.NotRunRepeatedFailure, regie.NotRunDuplicateInBatch:
		return false
	}
	action := call.Kind == regie.KindAction
	switch definition := g.definitionOf(call); {
	case action && (call.State == regie.CallSucceeded || call.State == regie.CallUnknown),
		action && call.State == regie.CallFailed && call.Error != nil && call.Error.Retryable,
		definition.Polling && call.State != regie.CallNotRun,
		definition.Role == regie.RoleQuestion && call.State == regie.CallSucceeded:
		return true
	}
	_, known := g.seen[resultHash(call)]
	return !known || call.RoundID != g.round
}

// goesInCircles returns the sentence that names the rule where a settled batch, not yet observed,
// is the second in a row without progress: the round ends EARLY_STOP. Else it returns nothing.
func (g *loopGuard) goesInCircles(calls []regie.Call) regie.Sentence {
	if g.hasProgress(calls) || calls[0].RoundID != g.round || g.stalled+1 < maxStalled {
		return regie.Sentence{}
	}
	return regie.Say("%s replies in a row brought nothing new and changed nothing", strconv.Itoa(maxStalled))
}

func (g *loopGuard) definitionOf(call *regie.Call) regie.ToolDefinition {
	if target, _, ok := g.tools.Lookup(call.Tool); ok {
		return target.Definition()
	}
	return regie.ToolDefinition{}
}

// signatureOf returns that of what runs, or ran.
func (g *loopGuard) signatureOf(call *regie.Call) regie.Hash {
	if len(call.Executed) == 0 {
		return call.Signature
	}
	return g.tools.Check(call.Tool, string(call.Executed)).Signature
}

// sameID is the verdict on a call that the provider delivers twice: it gets the result that it has.
func (v *guardVerdict) sameID(earlier *remembered, call *regie.Call) {
	v.notRun = regie.NotRunAntiLoop
	of := &earlier.call
	if of.State == regie.CallSucceeded {
		v.result = "[" + string(codeAntiLoopID) +
			": this very call was made before and was not run again; this is its result]\n" + of.Result
		return
	}
	v.problem = &regie.CallError{Code: codeAntiLoopID, Message: "not run again: this very call was made " +
		placeOf(of, call)}
	if of.State == regie.CallUnknown {
		v.problem.Message += ", and its outcome is not known"
		v.problem.Hint = "verify before you try again"
		return
	}
	v.problem.Message += " and failed: " + failureOf(of)
	v.problem.Param, v.problem.Hint, v.problem.Retryable = of.Error.Param, of.Error.Hint, of.Error.Retryable
}

// sameFailure is the verdict on a call that would fail again.
func (v *guardVerdict) sameFailure(f *failure, call *regie.Call) {
	of := &f.first.call
	v.notRun = regie.NotRunRepeatedFailure
	v.problem = &regie.CallError{
		Code: codeRepeatedFailure, Message: "not run again: this call failed " + placeOf(of, call) +
			" and would fail in the same way: " + failureOf(of),
		Param: of.Error.Param, Hint: of.Error.Hint,
	}
	if v.problem.Hint == "" {
		v.problem.Hint = "change the arguments or take another way; the run ends if this call comes once more"
	}
	if f.repeats > 0 {
		v.endRound = true
		v.note = regie.Say("a call of %s that cannot succeed was proposed for the third time",
			regie.ToolNameOf(call.Tool))
	}
}

// sameAction is the verdict on an action that was just done.
func (v *guardVerdict) sameAction(earlier *remembered, call *regie.Call) {
	of := &earlier.call
	v.notRun, v.overridable = regie.NotRunAntiLoop, true
	v.problem = &regie.CallError{
		Code: codeAntiLoopSignature,
		Message: "not run again: the same action succeeded " + placeOf(of, call) +
			", and since then no other action ran and nobody said anything",
		Hint: "it is done: go on, or answer; if it is to be done once more, ask the person",
	}
	if of.Result != "" {
		v.problem.Message += "; its result: " + truncateQuote(of.Result)
	}
}

// placeOf returns the place of an earlier call, as the model counts.
func placeOf(earlier, call *regie.Call) string {
	if earlier.RoundID != call.RoundID {
		return "in an earlier run of this conversation"
	}
	return fmt.Sprintf("in reply %d of this run", earlier.Exchange)
}

func failureOf(call *regie.Call) string {
	return string(call.Error.Code) + ": " + truncateQuote(call.Error.Message)
}

// truncateQuote bounds a text that goes into a sentence.
func truncateQuote(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "…"
}

// hasRun reports whether a settled call's tool was run, with any result.
func hasRun(call *regie.Call) bool {
	switch call.State {
	case regie.CallSucceeded, regie.CallUnknown:
		return true
	case regie.CallFailed: // an action that could not be prepared was never started
		return call.Error != nil && (call.Kind == regie.KindQuery || !call.StartedAt.IsZero())
	default:
		return false
	}
}

// failedForGood reports whether the same call would fail again (decision 30: only errors that no
// retry gets over count).
func failedForGood(call *regie.Call) bool {
	// a person found out: it may be tried again
	if call.Error == nil || call.Error.Retryable || call.Resolution != nil {
		return false
	}
	return call.State == regie.CallFailed || call.NotRun == regie.NotRunInvalid || call.NotRun == regie.NotRunOutOfScope
}

// actedOtherwise reports whether one of the calls before is an action that ran, or is going to,
// with another signature.
func actedOtherwise(before []regie.Call, signature regie.Hash, of func(*regie.Call) regie.Hash) bool {
	return anyCall(before, func(c *regie.Call) bool {
		return isAction(c) && (hasRun(c) || isOpen(c)) && of(c) != signature
	})
}

// resultHash returns the hash of what a call gave for what it asked. Two questions with one answer
// ("no matches") are two pieces of information. Of a shortened result the whole counts: its marker
// is never twice the same.
func resultHash(call *regie.Call) regie.Hash {
	result := []byte(call.Result)
	if !call.ResultBlob.IsZero() {
		result = call.ResultBlob[:]
	}
	problem, err := json.Marshal(call.Error)
	if err != nil { // strings and booleans always encode
		problem = nil
	}
	asked := call.Signature[:]
	switch call.NotRun {
	case regie.NotRunOutOfScope, regie.NotRunInvalid, regie.NotRunOverLimit:
		// nothing was asked: the same refusal is nothing new
		asked = []byte(call.Tool)
	default:
	}
	data := make([]byte, 0, len(asked)+len(call.State)+len(result)+len(problem)+2)
	data = append(append(append(data, asked...), call.State...), 0)
	data = append(append(append(data, problem...), 0), result...)
	return regie.HashOf(data)
}

// modelCallID returns the id that the model gave a call, empty without one: the row has another
// where it repeats (decision 8).
func modelCallID(message *regie.Message, call *regie.Call) string {
	if message.AI != nil {
		for i := range message.AI.Parts {
			if part := &message.AI.Parts[i]; part.CallID == call.ID && part.ProviderCallID != "" {
				return part.ProviderCallID
			}
		}
	}
	if hasOwnID(call) {
		return ""
	}
	return call.ProviderCallID
}

// hasOwnID reports whether a call's provider id was made here because the model's own repeated, or
// was none (decision 8). A copy in a fork has the provider id of the call that was made.
func hasOwnID(call *regie.Call) bool {
	return call.ProviderCallID == "call_"+call.ID.String() || !call.CopyOf.IsZero() &&
		call.ProviderCallID == "call_"+call.CopyOf.String()
}

// forgetUndone forgets the ids of the round that a person took back: its actions may run again.
func (g *loopGuard) forgetUndone(undone *regie.Undone) {
	maps.DeleteFunc(g.byID, func(_ callKey, entry *remembered) bool {
		return undone == nil || entry.call.RoundID == undone.RoundID
	})
}
