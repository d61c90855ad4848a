// Package gemini speaks Google's generateContent (spec 6.3), always streamed, with the stream guard
// of spec 12.6: the API has no mark for the end of a stream, so no reply is returned before a
// reason for the end was seen, the stream has ended in good order after it, and its calls are
// whole. It holds the pure rendering of a thread, the strict validator of what comes out of it, the
// reader of the stream, and the provider over HTTP.
//
// The codec is our own for the reasons that package openai gives for its one. It starts no
// goroutine: Send works on its caller's, net/http keeps its own for the connection, and a timer
// ends a silent one.
package gemini
