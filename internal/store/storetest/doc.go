// Package storetest is the suite for every store (docs/design.md, "Store"). It checks that each
// domain transition has its effect, refuses invalid input, and leaves nothing behind after a
// refusal. It starts goroutines only inside a test and waits for them.
package storetest
