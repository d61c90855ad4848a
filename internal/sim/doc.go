// Package sim is the simulation (spec 12.4): whole sessions in one process under testing/synctest,
// with a hostile model, a person, tools that fail in every way, abrupt ends of the engine and jumps
// of the clock, all of it from one seed. docs/design.md, "Tests", says what is real and what
// is asserted. The same seed gives the same transcript; a plan that fails is made as small as it
// can be.
//
//	plan_test.go     what happens in a session, by its seed; model_test.go what the model says
//	dialect_test.go  how a reply becomes bytes, by dialect; json_test.go the JSON dialect
//	world_test.go    the model's server in memory, the ledger, lives and their ends
//	tools_test.go    the tools, whose effects are in the ledger
//	session_test.go  one session, from its plan to its findings
//	person_test.go   what the person does; person_actions_test.go how they send it
//	check_test.go    what is asserted at the end
//	shrink_test.go   smaller plans; sim_test.go the tests; bugs_test.go the seeded bugs
//
// All of it is test code; make sim runs it. Every goroutine of a session is in its bubble, which
// ends with the session: the program's, one for each connection to the model's server, and one that
// follows the log.
package sim
