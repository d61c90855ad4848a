// Package postgres is the store on PostgreSQL (spec 11.1): the transitions of package sqlite over
// another database, which several processes write to. This package has what differs: the schema,
// how a transition runs in few round trips (statements.go), how two of them are kept apart
// (hold.go), what becomes of one whose connection is lost (transact.go), how processes tell each
// other which logs have grown (feed.go), and how rounds and deadlines come to one of them
// (queue.go).
//
// Beside those of its pools a store has two goroutines, which Close ends: one tells the other
// processes what was committed here, through the pool, and one has a connection of its own, on
// which it hears them, and calls Others.Heard and Others.Missed. A Queue (queue.go) has River's
// goroutines, from Start to Stop, and calls what it was started with on them.
package postgres
