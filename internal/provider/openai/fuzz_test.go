package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/regie-run/regie/internal/provider/sse"
	"github.com/regie-run/regie/internal/provider/wire"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// FuzzFastPath compares the reading by a frame, learned from one chunk, with the decoder: where it
// says anything, it says the same.
func FuzzFastPath(f *testing.F) {
	for _, pair := range [][2]string{
		{
			`{"id":"x","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
			`{"id":"x","created":1,"choices":[{"index":0,"delta":{"content":"é"},"finish_reason":null}]}`,
		},
		{`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"index":0,"delta":{"content":"a\u0000"}}]}`},
		{`{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"a"}}],"model":"m"}`, `{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"b"}}],"model":"m"}`},
		{`{"x\"delta":{"content":"s"},"choices":[{"index":0,"delta":{"content":"s"}}]}`, `{"x\"delta":{"content":"t"},"choices":[{"index":0,"delta":{"content":"s"}}]}`},
		{`{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}`, `{"choices":[{"index":0,"delta":{"content":"b"}}],"usage":{"prompt_tokens":1}}`},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	for _, data := range wiretest.Recorded(f, "*.sse") {
		var before []byte
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			line = bytes.TrimPrefix(line, []byte("data: "))
			f.Add(before, line)
			before = line
		}
	}
	f.Fuzz(func(t *testing.T, first, data []byte) {
		var known frame
		known.learn(first)
		text, ok := known.text(data)
		if !ok {
			return
		}
		ch, err := decode(data)
		if err != nil {
			t.Fatalf("the decoder refuses what the fast path took: %v", err)
		}
		if len(ch.Choices) != 1 || wire.Said(ch.Usage) || len(ch.Error) > 0 {
			t.Fatalf("the fast path overlooked something in %s", data)
		}
		d := ch.Choices[0].Delta
		var content string
		if json.Unmarshal(d.Content, &content) != nil || content != string(text) || len(d.ReasoningDetails) > 0 || len(ch.Choices[0].Error) > 0 ||
			ch.failed() || len(ch.SearchResults) > 0 || ch.Groq != nil || len(d.ToolCalls) > 0 || d.Reasoning != nil || d.ReasoningContent != nil ||
			d.Refusal != nil || ch.Choices[0].Index != 0 || ch.Choices[0].FinishReason != nil {
			t.Fatalf("the fast path read %q from %s", text, data)
		}
	})
}

// FuzzStream reads anything as a stream: it never panics, and what it returns is whole and can be
// stored.
func FuzzStream(f *testing.F) {
	for _, data := range wiretest.Recorded(f, "*.sse") {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCollector(&wire.Server{}, Name, nil)
		events := sse.NewEvents(bytes.NewReader(data), 1<<20)
		for {
			event, err := events.Next()
			if err == io.EOF || err == sse.ErrTooLong { //nolint:errorlint // the reader's own, unwrapped
				return
			}
			if string(event) == "[DONE]" {
				break
			}
			if c.add(event) != nil {
				return
			}
		}
		c.keepDetails("m")
		reply, err := c.Reply()
		if err != nil {
			return
		}
		wiretest.Storable(t, Name, reply)
	})
}
