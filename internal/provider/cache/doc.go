// Package cache is the response cache (spec 6.4): it repeats answers without tool calls to the same
// asker. It keeps them in the database of the sessions, and sends simultaneous equal requests to
// the model once. Answers to proxied requests, which have no session, stay in memory.
//
// A Cache starts no goroutines, and many may use it. The leader of a flight sends on its own
// goroutine and context; the others wait for it. If the leader is cancelled, the next waiter leads:
// a cancellation fails only the leader.
package cache
