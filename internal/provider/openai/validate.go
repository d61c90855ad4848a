package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
)

var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

type wireRequest struct {
	Model               string        `json:"model"`
	Stream              bool          `json:"stream"`
	MaxTokens           int           `json:"max_tokens"`
	MaxCompletionTokens int           `json:"max_completion_tokens"`
	Messages            []wireMessage `json:"messages"`
	Tools               []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

type wireMessage struct {
	Role       string  `json:"role"`
	Content    *string `json:"content"`
	ToolCallID string  `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// ValidateRequest says what a strict Chat Completions server would refuse in a request (invariant 18): it is for the scripted
// servers of tests and harnesses, which see every prompt that is sent.
func ValidateRequest(body []byte) error {
	var r wireRequest
	if !utf8.Valid(body) {
		return fmt.Errorf("the request is not UTF-8")
	}
	if err := jsonv2.Unmarshal(body, &r); err != nil { // refuses duplicate keys
		return fmt.Errorf("the request is no strict JSON: %w", err)
	}
	switch {
	case r.Model == "":
		return fmt.Errorf("no model is named")
	case r.MaxTokens <= 0 && r.MaxCompletionTokens <= 0:
		return fmt.Errorf("the output is not bounded")
	case len(r.Messages) == 0:
		return fmt.Errorf("there are no messages")
	}
	names := map[string]bool{}
	for _, t := range r.Tools {
		if name := t.Function.Name; t.Type != "function" || !wireName.MatchString(name) || names[name] || !isObject(string(t.Function.Parameters)) {
			return fmt.Errorf("the tool %q is malformed or declared twice", name)
		}
		names[t.Function.Name] = true
	}
	return validateThread(r.Messages)
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
			if len(m.ToolCalls) == 0 && (m.Content == nil || *m.Content == "") {
				return fmt.Errorf("message %d: an empty assistant message", i)
			}
			for _, c := range m.ToolCalls {
				if c.ID == "" || seen[c.ID] || c.Type != "function" || !wireName.MatchString(c.Function.Name) || !isObject(c.Function.Arguments) {
					return fmt.Errorf("message %d: the call %q of %q is malformed or repeats an id", i, c.ID, c.Function.Name)
				}
				seen[c.ID] = true
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

func isObject(s string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(s), &object) == nil && object != nil
}
