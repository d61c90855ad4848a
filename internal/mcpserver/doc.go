// Package mcpserver is Regie as a server of the Model Context Protocol (spec 10.2): the queries of
// a workspace, and sessions with its agents, for whatever program speaks MCP, over HTTP (Handler)
// and over standard input and output (Serve). It is the other end of internal/toolkit/mcp, which is
// Regie as a client of others' servers.
//
// It knows only what Control has. Who speaks to it is often a model: so it
// decides no approval and answers no question unless its owner has said that it may, and what it
// reads goes through the pipeline of a model's own queries.
//
// Its goroutines are those of the SDK, one for each request, which end with the connection or, of
// requests that wait, with the bound of their wait. What they follow they follow in their own
// goroutine, by Control.Events.
package mcpserver
