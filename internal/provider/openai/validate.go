package openai

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/regie-run/regie/internal/provider/wire"
)

var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// maxArray is how many tools, and how many calls of one message, OpenAI's own server takes.
const maxArray = 128

type wireRequest struct {
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
	Messages            []wireMessage `json:"messages"`
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

type wireMessage struct {
	Role       string          `json:"role"`
	Content    *string         `json:"content"`
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

// ValidateRequest says what a strict Chat Completions server of no particular vendor would refuse
// in a request (invariant 18): it is for the scripted servers of tests and harnesses, which see
// every prompt that is sent.
func ValidateRequest(body []byte) error { return ValidateVendor("", body) }

// TakesTools reports whether a vendor's models make calls of their own.
func TakesTools(vendor string) bool { return !quirksOf(vendor).noTools }

// ValidateVendor says what a strict server of a vendor, one of Vendors or empty, would refuse in a
// request: what all do, and its own rules.
func ValidateVendor(vendor string, body []byte) error {
	var r wireRequest
	if err := wire.Strict(body, &r); err != nil {
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
	if len(r.Tools) > maxArray {
		return fmt.Errorf("%d tools, at most %d", len(r.Tools), maxArray)
	}
	names := map[string]bool{}
	for _, t := range r.Tools {
		if name := t.Function.Name; t.Type != "function" || !wireName.MatchString(name) || names[name] ||
			!isObject(string(t.Function.Parameters)) {
			return fmt.Errorf("the tool %q is malformed or declared twice", name)
		}
		names[t.Function.Name] = true
	}
	if err := validateThread(r.Messages); err != nil {
		return err
	}
	return r.house(vendor)
}

func validateThread(messages []wireMessage) error {
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
			if m.Content == nil || *m.Content == "" {
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
func (m *wireMessage) calls(i int, seen map[string]bool) error {
	if len(m.ToolCalls) == 0 && (m.Content == nil || *m.Content == "") {
		return fmt.Errorf("message %d: an empty assistant message", i)
	}
	if len(m.ToolCalls) > maxArray {
		return fmt.Errorf("message %d: %d calls, at most %d", i, len(m.ToolCalls), maxArray)
	}
	for _, c := range m.ToolCalls {
		if len(c.ID) > maxID {
			return fmt.Errorf("message %d: the id %q is longer than %d", i, c.ID, maxID)
		}
		if c.ID == "" || seen[c.ID] || c.Type != "function" || !wireName.MatchString(c.Function.Name) ||
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
