package strict

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

type ollamaRequest struct {
	Model     string         `json:"model"`
	Stream    bool           `json:"stream"`
	KeepAlive jsontext.Value `json:"keep_alive"`
	Think     jsontext.Value `json:"think"`
	Options   struct {
		Predict     int      `json:"num_predict"`
		Context     int      `json:"num_ctx"`
		Temperature *float64 `json:"temperature"`
	} `json:"options"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string         `json:"name"`
			Description string         `json:"description"`
			Parameters  jsontext.Value `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Messages []ollamaMessage `json:"messages"`
}

type ollamaMessage struct {
	Role      string   `json:"role"`
	Content   string   `json:"content"`
	Images    []string `json:"images"`
	Thinking  string   `json:"thinking"`
	ToolName  string   `json:"tool_name"`
	CallID    string   `json:"tool_call_id"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Index     int            `json:"index"`
			Name      string         `json:"name"`
			Arguments jsontext.Value `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Ollama returns the error of a strict server of the native API for a request (invariant 18),
// including what models' templates cannot handle. Tests run every prompt through it. It knows the
// fields that the codec writes and refuses others.
func Ollama(body []byte) error {
	var r ollamaRequest
	if err := decode(body, &r); err != nil {
		return err
	}
	switch {
	case r.Model == "":
		return fmt.Errorf("no model is named")
	case !slices.Contains([]string{"", "true", "false", `"low"`, `"medium"`, `"high"`, `"max"`}, string(r.Think)):
		return fmt.Errorf("thinking is %s", r.Think)
	case r.Options.Predict <= 0:
		return fmt.Errorf("the output is not bounded")
	case r.Options.Context > 0 && r.Options.Predict >= r.Options.Context:
		return fmt.Errorf("the output of %d takes all of the context of %d", r.Options.Predict, r.Options.Context)
	case len(r.Messages) == 0:
		return fmt.Errorf("there are no messages")
	}
	names := map[string]bool{}
	for _, t := range r.Tools {
		if t.Type != "function" || t.Function.Name == "" || names[t.Function.Name] ||
			t.Function.Parameters.Kind() != '{' {
			return fmt.Errorf("the tool %q is malformed or declared twice", t.Function.Name)
		}
		names[t.Function.Name] = true
	}
	return ollamaThread(r.Messages)
}

func ollamaThread(messages []ollamaMessage) error {
	type call struct{ id, name string }
	var open []call
	for i := range messages {
		m := &messages[i]
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("message %d: %d calls have no result directly after them", i, len(open))
		}
		if m.Role != "assistant" && (len(m.ToolCalls) > 0 || m.Thinking != "") {
			return fmt.Errorf("message %d: calls or thinking of role %s", i, m.Role)
		}
		for _, image := range m.Images {
			// it reads the type from the data
			if err := checkImage("image/png", image); err != nil || m.Role != "user" {
				return fmt.Errorf("message %d: an image of the %s: %w", i, m.Role, err)
			}
		}
		switch m.Role {
		case "system":
			if i > 0 {
				return fmt.Errorf("message %d: a system message that is not the first", i)
			}
		case "user":
			if m.Content == "" {
				return fmt.Errorf("message %d: an empty user message", i)
			}
		case "assistant":
			if m.Content == "" && len(m.ToolCalls) == 0 {
				return fmt.Errorf("message %d: an empty assistant message", i)
			}
			for n, c := range m.ToolCalls {
				if c.ID == "" || c.Function.Name == "" || c.Function.Arguments.Kind() != '{' || c.Function.Index != n {
					return fmt.Errorf("message %d: the call %q of %q is malformed", i, c.ID, c.Function.Name)
				}
				open = append(open, call{c.ID, c.Function.Name})
			}
		case "tool":
			if len(open) == 0 || m.CallID != open[0].id || m.ToolName != open[0].name {
				return fmt.Errorf("message %d: a result of %q (%s), expected one of %v", i, m.CallID, m.ToolName, open)
			}
			open = open[1:]
		default:
			return fmt.Errorf("message %d: the role %q", i, m.Role)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d calls have no result", len(open))
	}
	if last := messages[len(messages)-1].Role; last != "user" && last != "tool" {
		return fmt.Errorf("the last message is of role %s", last)
	}
	return nil
}

// OllamaEmbed is the strict validator of a request to embed.
func OllamaEmbed(body []byte) error {
	var r struct {
		Model      string         `json:"model"`
		Truncate   *bool          `json:"truncate"`
		KeepAlive  jsontext.Value `json:"keep_alive"`
		Dimensions *int           `json:"dimensions"`
		Input      []string       `json:"input"`
	}
	if err := decode(body, &r); err != nil {
		return err
	}
	switch {
	case r.Model == "":
		return fmt.Errorf("no model")
	case r.Truncate == nil || *r.Truncate:
		return fmt.Errorf("the server may cut a text without a word")
	case r.Dimensions != nil && *r.Dimensions < 1:
		return fmt.Errorf("%d dimensions", *r.Dimensions)
	}
	return checkInput(r.Input, 32)
}
