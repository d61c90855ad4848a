// Package httpapi carries Control over HTTP: today on the engine's private Unix socket (decision
// 1), with JSON, server-sent events and problem+json errors (spec 10.2), and a client that is a
// Control itself.
//
// The server's goroutines are net/http's, one for each connection. The client starts none.
package httpapi
