// Package anthropic speaks the Messages API (spec 6.3), always streamed, with the stream guard of
// spec 12.6: it returns no reply before message_stop and complete, valid calls. It holds the pure
// rendering of a thread, the reader of the stream, and the provider over HTTP.
//
// Package openai gives the reasons for a codec of our own. It starts no goroutine: Send works on
// its caller's, net/http keeps its own for the connection, and a timer ends a silent one.
package anthropic
