// Package responses speaks OpenAI's Responses API (spec 6.3), always streamed, with the stream
// guard of spec 12.6: no reply is returned before response.completed, or response.incomplete, and
// whole, valid calls were seen.
//
// Nothing is kept at the vendor (decision 52): each request says store: false and holds the whole
// thread. What a model reasoned comes back encrypted, is stored with the thread, and goes back
// unread, in front of what it led to.
//
// The codec is our own for the reasons that package openai gives for its one. It starts no
// goroutine: Send works on its caller's, net/http keeps its own for the connection, and a timer
// ends a silent one.
package responses
