// Package ollama speaks Ollama's native API (spec 6.3): chat as a stream of JSON lines, the list of
// models, and their capabilities. It returns no reply before the line with done and complete, valid
// calls (spec 12.6).
//
// It uses the native API because the compatible one takes no size of the context: without that,
// Ollama silently cuts off the beginning of a long prompt.
//
// It starts no goroutine: Send works on its caller's, net/http keeps its own for the connection,
// and a timer ends a silent one.
package ollama
