package responses_test

import (
	"testing"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// TestDecoded holds each recorded stream to its whole reply, or its error (spec 12.6).
func TestDecoded(t *testing.T) {
	wiretest.Decoded(t, func(stream string) (*provider.Reply, error) { return ask(t, stream) }, "*.sse", "crash_*.txt")
}
