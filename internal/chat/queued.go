package chat

import "github.com/regie-run/regie/internal/text"

// QueuedLine says that a run waits for a slot, and at which place, from 1 (spec 5.1); 0 where it goes on after it had let another one go first.
func QueuedLine(t *text.Printer, place int) string {
	if place > 0 {
		return t.T("no slot is free: queued at place %d, the run starts by itself", place)
	}
	return t.T("other runs go first: the run is queued and goes on by itself")
}
