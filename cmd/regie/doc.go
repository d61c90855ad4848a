// Command regie is a self-hosted runtime for AI agents with controlled autonomy (spec 1): one binary, all of it.
//
// A command runs on the main goroutine. run starts one goroutine more, which follows the session's events; it ends with the events,
// at the latest when the command closes its connection.
package main
