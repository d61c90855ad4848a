// Package storetest is the one suite that every store passes (docs/design.md, "Store"): what each
// domain transition does, what it refuses, and that a refused one leaves nothing behind. It starts
// goroutines only inside a test and waits for them.
package storetest
