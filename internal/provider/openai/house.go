package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// house holds a request to a vendor's own rules, written down apart from what the codec does: so
// that one can be wrong without the other.
func (r *wireRequest) house(vendor string) error {
	if err := r.members(vendor); err != nil {
		return err
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		switch {
		case m.Reasoning != nil && vendor != "deepseek":
			return fmt.Errorf("message %d: reasoning_content, which only DeepSeek takes", i)
		case m.Details != nil && vendor != "openrouter":
			return fmt.Errorf("message %d: reasoning_details, which only OpenRouter takes", i)
		}
	}
	switch vendor {
	case "openai":
		if major, minor, known := gpt(r.Model); known && len(r.Tools) > 0 && r.Effort != "none" &&
			(major > 5 || major == 5 && (minor >= 6 || minor >= 4 && r.Effort != "")) {
			return fmt.Errorf("function tools with the effort %q are not taken of %s", r.Effort, r.Model)
		}
	case "groq":
		if len(r.Tools) > 0 && r.MaxTokens < 4000 {
			return fmt.Errorf("%d tokens of output beside tools, at least 4000", r.MaxTokens)
		}
	case "deepseek":
		return r.reasoningBack()
	case "mistral":
		if err := r.shortIDs(); err != nil {
			return err
		}
		return r.turns()
	case "openrouter":
		return r.detailsBack()
	case "vllm", "lmstudio", "llamacpp":
		if len(r.Messages) > 1 && r.Messages[1].Role == "system" {
			return fmt.Errorf("two system messages, of which templates take one")
		}
	case "perplexity":
		if len(r.Tools) > 0 || slices.ContainsFunc(r.Messages, func(m wireMessage) bool {
			return m.Role == "tool" || len(m.ToolCalls) > 0
		}) {
			return fmt.Errorf("tools or results, which Perplexity does not have")
		}
		return r.turns()
	}
	return nil
}

// members looks for what a vendor does not know, or refuses.
func (r *wireRequest) members(vendor string) error {
	for _, member := range []struct {
		name    string
		there   bool
		vendors []string // that take it
	}{
		{"max_completion_tokens", r.MaxCompletionTokens != 0, []string{"openai"}},
		{"max_tokens", r.MaxTokens != 0, []string{
			"", "groq", "deepseek", "mistral", "openrouter", "vllm",
			"lmstudio", "llamacpp", "perplexity",
		}},
		{"stream_options", r.StreamOptions != nil, []string{
			"", "openai", "groq", "deepseek", "openrouter",
			"vllm", "lmstudio", "llamacpp",
		}},
		{"parallel_tool_calls", r.ParallelCalls != nil, []string{
			"", "openai", "groq", "mistral",
			"openrouter", "vllm", "llamacpp",
		}},
		{"reasoning_format", r.ReasoningFormat != "", []string{"groq"}},
		{"thinking", r.Thinking != nil, []string{"deepseek"}},
		{"reasoning", r.Reasoning != nil, []string{"openrouter"}},
		{"chat_template_kwargs", r.Template != nil, []string{"vllm", "llamacpp"}},
		{"reasoning_effort", r.Effort != "", []string{
			"", "openai", "groq", "deepseek", "mistral",
			"vllm", "lmstudio", "perplexity",
		}},
		{"service_tier", r.ServiceTier != "", []string{"", "openai", "groq"}},
	} {
		if member.there && !slices.Contains(member.vendors, vendor) {
			return fmt.Errorf("%s, which %q does not take", member.name, vendor)
		}
	}
	if r.ReasoningFormat == "raw" && len(r.Tools) > 0 {
		return fmt.Errorf("reasoning_format raw beside tools")
	}
	return nil
}

// reasoningBack is DeepSeek's rule: from the first call after a person's message on each of the
// model's messages says what was thought, and no other does.
func (r *wireRequest) reasoningBack() error {
	if r.Thinking != nil && r.Thinking.Type == "disabled" {
		return nil
	}
	loop := false
	for i := range r.Messages {
		switch m := &r.Messages[i]; m.Role {
		case "user":
			loop = false
		case "assistant":
			loop = loop || len(m.ToolCalls) > 0
			if loop != (m.Reasoning != nil) {
				return fmt.Errorf("message %d: reasoning_content is there: %v, in a loop of calls: %v", i,
					m.Reasoning != nil, loop)
			}
		}
	}
	return nil
}

var nine = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

func (r *wireRequest) shortIDs() error {
	for i := range r.Messages {
		for _, c := range r.Messages[i].ToolCalls {
			if !nine.MatchString(c.ID) {
				return fmt.Errorf("message %d: tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9", i,
					c.ID)
			}
		}
	}
	return nil
}

// turns has user and assistant take turns; results stand between an assistant's calls and its next
// word.
func (r *wireRequest) turns() error {
	before := "system"
	for i := range r.Messages {
		role := r.Messages[i].Role
		follows := map[string][]string{
			"system": {"system", "user"}, "user": {"assistant"},
			"assistant": {"user", "tool"}, "tool": {"tool", "assistant"},
		}[before]
		if !slices.Contains(follows, role) {
			return fmt.Errorf("message %d: unexpected role %s after role %s", i, role, before)
		}
		before = role
	}
	return nil
}

func (r *wireRequest) detailsBack() error {
	for i := range r.Messages {
		m := &r.Messages[i]
		var list []map[string]json.RawMessage
		if m.Details != nil && (json.Unmarshal(m.Details, &list) != nil || len(list) == 0 || m.Role != "assistant") {
			return fmt.Errorf("message %d: reasoning_details is no list of objects of the model's own", i)
		}
		for _, d := range list {
			if len(d["type"]) == 0 {
				return fmt.Errorf("message %d: one of reasoning_details has no type", i)
			}
		}
	}
	return nil
}
