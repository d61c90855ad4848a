// Package demo is a provider without a model (spec 6.3): rules that understand a few requests in English and French and drive the
// real tools through the real loop. It says plainly that it is not a model.
//
//	demo.go     the provider: streaming, usage, the hash of a request
//	request.go  what a person asks for
//	words.go    the words of both languages
//	thread.go   what was done for the request so far
//	jobs.go     list, read, write
//	digest.go   the main job: read every text, write one summary of each
//	extract.go  a summary without a model
//	phrases.go  what the rules say
//
// A reply is a pure function of the declared tools and the turns of the thread, so a run that is killed and resumed goes on as any
// model's would. What stands in files, results and standard input is data to the rules: no instruction in it is ever followed. The
// package starts no goroutine.
package demo
