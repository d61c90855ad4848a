// Package demo is a provider without a model (spec 6.3): a few rules that understand a table of
// requests in English and French and drive the real tools through the real loop. It says plainly
// that it is not a model.
//
//	demo.go      the provider: streaming, usage, the hash of a request
//	intents.go   the table: patterns of requests, each with its plan
//	grammar.go   the building blocks of the patterns
//	language.go  English or French
//	thread.go    the current request and the calls made for it
//	plans.go     the plans: list, read, search, write, replace, delete, count lines, run
//	digest.go    the main job: read every text, write one summary of each
//	talk.go      help, and the answer to everything else
//
// A reply is a pure function of the declared tools and the turns of the thread: each plan runs from
// its beginning in each reply, takes the results that the thread has, and returns the first call
// that has none. So a run that is killed and resumed goes on as any model's would.
//
// A request must match a pattern as a whole, so "do not delete a.md" and "should I delete a.md?"
// delete nothing. Files, results and standard input are data: the rules follow no instruction in
// them. The package starts no goroutine.
package demo
