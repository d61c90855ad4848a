package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider/sse"
)

func seeds(f *testing.F) [][]byte {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.sse"))
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	var out [][]byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

// FuzzFastPath compares the hand-made reading of the commonest chunk with the decoder: where it says anything, it says the same.
func FuzzFastPath(f *testing.F) {
	f.Add([]byte(`{"id":"x","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}`))
	f.Add([]byte(`{"id":"x","choices":[{"index":0,"delta":{"content":"a\u0000"},"finish_reason":null}]}`))
	f.Add([]byte(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}`))
	for _, data := range seeds(f) {
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			f.Add(bytes.TrimPrefix(line, []byte("data: ")))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		text, ok := plainDelta(data)
		if !ok {
			return
		}
		var ch chunk
		if err := json.Unmarshal(data, &ch); err != nil {
			t.Fatalf("the decoder refuses what the fast path took: %v", err)
		}
		if len(ch.Choices) != 1 || ch.Usage != nil || len(ch.Error) > 0 {
			t.Fatalf("the fast path overlooked something in %s", data)
		}
		d := ch.Choices[0].Delta
		if d.Content == nil || *d.Content != text || len(d.ToolCalls) > 0 || d.Reasoning != nil || d.ReasoningContent != nil ||
			d.Refusal != nil || ch.Choices[0].Index != 0 || ch.Choices[0].FinishReason != nil {
			t.Fatalf("the fast path read %q from %s", text, data)
		}
	})
}

// FuzzStream reads anything as a stream: it never panics, and what it returns is whole and can be stored.
func FuzzStream(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := collector{}
		events := sse.NewReader(bytes.NewReader(data), 1<<20)
		for {
			event, err := events.Next()
			if err == io.EOF || err == sse.ErrTooLong { //nolint:errorlint // the reader's own, unwrapped
				return
			}
			if string(event.Data) == "[DONE]" {
				break
			}
			if c.add(event.Data) != nil {
				return
			}
		}
		reply, err := c.reply()
		if err != nil {
			return
		}
		for _, part := range reply.Parts {
			if !utf8.ValidString(part.Text) || strings.ContainsRune(part.Text, 0) {
				t.Fatalf("text that cannot be stored: %q", part.Text)
			}
			if part.Type == regie.PartCall && (!json.Valid([]byte(part.Call.Arguments)) || part.Call.Arguments[0] != '{') {
				t.Fatalf("a half call: %q", part.Call.Arguments)
			}
		}
	})
}
