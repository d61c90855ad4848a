// Package mcpserver is Regie as a server of the Model Context Protocol (spec 10.2): it serves the
// queries of a workspace, and sessions with its agents, over HTTP (Handler) and over standard input
// and output (Serve). Package internal/toolkit/mcp is the client of other servers.
//
// It knows only Control. Its client is often a model, so the client decides no approval and answers
// no question unless the owner allows it. Its reads go through the pipeline of a model's own
// queries.
//
// Its goroutines are those of the SDK, one for each request, which end with the connection or
// with the limit of a wait. Each follows its session on its own goroutine, by Control.Events.
package mcpserver
