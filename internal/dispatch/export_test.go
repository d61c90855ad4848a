package dispatch

// NewClock is the queue of a process that shares its store with nobody.
func NewClock() Queue { return newClock() }
