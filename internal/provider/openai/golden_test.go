package openai_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
)

var update = flag.Bool("update", false, "write the golden files anew")

func textOf(role provider.Role, text string) provider.Turn {
	return provider.Turn{Role: role, Parts: []provider.Part{{Type: regie.PartText, Text: text}}}
}

func called(id, name, arguments string) provider.Part {
	return provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: id, Name: name, Arguments: arguments}}
}

// thread is one thread with all that vendors differ in: thinking of their own and of others, two calls at once, a call that failed, a person who
// speaks between a result and the next reply, two replies and two messages in a row.
func thread(vendor, model string) []provider.Turn {
	thinking := func(of, text string) provider.Part {
		part := provider.Part{Type: regie.PartThinking, Text: text, Provider: of}
		if of == "openrouter" {
			part.Opaque, _ = json.Marshal(map[string]any{"model": model, "reasoning_details": []any{map[string]any{"type": "reasoning.text", "text": text, "signature": "c2ln", "index": 0}}})
		}
		return part
	}
	turns := []provider.Turn{
		textOf(provider.RoleUser, "What is in notes/?"),
		{Role: provider.RoleAssistant, Parts: []provider.Part{
			thinking(vendor, "I look and I read."), {Type: regie.PartText, Text: "I look."}, called("call_1", "files__list_files", `{"path":"notes"}`), called("abcDEF123", "files__read_file", `{"path":"é.md"}`),
		}},
		{Role: provider.RoleTool, Results: []provider.Result{{CallID: "call_1", Content: "a.md"}, {CallID: "abcDEF123", Content: "there is no é.md", IsError: true}}},
		{Role: provider.RoleAssistant, Parts: []provider.Part{called("call_01a1fd57-6d04-72ce-bd06-a3e1e4eaf8989999", "files__read_file", `{"path":"a.md"}`)}},
		{Role: provider.RoleTool, Results: []provider.Result{{CallID: "call_01a1fd57-6d04-72ce-bd06-a3e1e4eaf8989999", Content: "one \"line\""}}},
		{Role: provider.RoleAssistant, Parts: []provider.Part{thinking(vendor, "That is all."), {Type: regie.PartText, Text: "One line."}}},
		textOf(provider.RoleUser, "And now?"),
		{Role: provider.RoleAssistant, Parts: []provider.Part{thinking("elsewhere", "Nothing."), {Type: regie.PartText, Text: "Nothing."}}},
		textOf(provider.RoleAssistant, "Still nothing."),
		textOf(provider.RoleUser, "Look again,"),
		textOf(provider.RoleUser, "please."),
		{Role: provider.RoleAssistant, Parts: []provider.Part{called("last", "files__list_files", `{}`)}},
		{Role: provider.RoleTool, Results: []provider.Result{{CallID: "last", Content: ""}}},
		textOf(provider.RoleUser, "Stop that."),
	}
	if openai.TakesTools(vendor) {
		return turns
	}
	var spoken []provider.Turn // as the JSON dialect has it: nothing but text
	for _, turn := range turns {
		for i := range turn.Results {
			spoken = append(spoken, textOf(provider.RoleUser, `{"result":"`+turn.Results[i].CallID+`"}`))
		}
		if turn.Role != provider.RoleTool {
			spoken = append(spoken, textOf(turn.Role, provider.JoinText(turn.Parts)+"."))
		}
	}
	return spoken
}

// models are those whose requests are golden; a vendor without one is asked for "model".
var models = map[string]string{
	"openai": "gpt-5.6-terra", "groq": "qwen/qwen3-32b", "deepseek": "deepseek-v4-pro", "mistral": "mistral-medium-latest", "openrouter": "anthropic/claude-opus-5.5", "perplexity": "sonar-reasoning-pro",
	"vllm": "mistralai/Devstral-Small-2", "lmstudio": "openai/gpt-oss-20b", "llamacpp": "qwen3.gguf",
}

// TestGoldenRequests shows what goes to each vendor of one thread, byte for byte; here it is broken into lines.
func TestGoldenRequests(t *testing.T) {
	for _, vendor := range append([]string{""}, openai.Vendors()...) {
		model, name := models[vendor], vendor
		if vendor == "" {
			model, name = "model", "unnamed"
		}
		head := provider.Head{
			Model: model, Level1: "You are.", Level2: "They are.", MaxOutput: 2000, ParallelCalls: false, ReasoningEffort: "medium",
			Tools: []provider.Tool{
				{Name: "files__list_files", Description: "List.", Parameters: json.RawMessage(`{"type":"object"}`)},
				{Name: "files__read_file", Description: "Read.", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
			},
		}
		switch vendor {
		case "openai":
			head.ReasoningEffort, head.ServiceTier = "none", "flex"
		case "groq":
			head.ServiceTier = "flex"
		}
		if !openai.TakesTools(vendor) {
			head.Tools = nil
		}
		body := openai.Body(vendor, head, provider.Tail{Withheld: true, Guidance: `Answer "now".`}, thread(vendor, model)...)
		if err := openai.ValidateVendor(vendor, body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var lines bytes.Buffer
		if err := json.Indent(&lines, body, "", "  "); err != nil {
			t.Fatalf("%s: %v in %s", name, err, body)
		}
		lines.WriteByte('\n')
		file := filepath.Join("testdata", "requests", name+".json")
		if *update {
			if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), lines.String()); diff != "" {
			t.Errorf("%s (-update writes it anew), -want +got:\n%s", name, diff)
		}
	}
}

// TestGrowsAsItStands: whatever a vendor's order asks for, a thread that grew turn by turn, with an end behind each, has the bytes of one that is
// rendered at once, and what was sent stays the beginning of what is sent next.
func TestGrowsAsItStands(t *testing.T) {
	for _, vendor := range append([]string{""}, openai.Vendors()...) {
		p, err := openai.New(openai.Config{Name: "x", BaseURL: "http://127.0.0.1:1/v1", Vendor: vendor})
		if err != nil {
			t.Fatal(err)
		}
		head := provider.Head{Model: "model", Level1: "You are.", MaxOutput: 5000}
		c, err := p.Open(head)
		if err != nil {
			t.Fatal(err)
		}
		shower, ok := c.(provider.Shower)
		if !ok {
			t.Fatal("it cannot be shown")
		}
		turns := thread(vendor, "model")
		before := ""
		for i := range turns {
			for _, tail := range []provider.Tail{{Guidance: "Now."}, {Withheld: true}, {}} {
				c.EndWith(tail)
			}
			c.Append(turns[i])
			for _, tail := range []provider.Tail{{}, {Guidance: `In "short".`}, {Withheld: true}, {}} {
				c.EndWith(tail)
				got, at := string(shower.Body()), string(openai.Body(vendor, head, tail, turns[:i+1]...))
				if got != at {
					t.Fatalf("%s, turn %d, %+v:\n%s\nis not\n%s", vendor, i, tail, got, at)
				}
				if hash, size := c.Request(); hash != regie.HashOf([]byte(at)) || size != len(at) {
					t.Fatalf("%s, turn %d, %+v: the hash or size is another", vendor, i, tail)
				}
			}
			body := strings.TrimSuffix(strings.TrimSuffix(string(shower.Body()), "]}"), `"}`)
			if !strings.HasPrefix(body, before) {
				t.Fatalf("%s, turn %d: what was sent has changed:\n%s\n%s", vendor, i, before, body)
			}
			before = body
		}
	}
}
