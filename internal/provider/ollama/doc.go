// Package ollama speaks Ollama's native API (spec 6.3): chat as a stream of JSON lines, the list of
// models, and what a model can do. No reply is returned before the line that says done and whole,
// valid calls were seen (spec 12.6).
//
// The native API and not the compatible one, because only it takes the size of the context: without
// that, Ollama cuts the beginning of a long prompt off and says nothing.
//
// It starts no goroutine: Send works on its caller's, net/http keeps its own for the connection,
// and a timer ends a silent one.
package ollama
