// Package gemini speaks Google's generateContent (spec 6.3), always streamed, with the stream guard
// of spec 12.6. The API does not mark the end of a stream. So a reply is returned only after a
// finish reason, an orderly end of the stream, and complete calls. The package holds the pure
// rendering of a thread, the reader of the stream, and the provider over HTTP.
//
// Package openai gives the reasons for a codec of our own. It starts no goroutine: Send works on
// its caller's, net/http keeps its own for the connection, and a timer ends a silent one.
package gemini
