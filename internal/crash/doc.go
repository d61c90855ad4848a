// Package crash is the crash harness (spec 12.3): it runs the whole program in a child process, kills it with SIGKILL at every fault
// point and at random moments, restarts it, and checks the invariants of spec 12.1 against a ledger of effects that is kept by
// another process: this one.
//
// All of it is test code behind the build tag "faults"; make crash runs it. The harness's goroutines are those of its two loopback
// servers, the scripted model and the ledger.
package crash
