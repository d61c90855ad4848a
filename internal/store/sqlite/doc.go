// Package sqlite is the embedded store (spec 11.1): one SQLite file in WAL mode with
// synchronous=FULL, so that what was acknowledged survives a power cut.
//
// One goroutine, the writer, owns the only writing connection. Callers hand it transitions; it runs
// all that wait in one transaction and acknowledges them after the commit (group commit). A
// transition that fails after it has written something makes the group roll back and run again
// without it, so that neighbours never see each other's failures. Readers use a pool of their own
// and never wait for the writer.
//
// The writer starts in Open and ends in Close; no other goroutine is started here.
package sqlite
