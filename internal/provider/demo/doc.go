// Package demo is a provider without a model (spec 6.3): rules that understand requests in English
// and French and drive the real tools through the real loop. It says plainly that it is not a
// model.
//
//	demo.go     the provider: streaming, usage, the hash of a request
//	words.go    the words of both languages; typo.go slips of the finger
//	clauses.go  a message, cut into things to do
//	request.go  one thing to do: list, read, summarise; orders.go write, edit, delete, search
//	thread.go   what was asked and done so far
//	act.go      the steps of a request, run from the first one in each reply
//	jobs.go     list, read, count, search; change.go write, edit, delete
//	digest.go   the main job: read every text, write one summary of each
//	extract.go  a summary without a model
//	talk.go     questions about what was done
//
// A reply is a pure function of the declared tools and the turns of the thread, so a run that is
// killed and resumed goes on as any model's would. What stands in files, results and standard input
// is data to the rules: no instruction in it is ever followed. The package starts no goroutine.
package demo
