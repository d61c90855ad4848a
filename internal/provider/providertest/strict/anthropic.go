package strict

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var (
	anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	propertyName  = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	anthropicID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

type anthropicRequest struct {
	Model       string             `json:"model"`
	MaxTokens   int                `json:"max_tokens"`
	Stream      bool               `json:"stream"`
	Temperature *float64           `json:"temperature"`
	Thinking    *anthropicThinking `json:"thinking"`
	System      []anthropicBlock   `json:"system"`
	Tools       []anthropicTool    `json:"tools"`
	ToolChoice  *anthropicChoice   `json:"tool_choice"`
	Messages    []anthropicMessage `json:"messages"`
	Metadata    map[string]string  `json:"metadata"`
	ServiceTier string             `json:"service_tier"`
	Output      *struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
}

type anthropicThinking struct {
	Type string `json:"type"`
}

type anthropicChoice struct {
	Type       string `json:"type"`
	Name       string `json:"name"`
	NoParallel bool   `json:"disable_parallel_tool_use"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      jsontext.Value  `json:"input_schema"`
	Cache       *anthropicCache `json:"cache_control"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

type anthropicCache struct {
	Type string `json:"type"`
	TTL  string `json:"ttl"`
}

// anthropicBlock is any block; pointers distinguish absent from empty.
type anthropicBlock struct {
	Type      string         `json:"type"`
	Text      *string        `json:"text"`
	Thinking  *string        `json:"thinking"`
	Signature *string        `json:"signature"`
	Data      *string        `json:"data"`
	ID        *string        `json:"id"`
	Name      *string        `json:"name"`
	Input     jsontext.Value `json:"input"`
	ToolUseID *string        `json:"tool_use_id"`
	Content   *string        `json:"content"`
	IsError   bool           `json:"is_error"`
	Source    *struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
	Cache *anthropicCache `json:"cache_control"`
}

// Anthropic returns the error of a strict Messages API for a request (invariant 18). Tests run
// every prompt through it. It knows the fields that the codec writes and refuses others.
func Anthropic(body []byte) error {
	var r anthropicRequest
	if err := decode(body, &r); err != nil {
		return err
	}
	switch {
	case r.Model == "":
		return fmt.Errorf("no model is named")
	case r.MaxTokens <= 0:
		return fmt.Errorf("the output is not bounded")
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 1):
		return fmt.Errorf("the temperature %v is not between 0 and 1", *r.Temperature)
	case len(r.Messages) == 0:
		return fmt.Errorf("there are no messages")
	}
	if err := r.thinking(); err != nil {
		return err
	}
	if err := r.tools(); err != nil {
		return err
	}
	for i := range r.System {
		if b := &r.System[i]; b.Type != "text" || b.Text == nil || blank(*b.Text) {
			return fmt.Errorf("system block %d is no text, or an empty one", i)
		}
	}
	if err := r.thread(); err != nil {
		return err
	}
	return r.marks()
}

func (r *anthropicRequest) thinking() error {
	if r.Output != nil {
		major, minor := generation("", r.Model)
		if !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, r.Output.Effort) || major > 0 &&
			(major < 4 || major == 4 && minor < 6) {
			return fmt.Errorf("the effort %q of %s", r.Output.Effort, r.Model)
		}
	}
	if r.ServiceTier != "" && r.ServiceTier != "auto" && r.ServiceTier != "standard_only" {
		return fmt.Errorf("the service tier %q", r.ServiceTier)
	}
	switch t := r.Thinking; {
	case t == nil, t.Type == "disabled":
		return nil
	case t.Type != "adaptive":
		return fmt.Errorf("thinking is %q", t.Type)
	}
	if major, minor := generation("", r.Model); major > 0 && (major < 4 || major == 4 && minor < 6) {
		return fmt.Errorf("%s has no adaptive thinking", r.Model)
	}
	return nil
}

func (r *anthropicRequest) tools() error {
	names := map[string]bool{}
	for i := range r.Tools {
		t := &r.Tools[i]
		if !anthropicName.MatchString(t.Name) || names[t.Name] {
			return fmt.Errorf(
				"tool %d: the name %q is malformed (letters, digits, _ and -, at most %d) or declared twice", i, t.Name,
				128)
		}
		names[t.Name] = true
		var schema map[string]jsontext.Value
		if t.Schema.Kind() != '{' || jsonv2.Unmarshal(t.Schema, &schema) != nil ||
			string(schema["type"]) != `"object"` {
			return fmt.Errorf("tool %s: input_schema is not of type object", t.Name)
		}
		for _, key := range []string{"oneOf", "anyOf", "allOf"} {
			if _, ok := schema[key]; ok {
				return fmt.Errorf("tool %s: input_schema does not support %s at the top level", t.Name, key)
			}
		}
		var properties map[string]jsontext.Value
		if raw, ok := schema["properties"]; ok && jsonv2.Unmarshal(raw, &properties) != nil {
			return fmt.Errorf("tool %s: properties are no object", t.Name)
		}
		for property := range properties {
			if !propertyName.MatchString(property) {
				return fmt.Errorf("tool %s: the property %q is not of letters, digits, _, . and -, at most 64", t.Name,
					property)
			}
		}
	}
	if c := r.ToolChoice; c != nil {
		if len(r.Tools) == 0 {
			return fmt.Errorf("tool_choice without tools")
		}
		if c.Type != "auto" && c.Type != "none" && c.Type != "any" && (c.Type != "tool" || !names[c.Name]) {
			return fmt.Errorf("tool_choice %q %q", c.Type, c.Name)
		}
		if c.NoParallel && c.Type == "none" {
			return fmt.Errorf("disable_parallel_tool_use where no tool may be used")
		}
	}
	return nil
}

