package sdkcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Answer is what both sides must read out of a stream.
type Answer struct {
	Text, Thinking string
	Calls          []string // name and arguments, in order
	Stop           string
	Input, Output  int64
	CacheRead      int64
}

// Call adds a call; its arguments are written as compact JSON.
func (a *Answer) Call(name, arguments string) {
	if arguments == "" {
		arguments = "{}" // a call without arguments (spec 12.6, trap 3)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(arguments)); err != nil {
		compact.WriteString("not JSON: " + arguments)
	}
	a.Calls = append(a.Calls, name+compact.String())
}

// Format is one wire format with both of its readers; each sends one request.
type Format struct {
	Name    string // of the codec
	Streams string // where its recorded streams are
	Ours    func(url string) (provider.Provider, error)
	Theirs  func(ctx context.Context, url string) (Answer, error)
}

// Key is the key that both sides send.
const Key = "key-of-a-test"

// Serve answers every request with a stream.
func Serve(tb testing.TB, stream []byte) string {
	tb.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(stream)
	}))
	tb.Cleanup(server.Close)
	return server.URL
}

// Read is the answer that our codec reads.
func (f Format) Read(ctx context.Context, url string) (out Answer, err error) {
	p, err := f.Ours(url)
	if err != nil {
		return out, err
	}
	c, err := p.Open(provider.Head{Model: "m", MaxOutput: 100})
	if err != nil {
		return out, err
	}
	c.Append(provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: "go"}}})
	reply, err := c.Send(ctx, nil)
	if err != nil {
		return out, err
	}
	for _, part := range reply.Parts {
		switch part.Type {
		case regie.PartText:
			out.Text += part.Text
		case regie.PartThinking:
			out.Thinking += part.Text
		case regie.PartCall:
			out.Call(part.Call.Name, part.Call.Arguments)
		}
	}
	out.Stop, out.Input, out.Output, out.CacheRead = reply.StopReason, reply.Usage.Input,
		reply.Usage.Output, reply.Usage.CacheRead
	return out, nil
}

// Check reads each recorded stream with a reply, and a longer one, with the vendor's SDK and with
// our codec: both must read the same. The SDK takes a stream without its end marker as complete,
// our codec refuses it (spec 12.6, trap 1).
func (f Format) Check(t *testing.T) {
	t.Helper()
	for name, stream := range f.streams(t) {
		t.Run(name, func(t *testing.T) {
			url := Serve(t, stream)
			theirs, err := f.Theirs(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			ours, err := f.Read(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			if ours.Text+ours.Thinking == "" && len(ours.Calls) == 0 {
				t.Error("nothing was read")
			}
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("-SDK +ours:\n%s", diff)
			}
		})
	}
	t.Run("cut", func(t *testing.T) {
		whole := Long(f.Name, 10)
		// behind an event: within one Gemini's notices
		cut := bytes.LastIndex(whole[:bytes.Index(whole, []byte("word5"))], []byte("\n\n")) + 2
		url := Serve(t, whole[:cut])
		if _, err := f.Theirs(t.Context(), url); err != nil {
			t.Errorf("the SDK sees that a stream was cut: say so in docs/design.md: %v", err)
		}
		if got, err := f.Read(t.Context(), url); err == nil {
			t.Errorf("we do not: %v", got)
		}
	})
}

// Traits says whether a vendor's stream reader returns an error for features of real streams. Ours
// reads comments and refuses the rest (spec 12.6, trap 8).
type Traits struct {
	Comment bool // a comment between events
	InBand  bool // an error as an event, behind the first text
	LongKiB int  // a line so long; 0 leaves it out
	Long    bool
}

// CheckTraits checks the SDK against docs/design.md, and our codec against its requirements.
func (f Format) CheckTraits(t *testing.T, want Traits, inBand string) {
	t.Helper()
	whole := Long(f.Name, 10)
	behind := bytes.LastIndex(whole[:bytes.Index(whole, []byte("word5"))], []byte("\n\n")) + 2
	with := func(what string) []byte { return slices.Concat(whole[:behind], []byte(what), whole[behind:]) }
	for name, c := range map[string]struct {
		stream       []byte
		theirs, ours bool
	}{
		"comment": {with(": keep-alive\n\n"), want.Comment, false},
		"in band": {with(inBand + "\n\n"), want.InBand, true},
		"long": {
			bytes.Replace(whole, []byte("word5"), bytes.Repeat([]byte("x"), max(want.LongKiB, 1)<<10), 1),
			want.Long, want.LongKiB > 8<<10,
		},
	} {
		url := Serve(t, c.stream)
		if _, err := f.Theirs(t.Context(), url); (err != nil) != c.theirs {
			t.Errorf("%s: the SDK: %.200v", name, err)
		}
		if _, err := f.Read(t.Context(), url); (err != nil) != c.ours {
			t.Errorf("%s: ours: %.200v", name, err)
		}
	}
}

// Measure measures the processor time of one token of a long stream over HTTP, including the
// server's, with either reader.
func (f Format) Measure(b *testing.B) {
	const tokens = 5000
	url := Serve(b, Long(f.Name, tokens))
	for name, read := range map[string]func(ctx context.Context, url string) (Answer,
		error){"sdk": f.Theirs, "ours": f.Read} {
		b.Run(name, func(b *testing.B) {
			before := processorTime(b)
			for b.Loop() {
				if _, err := read(b.Context(), url); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/tokens, "cpu-ns/token")
		})
	}
}

// processorTime returns what this process has used, in nanoseconds.
func processorTime(b *testing.B) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// streams are the recorded ones that hold a reply, and one that is made as the vendor documents it.
func (f Format) streams(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(f.Streams)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	out := map[string][]byte{"long": Long(f.Name, 100)}
	for _, file := range files {
		if strings.Contains(file, "_bad.") {
			continue // an empty reply, which we refuse and they return
		}
		if out[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// Requests reads golden requests of ours into the vendor's type, strictly if possible, and encodes
// them again. Nothing may be lost except the stream member, which SDKs set by the called function.
func Requests(t *testing.T, pattern string, into func() any) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(pattern, files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			params := into()
			strict := json.NewDecoder(bytes.NewReader(data))
			strict.DisallowUnknownFields()
			if err := strict.Decode(params); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			var ours, theirs map[string]any
			if err := json.Unmarshal(data, &ours); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(again, &theirs); err != nil {
				t.Fatal(err)
			}
			delete(ours, "stream")
			delete(theirs, "stream")
			if diff := cmp.Diff(spelledOut(ours), spelledOut(theirs)); diff != "" {
				t.Errorf("-ours +through the SDK:\n%s", diff)
			}
		})
	}
}

// spelledOut expands a text content to its list of one block, and drops empty arguments and null:
// SDKs write them so.
func spelledOut(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if args, is := value["args"].(map[string]any); is && len(args) == 0 {
			delete(value, "args") // of Gemini: none are none
		}
		for name, member := range value {
			if member == nil {
				delete(value, name)
				continue
			}
			if text, is := member.(string); is && name == "content" {
				member = []any{map[string]any{"type": "text", "text": text}}
			}
			value[name] = spelledOut(member)
		}
	case []any:
		for i := range value {
			value[i] = spelledOut(value[i])
		}
	}
	return value
}

