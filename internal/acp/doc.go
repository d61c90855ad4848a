// Package acp is Regie as an agent of the Agent Client Protocol (spec 10.1): an editor starts it,
// talks with it over standard input and output, shows what the agent does, and puts its approvals
// and questions to the person. It speaks version 1, the newest that is no draft, through
// github.com/coder/acp-go-sdk.
//
// It knows only a client of an engine. An editor that disconnects stops nothing: the run continues
// or waits, and session/load finds it.
//
// Its goroutines: the SDK starts one for each request. follower.run follows the running round of a
// loaded session, until the run, the connection or the next prompt ends it. Each follower has a
// feed, which ends with it, and one goroutine that asks the person; that one ends with the answer
// or when the session no longer waits.
package acp
