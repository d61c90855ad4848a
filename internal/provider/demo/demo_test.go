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
