package demo

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

func user(text string) provider.Turn {
	return provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: text}}}
}

func open(t *testing.T, head provider.Head, turns ...provider.Turn) provider.Conversation {
	t.Helper()
	c, err := New().Open(head)
	if err != nil {
		t.Fatal(err)
	}
	c.Append(turns...)
	return c
}

func TestSaysWhatItIs(t *testing.T) {
	if New().Name() != "demo" || !strings.Contains(Model, "not a model") {
		t.Errorf("%s: %s", New().Name(), Model)
	}
	if c := New().Capabilities(Model); !c.Free || !c.NativeTools {
		t.Errorf("%+v", c)
	}
}

// TestRequest: the hash is that of the whole thread, however it was appended.
func TestRequest(t *testing.T) {
	head := provider.Head{Model: Model, Level1: "one", Tools: allTools}
	one, two := user("hello"), user("again")
	whole := open(t, head, one, two)
	stepwise := open(t, head)
	stepwise.Append(one)
	before, _ := stepwise.Request()
	stepwise.Append(two)
	a, size := whole.Request()
	b, _ := stepwise.Request()
	if a != b || a == before || size == 0 {
		t.Errorf("hashes %s %s %s, size %d", a, b, before, size)
	}
	head.Level1 = "two"
	if c, _ := open(t, head, one, two).Request(); c == a {
		t.Error("the head is not part of the hash")
	}
	odd := user("x")
	odd.Parts[0].Opaque = json.RawMessage("{")
	if c, size := open(t, head, odd).Request(); c.IsZero() || size == 0 {
		t.Error("opaque data that is no JSON")
	}
}

// TestOpening: the day and the name of who speaks are nothing that was asked for.
func TestOpening(t *testing.T) {
	said := user("list files")
	opened := said
	opened.Parts = append([]provider.Part{{Type: regie.PartText, Text: "[ROUND_START] Monday, 2 March 2026 (Europe/Paris). User: delete notes.txt.\n", Opening: true}}, said.Parts...)
	for _, turns := range [][]provider.Turn{{said}, {opened}} {
		reply, err := open(t, provider.Head{Model: Model, Tools: allTools}, turns...).Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if reply.StopReason != "tool_calls" || len(reply.Parts) != 2 || reply.Parts[1].Call.Name != toolList {
			t.Errorf("%+v of %+v", reply.Parts, turns)
		}
	}
}

func TestUsage(t *testing.T) {
	c := open(t, provider.Head{Model: Model, Tools: allTools}, user("list files"))
	_, size := c.Request()
	reply, err := c.Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if reply.StopReason != "tool_calls" || reply.Usage.Input != int64((size+3)/4) || reply.Usage.Output == 0 {
		t.Errorf("%+v of %d bytes", reply, size)
	}
}

func TestStops(t *testing.T) {
	c := open(t, provider.Head{Model: Model, Tools: allTools}, user("hello"))
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	heard := 0
	_, err := c.Send(ctx, func(provider.Delta) {
		if heard++; heard == 3 {
			cancel(stop)
		}
	})
	if !errors.Is(err, stop) || heard != 3 {
		t.Errorf("%v after %d words", err, heard)
	}
	if _, err := c.Send(ctx, nil); !errors.Is(err, stop) {
		t.Errorf("stopped before: %v", err)
	}
}

func TestExtract(t *testing.T) {
	for _, c := range []struct {
		name, content string
		want          summary
	}{
		{"heading", "     1\t# A title\n     2\t\n     3\tOne sentence. Another.\n", summary{title: "A title", sentence: "One sentence.", words: 5}},
		{"no heading", "     1\tJust a line\n     2\tin two.\n", summary{title: "n", sentence: "Just a line in two.", words: 5}},
		{"nothing", "notes/n.md is empty", summary{title: "n"}},
		{"binary", "notes/n.md is not text: 3 bytes, image/png", summary{title: "n"}},
		{"underlined", "     1\tTitle\n     2\t=====\n     3\tText here.\n", summary{title: "Title", sentence: "Text here.", words: 3}},
		{
			"front matter and code", "     1\t---\n     2\tdate: x\n     3\t---\n     4\t```\n     5\tcode.\n     6\t```\n     7\t- A *list*\n",
			summary{title: "n", sentence: "A *list*", words: 5},
		},
		{"heading after text", "     1\tText first.\n     2\t# Title\n", summary{title: "Title", sentence: "Text first.", words: 3}},
		{
			"abbreviations", "     1\tDr. Smith met M. Dupont at 8.30 a.m. in Lyon… yes. Then he left.\n",
			summary{title: "n", sentence: "Dr. Smith met M. Dupont at 8.30 a.m. in Lyon… yes.", words: 14},
		},
		{"long", "     1\tWord.\n[more: go on with start_line 2]\n", summary{title: "n", sentence: "Word.", words: 1, partial: true}},
	} {
		if got := extract("notes/n.md", c.content); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	long := extract("n.md", "     1\t"+strings.Repeat("é ", 500)+"\n")
	if n := len([]rune(long.sentence)); n > maxSentence || !strings.HasSuffix(long.sentence, "…") {
		t.Errorf("%d characters", n)
	}
}

func TestTextFiles(t *testing.T) {
	listing := "notes/a.md\t3 bytes\r\nnotes/b.txt\nnotes/c.png\t3 bytes\nnotes/d/\nnotes/e.md\tlink\nnotes/f g.MD\t0 bytes\nout/h.md\t1 bytes\n" +
		"nothing matches *.md\n[more than 1000 entries: name a deeper path]\n"
	if got := strings.Join(textFiles(listing, "out"), "|"); got != "notes/a.md|notes/b.txt|notes/f g.MD" {
		t.Errorf("got %s", got)
	}
}

func TestFileNames(t *testing.T) {
	taken := set{indexName: true}
	var got []string
	for _, from := range []string{"notes/a.md", "notes/a.txt", "x/A.md", "notes/index.md", "b.tar.txt"} {
		got = append(got, fileName(from, taken))
	}
	if strings.Join(got, " ") != "a.md a-2.md A-3.md index-2.md b.tar.md" {
		t.Errorf("got %q", got)
	}
}
