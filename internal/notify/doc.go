// Package notify delivers the notifications of the outbox (decision 60) over webhooks, ntfy, mail
// and the desktop. The store writes them with the transition that makes a thing true; here each is
// sent at least once, under an id by which receivers deduplicate.
//
// Worker.Run has one goroutine for each channel, so that a slow receiver holds up no other channel,
// and returns once they have ended.
package notify
