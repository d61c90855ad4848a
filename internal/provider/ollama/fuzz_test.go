package ollama

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
	for _, data := range wiretest.Recorded(f, "*.ndjson") {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCollector(&wire.Server{}, nil)
		lines := sse.NewLines(bytes.NewReader(data), wire.MaxEvent)
		for !c.done {
			line, err := lines.Next()
			if err != nil || c.add(line) != nil {
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
