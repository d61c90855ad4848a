// Package crash is the crash harness (spec 12.3): it runs the whole program in child processes,
// kills them with SIGKILL at every fault point and at random moments, restarts them, and checks the
// invariants of spec 12.1 against a ledger of effects that is kept by another process: this one.
// docs/design.md, "Tests", says what each run looks like and what is asserted.
//
//	plan_test.go     what happens in a session, from its seed alone
//	child_test.go    the child: person_test.go follows the plan, journal_test.go outlives deaths
//	tools_test.go    the child's tools, whose effects are in the ledger
//	world_test.go    what outlives the child: ledger and scripted model
//	harness_test.go  lives and deaths; crash_test.go the tests of them
//	check_test.go    what is left of a session, held to internal/invariant and to the files
//	disk_test.go     a file system for SQLite that records; power_test.go drops the unsynced
//	open_test.go     deaths while a database is opened, replayed or migrated
//	nodes_test.go    several engines on one database (make nodes): fleet_test.go their processes,
//	                 anywhere_test.go clients that ask any of them,
//	                 interruption_test.go how long what a lost engine held stands still
//
// All of it is test code behind the build tag "faults"; make crash runs it. The harness's
// goroutines are those of its two loopback servers, the scripted model and the ledger, and one for
// each process that is to be killed at a time of its own. Among several engines there are one for
// each place and two for what its process says, one for each person, and one that measures; a fleet
// ends when all of them have. The child has one beside those of the program: it follows the log.
package crash