// Long is a stream of n pieces of text with all that must be around them, for each format as its
// vendor documents it.
func Long(name string, n int) []byte {
	var b bytes.Buffer
	event := func(format string, values ...any) {
		data := fmt.Sprintf(format, values...)
		var kind struct{ Type string }
		if name == "anthropic" || name == "responses" {
			_ = json.Unmarshal([]byte(data), &kind) // it is ours
			fmt.Fprintf(&b, "event: %s\n", kind.Type)
		}
		fmt.Fprintf(&b, "data: %s\n\n", data)
	}
	switch name {
	case "anthropic":
		event(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}`)
		event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for i := range n {
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word%d "}}`, i)
		}
		event(`{"type":"content_block_stop","index":0}`)
		event(
			`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}}`, n)
		event(`{"type":"message_stop"}`)
	case "openai":
		for i := range n {
			event(
				`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word%d "},"finish_reason":null}]}`, i)
		}
		event(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
		event(
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d,"total_tokens":%d}}`, n, n+3)
		b.WriteString("data: [DONE]\n\n")
	case "responses":
		event(`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","status":"in_progress","output":[]}}`)
		event(`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"m","type":"message","status":"in_progress","role":"assistant","content":[]}}`)
		var text strings.Builder
		for i := range n {
			event(
				`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"m","output_index":0,"content_index":0,"delta":"word%d "}`, i+2, i)
			fmt.Fprintf(&text, "word%d ", i)
		}
		item := fmt.Sprintf(
			`{"id":"m","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, text.String())
		event(`{"type":"response.output_item.done","sequence_number":%d,"output_index":0,"item":%s}`, n+2, item)
		event(
			`{"type":"response.completed","sequence_number":%d,"response":{"id":"r","object":"response","status":"completed","output":[%s],"usage":{"input_tokens":3,"output_tokens":%d,"total_tokens":%d}}}`, n+3, item, n, n+3)
	case "gemini":
		for i := range n {
			event(
				`{"candidates":[{"content":{"parts":[{"text":"word%d "}],"role":"model"},"index":0}],"modelVersion":"m"}`, i)
		}
		event(
			`{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":%d,"totalTokenCount":%d}}`, n, n+3)
	}
	return b.Bytes()
}
