// Package acp is Regie as an agent of the Agent Client Protocol (spec 10.1): an editor starts it,
// talks with it over standard input and output, shows what the agent does, and puts its approvals
// and questions to the person. It speaks version 1, the newest that is no draft, through
// github.com/coder/acp-go-sdk.
//
// It knows only a client of an engine. An editor that goes away stops nothing: what
// runs goes on or waits, and session/load finds it.
//
// Its goroutines: the SDK's, one for each request; follower.run of a loaded session whose run goes
// on, which ends with that run, with the next prompt, or with the connection; the feed of each
// follower, which ends with it; and one that puts what is waited for to the person, which ends with
// its answer or when nothing is waited for any more.
package acp
