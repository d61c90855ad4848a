// Package cache is the response cache (spec 6.4): answers without tool calls are given again to who
// asks the same once more. They are kept in the database of the sessions, and what is asked by
// several at once is asked of the model by one of them. Answers to proxied requests, which have no
// session, are held in memory.
//
// A Cache may be used from many goroutines, and starts none. Who leads a flight sends on its own
// goroutine and under its own context; the others wait for it. Where it is cancelled, which is
// nobody's failure but its own, the next of them leads.
package cache
