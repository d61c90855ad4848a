package anthropic

import (
	"bytes"
	"testing"

	"github.com/regie-run/regie/internal/provider/sse"
	"github.com/regie-run/regie/internal/provider/wire"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// FuzzStream reads anything as a stream: it never panics, and what it returns is whole and can be
// stored.
func FuzzStream(f *testing.F) {
	for _, data := range wiretest.Recorded(f, "*.sse") {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCollector(&wire.Server{}, nil)
		events := sse.NewEvents(bytes.NewReader(data), 1<<20)
		for !c.stopped {
			event, err := events.Next()
			if err != nil || c.add(event) != nil {
				return
			}
		}
		reply, err := c.Reply()
		if err != nil {
			return
		}
		wiretest.Storable(t, Name, reply)
	})
}
