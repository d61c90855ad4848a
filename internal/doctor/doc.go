// Package doctor says what is right and wrong on a machine (spec 10.1), each with what to do about
// it.
//
//	doctor.go     the checks and the findings
//	settings.go   configuration, secrets, MCP servers
//	model.go      the chosen model and the other servers
//	data.go       the data directory and its disk
//	database.go   the database
//	shared.go     a shared PostgreSQL
//	engine.go     the engine, the clock, the workspace
//	commands.go   the sandbox of commands
//	machine.go    the terminal
//
// It changes nothing: it makes no directory, no database and no key, and takes no lock for longer
// than a look. What it writes to try a disk is a file without a name. It starts no goroutine and
// makes no request: Subject's functions bring the results of other packages.
package doctor