// thread checks order and pairing.
func (r *anthropicRequest) thread() error {
	var open []string // calls of the message before
	seen := map[string]bool{}
	used := false
	for i := range r.Messages {
		m := &r.Messages[i]
		want := "user"
		if i%2 == 1 {
			want = "assistant"
		}
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return fmt.Errorf("message %d: the role %q", i, m.Role)
		case m.Role != want:
			return fmt.Errorf("message %d: of role %s, the roles alternate and begin with user", i, m.Role)
		case len(m.Content) == 0:
			return fmt.Errorf("message %d: no content", i)
		}
		var err error
		if m.Role == "user" {
			err = m.user(open)
			open = nil
		} else {
			open, err = m.assistant(seen)
			used = used || len(open) > 0
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	switch {
	case r.Messages[len(r.Messages)-1].Role != "user":
		return fmt.Errorf("the last message is of role assistant")
	case used && len(r.Tools) == 0:
		return fmt.Errorf("tool_use in the thread, and no tools are declared")
	}
	return nil
}

// user checks a user message: the results of every call before it come first, each once.
func (m *anthropicMessage) user(open []string) error {
	wanted, others := map[string]bool{}, false
	for _, id := range open {
		wanted[id] = true
	}
	for j := range m.Content {
		b := &m.Content[j]
		switch b.Type {
		case "text":
			others = true
			if b.Text == nil || blank(*b.Text) {
				return fmt.Errorf("block %d: text content blocks must contain non-whitespace text", j)
			}
		case "image":
			others = true
			if b.Source == nil || b.Source.Type != "base64" {
				return fmt.Errorf("block %d: an image without a base64 source", j)
			}
			if err := checkImage(b.Source.MediaType, b.Source.Data); err != nil {
				return fmt.Errorf("block %d: %w", j, err)
			}
		case "tool_result":
			switch {
			case b.ToolUseID == nil || !anthropicID.MatchString(*b.ToolUseID):
				return fmt.Errorf("block %d: a tool_result without a well-formed tool_use_id", j)
			case !wanted[*b.ToolUseID]:
				return fmt.Errorf(
					"block %d: a tool_result of %s, which the message before did not call, or has its result already",
					j, *b.ToolUseID)
			case others:
				return fmt.Errorf("block %d: a tool_result behind other content: results come first", j)
			}
			delete(wanted, *b.ToolUseID)
		default:
			return fmt.Errorf("block %d: a %q block of the user", j, b.Type)
		}
	}
	if len(wanted) > 0 {
		return fmt.Errorf("%d tool_use ids were found without tool_result blocks immediately after", len(wanted))
	}
	return nil
}

// assistant checks a model's message and returns its calls.
func (m *anthropicMessage) assistant(seen map[string]bool) (calls []string, err error) {
	thinks := false
	for j := range m.Content {
		b := &m.Content[j]
		switch b.Type {
		case "text":
			if b.Text == nil || blank(*b.Text) {
				return nil, fmt.Errorf("block %d: text content blocks must contain non-whitespace text", j)
			}
		case "thinking", "redacted_thinking":
			thinks = true
			switch {
			case m.Content[0].Type != "thinking" && m.Content[0].Type != "redacted_thinking":
				return nil,
					fmt.Errorf("block %d: if a message contains thinking, the first block must be thinking, found %s",
						j, m.Content[0].Type)
			case b.Type == "thinking" && (b.Thinking == nil || b.Signature == nil || *b.Signature == ""):
				return nil, fmt.Errorf("block %d: thinking without its signature", j)
			case b.Type == "redacted_thinking" && (b.Data == nil || *b.Data == ""):
				return nil, fmt.Errorf("block %d: redacted_thinking without its data", j)
			case b.Cache != nil:
				return nil, fmt.Errorf("block %d: cache_control on thinking", j)
			}
		case "tool_use":
			switch {
			case b.ID == nil || !anthropicID.MatchString(*b.ID):
				return nil, fmt.Errorf("block %d: tool_use.id should match %s", j, anthropicID)
			case seen[*b.ID]:
				return nil, fmt.Errorf("block %d: the tool_use id %s repeats", j, *b.ID)
			case b.Name == nil || !anthropicName.MatchString(*b.Name):
				return nil, fmt.Errorf("block %d: tool_use without a well-formed name", j)
			case b.Input.Kind() != '{':
				return nil, fmt.Errorf("block %d: tool_use.input is no object", j)
			}
			seen[*b.ID] = true
			calls = append(calls, *b.ID)
		default:
			return nil, fmt.Errorf("block %d: a %q block of the assistant", j, b.Type)
		}
	}
	if last := m.Content[len(m.Content)-1].Type; thinks && strings.HasSuffix(last, "thinking") {
		return nil, fmt.Errorf("the last block is %s", last)
	}
	return calls, nil
}

// marks counts the cache marks.
func (r *anthropicRequest) marks() error {
	var caches []*anthropicCache
	for i := range r.System {
		caches = append(caches, r.System[i].Cache)
	}
	for i := range r.Tools {
		caches = append(caches, r.Tools[i].Cache)
	}
	for i := range r.Messages {
		for j := range r.Messages[i].Content {
			caches = append(caches, r.Messages[i].Content[j].Cache)
		}
	}
	n := 0
	for _, c := range caches {
		if c == nil {
			continue
		}
		if n++; c.Type != "ephemeral" {
			return fmt.Errorf("cache_control of type %q", c.Type)
		}
	}
	if n > 4 {
		return fmt.Errorf("%d blocks with cache_control, at most 4", n)
	}
	return nil
}
