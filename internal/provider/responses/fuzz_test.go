package responses

import (
	"bytes"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/sse"
	"github.com/regie-run/regie/internal/provider/wire"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// streams are those that were recorded or are documented.
func streams(tb testing.TB) map[string][]byte {
	tb.Helper()
	out := wiretest.Recorded(tb, "*.sse")
	if len(out) < 7 {
		tb.Fatalf("%d streams", len(out))
	}
	return out
}

// collect reads a stream as Send does.
func collect(data []byte) (*provider.Reply, error) {
	c := newCollector(&wire.Server{}, nil, "gpt-5.5")
	events := sse.NewEvents(bytes.NewReader(data), 1<<20)
	defer events.Release()
	for !c.stopped {
		event, err := events.Next()
		if err != nil {
			return nil, c.Failed(wire.Truncated())
		}
		if err := c.add(event); err != nil {
			return nil, c.Failed(err)
		}
	}
	return c.Reply()
}

// TestRecordedStreams holds each recorded stream to its whole reply or its error, and to none where
// it is cut (spec 12.6). They are long: no server sends them.
func TestRecordedStreams(t *testing.T) {
	wiretest.Streams(t, func(*testing.T) func(stream string) (*provider.Reply, error) {
		return func(stream string) (*provider.Reply, error) { return collect([]byte(stream)) }
	}, "*.sse", "crash_*.txt")
}

// FuzzStream reads anything as a stream: it never panics, what it returns is whole and can be
// stored, and goes back as a legal request.
func FuzzStream(f *testing.F) {
	for _, data := range streams(f) {
		f.Add(data)
	}
	const end = `data: {"type":"response.completed","response":{}}` + "\n\n"
	for _, short := range []string{
		`data: {"type":"response.output_text.delta","output_index":0,"delta":"a"}` + "\n\n" + end,
		`data: {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"n","arguments":"{}"}}` + "\n\n" + end,
		`data: {"type":"response.output_item.done","item":{"type":"reasoning","id":"r","summary":[{"text":"s"}],"encrypted_content":"e"}}` + "\n\n" + end,
		`data: {"type":"response.incomplete","response":{"output":[{"type":"message","content":[{"text":"t"}],"phase":"commentary"}]}}` + "\n\n",
		`data: {"type":"response.failed","response":{"error":{"code":"c","message":"m"}}}` + "\n\n",
	} {
		f.Add([]byte(short))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reply, err := collect(data)
		if err != nil {
			return
		}
		wiretest.Storable(t, Name, reply)
		turns := []provider.Turn{{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: "go"}}}, {Role: provider.RoleAssistant}}
		for i, part := range reply.Parts {
			if part.Type == regie.PartCall {
				// as the engine would refuse and name them anew
				part.Call.ID, part.Call.Name = "call_"+string(rune('a'+i%26))+strings.Repeat("x", i/26%50), "f"
				if i >= 26*50 {
					return
				}
			}
			turns[1].Parts = append(turns[1].Parts, part)
		}
		var results []provider.Result
		for _, part := range turns[1].Parts {
			if part.Call != nil {
				results = append(results, provider.Result{CallID: part.Call.ID})
			}
		}
		turns = append(turns, provider.Turn{Role: provider.RoleTool, Results: results}, turns[0])
		r, err := NewRequest(provider.Head{Model: "gpt-5.5", MaxOutput: 100}, Options{Reasons: true})
		if err != nil {
			t.Fatal(err)
		}
		r.Append(turns...)
		if err := strict.Responses(r.Body()); err != nil {
			t.Fatalf("it cannot go back: %v\n%s", err, r.Body())
		}
	})
}
