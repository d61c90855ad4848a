// Package dispatch gives rounds to the engine: it takes submissions, claims rounds, resumes
// orphans, and carries stopping words to running rounds (spec 5.1, decisions 1, 6, 21, 25). It also
// feeds the streams: durable events from the log, deltas from memory.
//
// Each running round has one goroutine, started by Submit, Resume or Start and counted from its
// reservation to its end; Close cancels them all with engine.ErrShutdown, gives actions that run
// some seconds, and waits. Drain, before it, lets what is under way end. A stream runs on its
// reader's goroutine. The queue has goroutines of its own, the clock of deadlines in the embedded
// one; what heeds other engines' words (others.go), what keeps the lease (lease.go) and what takes
// up what others left (adopt.go, with up to eight for a look) have one goroutine each from Start to
// Close, the last one to Drain where that comes before.
package dispatch
