package anthropic

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
)

// TestEffort is how each generation of models is asked to think, and that the API takes it.
func TestEffort(t *testing.T) {
	p, err := New(Config{Name: "x", BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	const tokens = 8192
	for _, c := range []struct {
		model, effort, want string
		back                bool // its own thinking goes back
	}{
		{"claude-opus-5-5", "", ``, true},
		{"claude-opus-5-5", "minimal", `"output_config":{"effort":"low"}`, true},
		{"claude-opus-5-5", "xhigh", `"output_config":{"effort":"xhigh"}`, true},
		{"claude-opus-5-5", "none", `"thinking":{"type":"disabled"}`, false},
		{"claude-next", "max", `"output_config":{"effort":"max"}`, true},
		{"claude-opus-4-7", "medium", `"thinking":{"type":"adaptive"},"output_config":{"effort":"medium"}`, true},
		{"claude-sonnet-4-6", "xhigh", `"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`, true},
		{"claude-sonnet-4-6", "max", `"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`, true},
		{"claude-opus-4-6", "max", `"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}`, true},
		{"claude-sonnet-4-6", "none", ``, false},
		{"claude-sonnet-4-6", "", ``, false},
		{"claude-haiku-4-5", "none", ``, false},
		{"claude-haiku-4-5", "high", ``, false},
	} {
		head := provider.Head{Model: c.model, MaxOutput: tokens, ReasoningEffort: c.effort, Tools: []provider.Tool{{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}}}
		conversation, err := p.Open(head)
		if err != nil {
			t.Fatal(err)
		}
		conversation.Append(
			provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: "go"}}},
			provider.Turn{Role: provider.RoleAssistant, Parts: []provider.Part{
				{Type: regie.PartThinking, Text: "hm", Provider: Name, Opaque: json.RawMessage(`{"signature":"c2ln"}`)}, {Type: regie.PartCall, Call: &provider.Call{ID: "a", Name: "f", Arguments: "{}"}},
			}},
			provider.Turn{Role: provider.RoleTool, Results: []provider.Result{{CallID: "a", Content: "x"}}},
		)
		shower, ok := conversation.(provider.Shower)
		if !ok {
			t.Fatal("it cannot be shown")
		}
		body := string(shower.Body())
		_, rest, _ := strings.Cut(body, `"max_tokens":8192,`)
		got, _, _ := strings.Cut(rest, `"tools":`)
		if got = strings.TrimSuffix(got, ","); got != c.want || strings.Contains(body, "c2ln") != c.back {
			t.Errorf("%s, %q: %s, thinking back: %v", c.model, c.effort, got, strings.Contains(body, "c2ln"))
		}
		if err := strict.Anthropic([]byte(body)); err != nil {
			t.Errorf("%s, %q: %v", c.model, c.effort, err)
		}
	}
}
