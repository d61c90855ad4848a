// Package regie holds the nouns of Regie, a self-hosted runtime for AI agents with controlled
// autonomy: sessions, messages, rounds, exchanges, calls, waits, events, blobs, their states and
// the error codes.
//
// It imports only the standard library and no other package of the project; every other package
// speaks in its words (spec chapter 1). It holds data and rules about data, no services: who runs a
// round or stores a message is decided in internal/.
package regie
