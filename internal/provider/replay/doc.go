// Package replay answers from a recorded file, and records any provider into one (spec 6.3).
// Answering calls nothing.
//
// A recording is text that a person reads and compares with another one. Its first line names the
// format; the provider, the model and the dialect of its first call follow. Texts that many calls
// share (the prompt levels, the tools) stand in it once, each under its hash. Then comes each model
// call in its order:
//
//	call 2 after 1
//	settings max_output=4096
//	level1 3f9a6e0b12cd
//	tools 8810ab41c2f7
//	asked tool
//	result 1
//	  | a.md	12 bytes
//	answered stop
//	text
//	  | There is one file, a.md.
//	usage input=120 output=9
//	end
//
// "after 1" is the thread of call 1 with its answer, "again 1" that thread without it (a retry), so
// only what is new is written. A line of text stands behind "|", one that holds more than printable
// characters quoted behind `"`. What changes from run to run is left out: ids of calls (a result
// names its call by its place in the turn before), times, and the date and user that a round opens
// with. A UUID or a time in what was asked is written as {id} or {time}. A stream is written in
// merged form. Keys of the configured providers are never in it, nor in the raw responses that a
// Tape can keep beside it.
//
// What is replayed is found by its thread, in that form: a request that the recording does not hold
// is refused with the difference. The prompt levels, the tools and the settings are there to be
// read; they are not compared, so a recording outlives a better prompt.
//
// The package starts no goroutine. A Tape and a Player are used by many: each has one lock.
package replay
