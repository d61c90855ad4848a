package app

import (
	"os"
	"testing"
	"time"
)

// ShortenAttach has commands of a test wait less long for another engine.
func ShortenAttach(t *testing.T, to time.Duration) {
	t.Helper()
	before := attachTimeout
	attachTimeout = to
	t.Cleanup(func() { attachTimeout = before })
}

// Lock takes the engine lock of a data directory and says whose place that is.
func Lock(dir string) (*os.File, string, error) { return lock(dir) }

// Holder is who holds it.
func Holder(dir string) string { return holder(dir) }

// Makers are the types that have a codec.
func Makers() map[string]bool {
	out := map[string]bool{}
	for name := range makers {
		out[name] = true
	}
	return out
}
