// Package cache is the response cache (spec 6.4): answers without tool calls are given again to who
// asks the same once more. Level one is in memory, level two in the database of the sessions, and
// what is asked by several at once is asked of the model by one of them.
//
// A Cache may be used from many goroutines, and starts none. Who leads a flight sends on its own
// goroutine and under its own context; the others wait for it. Where it is cancelled, which is
// nobody's failure but its own, the next of them leads.
package cache
