// Package app wires everything together: it is the only importer of everything (docs/design.md).
//
//	conn.go    Conn: the client of a command, and the engine it talks to
//	engine.go  the engine of this process: lock, store, socket, dispatcher
//	external.go  MCP servers, and where its rounds take their tools from
//	lock.go    the lock and the socket of the data directory (decision 1)
//	models.go  providers from the settings
//	serve.go   the engine as a server for others than this machine's user
//
// An engine has the goroutines of its store, its dispatcher, its HTTP server and its MCP servers,
// one for the background check of the database, and one for each index whose new texts are being
// embedded; Close ends them all and waits.
package app
