// Package postgres is the store on PostgreSQL (spec 11.1): it runs the transitions of package
// sqlite on a database that several processes write to. This package has the differences: the
// schema, the batching of statements (statements.go), the locks (locks.go), retries after a lost
// connection (transact.go), notifications between processes (notifications.go), and the jobs for
// rounds and deadlines (queue.go).
//
// Besides those of its pools a store has two goroutines, which Close ends. One notifies the other
// processes of commits, through the pool. One listens to them on a connection of its own, and calls
// Others.Heard and Others.Missed. A Queue (queue.go) has River's goroutines, from Start to Stop,
// which call the functions given to Start.
package postgres
