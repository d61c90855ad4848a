package store

import "time"

// KeysKept is how long an Idempotency-Key is remembered, at the least (spec 10.2).
const KeysKept = 24 * time.Hour

// KeyedWrite is what is known of a write with an Idempotency-Key.
type KeyedWrite struct {
	// Fresh says that the key came for the first time, and Begun when it did.
	Fresh bool
	Begun time.Time
	// Left says that the process that began it has ended: nobody is at work on it.
	Left bool
	// Status is the HTTP status that the write was answered with, 0 where nobody has noted that it was; Answer is what was noted, opaque to the store.
	Status int
	Answer []byte
}
