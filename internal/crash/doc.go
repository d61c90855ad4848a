// Package crash is the crash harness (spec 12.3). It runs the whole program in child processes,
// kills them with SIGKILL at every fault point and at random moments, and restarts them. This
// process keeps a ledger of effects and checks the invariants of spec 12.1 against it.
// docs/design.md, "Tests", describes each run and its assertions.
//
//	plan_test.go     what happens in a session, from its seed alone
//	child_test.go    the child: person_test.go follows the plan, journal_test.go outlives deaths
//	tools_test.go    the child's tools, whose effects are in the ledger
//	world_test.go    what outlives the child: ledger and scripted model
//	harness_test.go  lives and deaths; crash_test.go the tests of them
//	check_test.go    what is left of a session, held to internal/invariant and to the files
//	disk_test.go     a file system for SQLite that records; power_loss_test.go drops the unsynced
//	killed_migration_test.go  deaths while a database is opened, replayed or migrated
//	nodes_test.go    several engines on one database (make nodes): fleet_test.go their processes,
//	                 any_engine_test.go clients that ask any of them,
//	                 interruption_test.go the downtime of a lost engine's sessions
//
// All of it is test code behind the build tag "faults"; make crash runs it. The harness has one
// goroutine for each of its two loopback servers, the scripted model and the ledger, and one for
// each process with a planned kill. A fleet of several engines has one for each place, two for its
// process's output, one for each person, and one that measures; it ends when all have ended. The
// child adds one to those of the program: it follows the log.
package crash
