// Package wire is what the codecs of model APIs share below their formats (spec 3.6, 12.6): the
// address and its key, the request whose bytes are not copied and whose hash does not grow dearer
// with the thread, the stream that may not fall silent, the names of what goes wrong, and the
// collector that returns no reply with half a call in it.
//
// It starts no goroutine: net/http keeps its own for a connection, and a timer ends a silent one.
package wire
