package strict

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

var chatName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// chatArray is how many tools, and how many calls of one message, OpenAI's own server takes.
const chatArray = 128

type chatRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Temperature         *float64      `json:"temperature"`
	ParallelCalls       *bool         `json:"parallel_tool_calls"`
	MaxTokens           int           `json:"max_tokens"`
	MaxCompletionTokens int           `json:"max_completion_tokens"`
	ToolChoice          string        `json:"tool_choice"`
	ServiceTier         string        `json:"service_tier"`
	Effort              string        `json:"reasoning_effort"`
	Messages            []chatMessage `json:"messages"`
	Tools               []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`

	// Members that are one vendor's own.
	ReasoningFormat string `json:"reasoning_format"` // Groq
	Thinking        *struct {
		Type string `json:"type"`
	} `json:"thinking"` // DeepSeek
	Reasoning *struct {
		Effort string `json:"effort"`
	} `json:"reasoning"` // OpenRouter
	Template map[string]any `json:"chat_template_kwargs"` // vLLM, llama.cpp
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    *content        `json:"content"`
	Reasoning  *string         `json:"reasoning_content"` // DeepSeek
	Details    json.RawMessage `json:"reasoning_details"` // OpenRouter
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Chat returns the error of a strict Chat Completions server of no particular vendor for a request
// (invariant 18). Scripted servers of tests and harnesses run every prompt through it.
func Chat(body []byte) error { return ChatVendor("", body) }

// ChatVendor returns the error of a strict server of a vendor, one of openai.Vendors or empty: by
// the common rules and its own.
func ChatVendor(vendor string, body []byte) error {
	var r chatRequest
	if err := decode(body, &r); err != nil {
		return err
	}
	switch {
	case r.Model == "":
		return fmt.Errorf("no model is named")
	case r.MaxTokens <= 0 && r.MaxCompletionTokens <= 0:
		return fmt.Errorf("the output is not bounded")
	case len(r.Messages) == 0:
		return fmt.Errorf("there are no messages")
	}
	if r.ToolChoice != "" && (r.ToolChoice != "none" || len(r.Tools) == 0) {
		return fmt.Errorf("tool_choice %q with %d tools", r.ToolChoice, len(r.Tools))
	}
	if len(r.Tools) > chatArray {
		return fmt.Errorf("%d tools, at most %d", len(r.Tools), chatArray)
	}
	names := map[string]bool{}
	for _, t := range r.Tools {
		if name := t.Function.Name; t.Type != "function" || !chatName.MatchString(name) || names[name] ||
			!isObject(string(t.Function.Parameters)) {
			return fmt.Errorf("the tool %q is malformed or declared twice", name)
		}
		names[t.Function.Name] = true
	}
	if err := chatThread(r.Messages); err != nil {
		return err
	}
	return r.house(vendor)
}

func chatThread(messages []chatMessage) error {
	seen := map[string]bool{}
	var open []string // calls that have no result yet
	spoken := false
	for i := range messages {
		m := &messages[i]
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("message %d: the calls %q have no result directly after them", i, open)
		}
		switch m.Role {
		case "system":
			if spoken {
				return fmt.Errorf("message %d: a system message in the middle", i)
			}
		case "user":
			if m.Content.isEmpty() {
				return fmt.Errorf("message %d: an empty user message", i)
			}
		case "assistant":
			if err := m.calls(i, seen); err != nil {
				return err
			}
			for _, c := range m.ToolCalls {
				open = append(open, c.ID)
			}
		case "tool":
			if len(open) == 0 || m.ToolCallID != open[0] || m.Content == nil {
				return fmt.Errorf("message %d: a result of %q, expected one of %q", i, m.ToolCallID, open)
			}
			open = open[1:]
		default:
			return fmt.Errorf("message %d: the role %q", i, m.Role)
		}
		if err := m.Content.checkParts(m.Role, "text", "image_url", `{"url":"`); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		spoken = spoken || m.Role != "system"
	}
	if len(open) > 0 {
		return fmt.Errorf("the calls %q have no result", open)
	}
	if last := messages[len(messages)-1].Role; last != "user" && last != "tool" {
		return fmt.Errorf("the last message is of role %s", last)
	}
	return nil
}

// calls looks at a model's own message; seen are the ids of the thread so far.
func (m *chatMessage) calls(i int, seen map[string]bool) error {
	if len(m.ToolCalls) == 0 && m.Content.isEmpty() {
		return fmt.Errorf("message %d: an empty assistant message", i)
	}
	if len(m.ToolCalls) > chatArray {
		return fmt.Errorf("message %d: %d calls, at most %d", i, len(m.ToolCalls), chatArray)
	}
	for _, c := range m.ToolCalls {
		if len(c.ID) > 40 {
			return fmt.Errorf("message %d: the id %q is longer than %d", i, c.ID, 40)
		}
		if c.ID == "" || seen[c.ID] || c.Type != "function" || !chatName.MatchString(c.Function.Name) ||
			!isObject(c.Function.Arguments) {
			return fmt.Errorf("message %d: the call %q of %q is malformed or repeats an id", i, c.ID, c.Function.Name)
		}
		seen[c.ID] = true
	}
	return nil
}

func isObject(s string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(s), &object) == nil && object != nil
}

// house checks a vendor's own rules. They are written independently of the codec, so that a mistake
// in one shows.
func (r *chatRequest) house(vendor string) error {
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
		if major, minor := generation("gpt-", r.Model); len(r.Tools) > 0 && r.Effort != "none" &&
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
		if len(r.Tools) > 0 || slices.ContainsFunc(r.Messages, func(m chatMessage) bool {
			return m.Role == "tool" || len(m.ToolCalls) > 0
		}) {
			return fmt.Errorf("tools or results, which Perplexity does not have")
		}
		return r.turns()
	}
	return nil
}

// members checks for members that a vendor does not know, or refuses.
func (r *chatRequest) members(vendor string) error {
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

// reasoningBack checks DeepSeek's rule: from the first call after a person's message on, each of
// the model's messages carries its thinking, and no other does.
func (r *chatRequest) reasoningBack() error {
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

func (r *chatRequest) shortIDs() error {
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

// turns checks that user and assistant alternate; results come between an assistant's calls and its
// next message.
func (r *chatRequest) turns() error {
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

func (r *chatRequest) detailsBack() error {
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

// ChatEmbed is the strict validator of a request to embed, with the rules of a vendor.
func ChatEmbed(vendor string, body []byte) error {
	var r struct {
		Model     string   `json:"model"`
		Dimension *int     `json:"dimensions"`
		Output    *int     `json:"output_dimension"`
		Input     []string `json:"input"`
	}
	if err := decode(body, &r); err != nil {
		return err
	}
	switch {
	case r.Model == "":
		return fmt.Errorf("no model")
	case r.Output != nil && vendor != "mistral", r.Dimension != nil &&
		slices.Contains([]string{"mistral", "lmstudio", "llamacpp"}, vendor):
		return fmt.Errorf("a member for the dimensions that %q does not take", vendor)
	}
	return checkInput(r.Input, 2048)
}
