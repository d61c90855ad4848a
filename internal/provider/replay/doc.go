// Package replay answers from a recorded file, and records any provider into one (spec 6.3).
// Answering calls nothing.
//
// A recording is JSON lines. The first line names the format, each other one is a model call:
//
//	{"format":"regie-recording-3"}
//	{"call":1,"provider":"p","head":{…},"asked":[…],"reply":{…}}
//	{"call":2,"after":1,"provider":"p","head_of":1,"asked":[…],"failed":{…}}
//
// "after" continues the thread of another call, so "asked" holds only new turns; a head (prompt
// levels, tools, settings) comes once. A recording leaves out what differs between runs: ids of
// calls (a result names its call by its place in the turn before), times, and the date and user
// that open a round. {id} and {time} replace UUIDs and times in what was asked. A Player streams
// each part of a reply in one piece. Keys of the configured providers are masked.
//
// A Player finds a call by its thread. It refuses a request that the recording does not hold and
// shows the difference. It does not compare prompts and settings, so a recording outlives a better
// prompt.
//
// The package starts no goroutine. Many goroutines may use a Tape or a Player: each has one lock.
package replay
