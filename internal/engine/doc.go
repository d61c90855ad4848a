// Package engine runs one round: a persisted state machine (spec 3.1). Each phase is a method that
// ends in one store transition, so that any process can go on with the round from where it stands,
// and nothing is relied on that is not stored.
//
//	engine.go   what the engine needs, and Run
//	round.go    the loop
//	model.go    phase MODEL: the model call, its attempts
//	fallback.go other providers that go on where one does not answer
//	cached.go   answers that were given before
//	plan.go     from a reply to calls: what may run, what is refused, what starts first
//	calls.go    phase CALLS: queries side by side, actions one by one, intent before effect
//	hooks.go    what a person has set up around calls and rounds
//	tools.go    tools that are away: who is told, what waits for them
//	recover.go  what becomes of a call that was started by a process that died
//	context.go  the budget of a prompt: summaries, and what is left out where there is none
//	head.go     what of a request is not its thread, frozen
//	show.go     prompts as they would be sent, or were
//	stop.go     interrupt, pause, stop
//	limits.go   the counters, pure
//	thread.go   the thread for the model, rebuilt from the store, kept while the round runs
//
// Run works on its caller's goroutine. It starts goroutines only for neighbouring queries of one
// batch and waits for all of them.
package engine
