// Package postgres is the store on PostgreSQL (spec 11.1): the transitions of package sqlite over a
// database that several processes write to. This package has what differs: the schema, transitions
// in few round trips (statements.go), locks (hold.go), recovery of a transition after a lost
// connection (transact.go), notifications between processes (feed.go), and the distribution of
// rounds and deadlines (queue.go).
//
// Besides those of its pools a store has two goroutines, which Close ends: one notifies the other
// processes of commits, through the pool, and one listens on a connection of its own, and calls
// Others.Heard and Others.Missed. A Queue (queue.go) has River's goroutines, from Start to Stop,
// and calls its callbacks on them.
package postgres
