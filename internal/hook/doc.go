// Package hook runs the commands that a person has set up to be told of calls and rounds, and to
// object to them (spec 13). A hook is the person's own program: it is declared outside of projects,
// it runs unconfined, and it can make a verdict stricter and never milder (decision 19).
//
// A hook that must be heard and is not (it crashes, takes too long, says nothing that can be read)
// counts as an objection.
//
// # Who owns what
//
// Set.Run works on its caller's goroutine and runs one command after the other. Each command has a
// process group of its own, which is killed at the hook's timeout, when the caller's context ends,
// and when the command itself has ended: nothing of it is left behind. The goroutines that copy
// what it reads and writes are exec.Cmd's, which waits for them at most drainTime.
package hook
