package dialect_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/dialect"
)

// TestStream streams each reply in pieces of every kind: what is handed out is the text, whatever
// stands around it.
func TestStream(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"an answer":                 {`{"pre_text":"Hello."}`, "Hello."},
		"the text comes late":       {`{"data_commands":[{"type":"a","params":{"x":[{"b":"}"}]}}],"plan":null,"pre_text":"yes"}`, "yes"},
		"escapes":                   {`{"pre_text":"a\n\"b\"\\ \u00e9 \ud83d\ude00 \/\t."}`, "a\n\"b\"\\ é 😀 /\t."},
		"half a pair":               {`{"pre_text":"a\ud83d b\ud83d\u0041"}`, "a\uFFFD b\uFFFDA"},
		"raw line feeds and others": {"{\"pre_text\" :\n\"a\nb\x00é\"}", "a\nb\uFFFDé"},
		"a fence and words around":  {"Sure! {maybe} Here {\"x\":{\"pre_text\":1}}:\n```json\n{ \"pre_text\": \"It is so.\" }\n```", "It is so."},
		"thinking before":           {"\n<think>I say {\"pre_text\":\"no\"} or not</think>{\"pre_text\":\"yes\"}", "yes"},
		"no text but another value": {`{"pre_text":null,"post_text":"x"}`, ""},
		"cut off in an escape":      {`{"pre_text":"abc\u00`, "abc"},
		"a name with an escape":     {`{"pre\u005ftext":"x","pre_text":"y"}`, "y"},
		"what follows is not ours":  {`{"pre_text":"one"} {"pre_text":"two"}`, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			for range 50 {
				var s dialect.Stream
				var got strings.Builder
				for rest := c.raw; rest != ""; {
					n := 1 + random.IntN(min(len(rest), 9))
					got.WriteString(s.Add(rest[:n]))
					rest = rest[n:]
				}
				if got.String() != c.want {
					t.Fatalf("%q gave %q, want %q", c.raw, got.String(), c.want)
				}
			}
		})
	}
}

// FuzzStream compares with the reader: where that finds one reply and nothing else in it, the
// stream has handed out its text.
func FuzzStream(f *testing.F) {
	f.Add(`{"pre_text":"a\n\ud83d\ude00","plan":null}`, 3)
	f.Add("```json\n{\"pre_text\":\"x\"}\n```", 1)
	j := dialect.New(nil, dialect.Options{})
	f.Fuzz(func(t *testing.T, raw string, piece int) {
		var s dialect.Stream
		var got strings.Builder
		for rest := raw; rest != ""; {
			n := min(len(rest), max(1, piece%7))
			got.WriteString(s.Add(rest[:n]))
			rest = rest[n:]
		}
		reply, errs := j.Parse(raw)
		if errs == nil && strings.HasPrefix(raw, `{"pre_text":"`) && strings.Count(raw, "{") == 1 && got.String() != reply.PreText && strings.ToValidUTF8(raw, "") == raw {
			t.Errorf("%q streamed %q, read %q", raw, got.String(), reply.PreText)
		}
	})
}
