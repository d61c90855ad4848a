// Command bench measures Regie against the floor (spec performance.md, 12.7): a bare Go loop that
// does the same HTTP, the same stream, the same no-op tools and two SQLite commits a tool exchange,
// and nothing else. What counts is the ratio in one run on one machine; absolute figures move from
// machine to machine.
//
//	main.go     the flags, the order of the trials, the tables
//	server.go   the scripted model server, a process of its own, which also measures the gaps
//	floor.go    the floor
//	regie.go    Regie, as an application embeds it
//	postgres.go P8: PostgreSQL against SQLite, two nodes against one, queries of an exchange
//	search.go   P9: search_text against ripgrep
//	index.go    P11: the index of the Go sources, cold and unchanged
//	retrieval.go what files.search_semantic finds here: questions (testdata), recall and rank
//	vectors.go  P10: search_semantic by words and vectors
//	schedule.go the next instant of a schedule
//	trial.go    one trial of one contestant, a process of its own
//	stats.go    medians and percentiles
//
// Two nodes are two trials at once. A trial runs its runs on as many goroutines as it has
// concurrent runs and waits for all of them. The floor's group commit has one goroutine more, its
// writer, which ends with its channel.
package main
