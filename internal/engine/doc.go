// Package engine runs one round: a persisted state machine (spec 3.1). Each step ends in one store
// transition, so any process can go on with the round from its stored state.
//
// A round is a run: a loop over the phases MODEL and CALLS (round.go). The run makes the
// transitions that advance the round; its parts decide and prepare. Each part embeds the run, for
// the roundState and the other parts:
//
//	roundState     state.go, messages.go  the round as stored, its stop word, its messages
//	promptHead     prompt_head.go         levels, tools and dialect of a request
//	targetList     fallback.go, network_wait.go  providers to ask, their failures, prices
//	contextBudget  context.go, thread.go, summary.go, thread_cache.go  the thread and its size
//	money          money.go               caps, reservations, costs
//	modelCall      model.go, response_cache.go  attempts, stream, response cache
//	planner        plan.go                calls of a reply
//	toolRunner     runner.go, early_calls.go  tools, and queries that start with the reply
//	callHooks      hooks.go               hooks of calls and rounds
//	judge          judge.go               verdicts under the rules of the moment
//	asker          ask.go                 approvals and questions
//	recovery       recover.go             calls that a dead process had started
//	callBatch      calls.go               the calls of the exchange, results in order, intents
//	closer         closing.go             what follows a batch or an answer
//	enricher       enrich.go              files that messages name
//	loopGuard      loop_guard.go          repetition and loops; limits.go has the counters
//
// stop.go ends, pauses and releases rounds; memo.go keeps values that never change. prompt_view.go
// and replay.go rebuild stored requests.
//
// # Goroutines
//
// Run works on its caller's goroutine, and so do all parts. A run starts goroutines for two things,
// and waits for each of them before it returns: queries of one batch (callBatch.runQueries), and
// queries that start with their reply (toolRunner.startEarly, ended by stopEarly). They touch only
// their own call.
// The timer of modelCall.watchSilence reads values that were copied for it.
package engine
