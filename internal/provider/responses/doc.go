// Package responses speaks OpenAI's Responses API (spec 6.3), always streamed, with the stream
// guard of spec 12.6: it returns no reply before response.completed, or response.incomplete, and
// complete, valid calls.
//
// The vendor stores nothing (decision 52): each request has store: false and the whole thread. A
// model's reasoning comes encrypted, is stored with the thread, and goes back unread, in front of
// the output that it led to.
//
// Package openai gives the reasons for a codec of our own. It starts no goroutine: Send works on
// its caller's, net/http keeps its own for the connection, and a timer ends a silent one.
package responses
