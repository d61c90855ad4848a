// Package openai speaks Chat Completions with any OpenAI-compatible server (spec 6.3), always
// streamed, with the stream guard of spec 12.6: no reply is returned before its terminal marker and
// whole, valid calls were seen.
//
// The codec is our own and not the vendor's SDK: the request body is spliced from bytes that were
// encoded once (decision 31), and the stream is read tolerant of what bridges really send, which
// the SDK is not; docs/design.md has the figures.
//
// Send works on its caller's goroutine; net/http keeps its own for the connection, and a timer ends
// a silent one.
package openai
