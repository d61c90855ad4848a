// Package wire is the shared layer below the formats of the codecs (spec 3.6, 12.6). It has the
// address with its key, requests without copies, an incremental hash of the thread, the idle limit
// of a stream, and error codes. Its collector never returns a reply with an incomplete call.
//
// It starts no goroutine: net/http keeps its own for a connection, and a timer ends a silent one.
package wire
