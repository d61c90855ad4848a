package strict

import (
	"fmt"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// What the API takes, as its documentation and its error messages say.
const (
	maxText = 10 << 20 // characters of one text
	maxKey  = 64       // characters of a cache key
)

// The words of settings that a request may have and need not.
var (
	efforts   = []string{"none", "minimal", "low", "medium", "high", "xhigh"}
	summaries = []string{"auto", "concise", "detailed"}
	tiers     = []string{"auto", "default", "flex", "priority"}
)

type responsesRequest struct {
	Model        string          `json:"model"`
	Stream       bool            `json:"stream"`
	Store        *bool           `json:"store"`
	MaxOutput    int             `json:"max_output_tokens"`
	Temperature  *float64        `json:"temperature"`
	Include      []string        `json:"include"`
	Tools        []responsesTool `json:"tools"`
	Parallel     *bool           `json:"parallel_tool_calls"`
	ToolChoice   string          `json:"tool_choice"`
	Instructions *string         `json:"instructions"`
	Input        []responsesItem `json:"input"`
	CacheKey     string          `json:"prompt_cache_key"`
	Tier         string          `json:"service_tier"`
	Reasoning    *struct {
		Effort  string `json:"effort"`
		Summary string `json:"summary"`
	} `json:"reasoning"`
}

type responsesTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`
	Strict      *bool          `json:"strict"`
}

// responsesItem is any item; pointers distinguish absent from empty.
type responsesItem struct {
	Type      string   `json:"type"`
	Role      string   `json:"role"`
	Content   *content `json:"content"`
	Phase     *string  `json:"phase"`
	ID        *string  `json:"id"`
	Encrypted *string  `json:"encrypted_content"`
	CallID    *string  `json:"call_id"`
	Name      *string  `json:"name"`
	Arguments *string  `json:"arguments"`
	Output    *string  `json:"output"`
	Summary   *[]struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"summary"`
}

// Responses returns the error of a strict Responses API for a request (invariant 18). Tests run
// every prompt through it. It knows the fields that the codec writes and refuses others.
func Responses(body []byte) error {
	var r responsesRequest
	if err := decode(body, &r); err != nil {
		return err
	}
	switch {
	case r.Model == "":
		return fmt.Errorf("no model is named")
	case !r.Stream || r.Store == nil || *r.Store:
		return fmt.Errorf("it does not say stream: true and store: false")
	case r.MaxOutput < 16:
		return fmt.Errorf("max_output_tokens is %d, at least %d", r.MaxOutput, 16)
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 2):
		return fmt.Errorf("the temperature %v is not between 0 and 2", *r.Temperature)
	case r.Temperature != nil && (len(r.Include) > 0 || r.Reasoning != nil):
		return fmt.Errorf("temperature is not supported with a model that reasons")
	case len(r.Include) > 1 || len(r.Include) == 1 && r.Include[0] != "reasoning.encrypted_content":
		return fmt.Errorf("include: %q", r.Include)
	case r.Instructions != nil && (blank(*r.Instructions) || len(*r.Instructions) > maxText):
		return fmt.Errorf("the instructions are blank, or too long")
	case len(r.CacheKey) > maxKey:
		return fmt.Errorf("prompt_cache_key has %d characters, at most %d", len(r.CacheKey), maxKey)
	case r.Tier != "" && !slices.Contains(tiers, r.Tier):
		return fmt.Errorf("the service tier %q", r.Tier)
	case r.Reasoning != nil && (r.Reasoning.Effort != "" && !slices.Contains(efforts, r.Reasoning.Effort) ||
		r.Reasoning.Summary != "" && !slices.Contains(summaries, r.Reasoning.Summary)):
		return fmt.Errorf("reasoning with the effort %q and the summary %q", r.Reasoning.Effort, r.Reasoning.Summary)
	case len(r.Input) == 0:
		return fmt.Errorf("there is no input")
	}
	if err := r.tools(); err != nil {
		return err
	}
	return r.thread()
}

func (r *responsesRequest) tools() error {
	if len(r.Tools) > chatArray {
		return fmt.Errorf("%d tools, at most %d", len(r.Tools), chatArray)
	}
	names := map[string]bool{}
	for i := range r.Tools {
		t := &r.Tools[i]
		if t.Type != "function" || !chatName.MatchString(t.Name) || names[t.Name] {
			return fmt.Errorf(
				"tool %d: the name %q is malformed (letters, digits, _ and -, at most 64) or declared twice", i, t.Name)
		}
		names[t.Name] = true
		var schema map[string]jsontext.Value
		switch {
		case t.Strict == nil || *t.Strict:
			return fmt.Errorf("tool %s: strict is not false, and the schema is not a strict one", t.Name)
		case t.Parameters.Kind() != '{' || jsonv2.Unmarshal(t.Parameters, &schema) != nil ||
			string(schema["type"]) != `"object"`:
			return fmt.Errorf("tool %s: schema must have type 'object'", t.Name)
		}
		for _, key := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
			if _, ok := schema[key]; ok {
				return fmt.Errorf("tool %s: schema must not have '%s' at the top level", t.Name, key)
			}
		}
	}
	if len(r.Tools) == 0 && (r.Parallel != nil || r.ToolChoice != "") || r.ToolChoice != "" && r.ToolChoice != "none" {
		return fmt.Errorf("tool_choice %q or parallel_tool_calls with %d tools", r.ToolChoice, len(r.Tools))
	}
	return nil
}

// responsesPairs follows the calls and the reasoning of a thread.
type responsesPairs struct {
	made     map[string]bool // ids of calls and of reasoning items
	open     []string        // calls that have no output yet
	answered bool            // the newest item is an output
	led      string          // the id of a reasoning that is followed by nothing yet
	spoken   bool            // an item is not the developer's
}

// thread checks order and pairing.
func (r *responsesRequest) thread() error {
	p := &responsesPairs{made: map[string]bool{}}
	for i := range r.Input {
		it := &r.Input[i]
		err := it.fields()
		if err == nil {
			switch it.Type {
			case "message":
				err = p.message(it)
			case "reasoning":
				err = p.reasoning(it, len(r.Include) > 0)
			case "function_call":
				err = p.call(it)
			case "function_call_output":
				err = p.output(it)
			}
		}
		if err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	switch last := &r.Input[len(r.Input)-1]; {
	case p.led != "":
		return fmt.Errorf("item %s of type 'reasoning' was provided without its required following item", p.led)
	case len(p.open) > 0:
		return fmt.Errorf("no tool output found for function calls %q", p.open)
	case last.Role != "user" && last.Type != "function_call_output":
		return fmt.Errorf("the last item is a %s of the %s", last.Type, last.Role)
	}
	return nil
}

// fields checks that an item has the members of its kind and no others.
func (it *responsesItem) fields() error {
	kinds := map[string][]string{
		"message": {}, "reasoning": {"id", "summary", "encrypted_content"},
		"function_call": {"call_id", "name", "arguments"}, "function_call_output": {"call_id", "output"},
	}
	needed, known := kinds[it.Type]
	if !known {
		return fmt.Errorf("the type %q", it.Type)
	}
	if (it.Content != nil) != (it.Type == "message") || it.Content != nil && len(it.Content.text) > maxText {
		return fmt.Errorf("a %s with content: %v", it.Type, it.Content != nil)
	}
	size := func(s *string) (bool, int) {
		if s == nil {
			return false, 0
		}
		return true, len(*s)
	}
	for name, member := range map[string]*string{
		"id": it.ID, "encrypted_content": it.Encrypted, "call_id": it.CallID, "name": it.Name,
		"arguments": it.Arguments, "output": it.Output,
	} {
		is, length := size(member)
		if is != slices.Contains(needed, name) || length > maxText {
			return fmt.Errorf("a %s with %s: %v, of %d bytes", it.Type, name, is, length)
		}
	}
	if (it.Summary != nil) != slices.Contains(needed, "summary") || (it.Role != "") != (it.Type == "message") {
		return fmt.Errorf("a %s with the role %q, or without a summary where one belongs", it.Type, it.Role)
	}
	if it.Phase != nil && (it.Role != "assistant" || *it.Phase != "commentary" && *it.Phase != "final_answer") {
		return fmt.Errorf("the phase %q of a %s", *it.Phase, it.Type)
	}
	return nil
}

// settled checks that nothing is open when a new item begins.
func (p *responsesPairs) settled() error {
	if p.led != "" {
		return fmt.Errorf("item %s of type 'reasoning' was provided without its required following item", p.led)
	}
	if len(p.open) > 0 {
		return fmt.Errorf("no tool output found for function calls %q", p.open)
	}
	return nil
}

func (p *responsesPairs) message(it *responsesItem) error {
	if it.Content.isEmpty() {
		return fmt.Errorf("a message of the %s without content", it.Role)
	}
	if err := it.Content.checkParts(it.Role, "input_text", "input_image", `"`); err != nil {
		return err
	}
	switch it.Role {
	case "assistant":
		if err := p.speaks(); err != nil {
			return err
		}
		p.led = ""
		return nil
	case "user":
		p.spoken = true
	case "developer":
		if p.spoken {
			return fmt.Errorf("a message of the developer in the middle")
		}
	default:
		return fmt.Errorf("the role %q", it.Role)
	}
	p.answered = false
	return p.settled()
}

// speaks checks the state before the model's items: the calls of the reply before have their
// outputs.
func (p *responsesPairs) speaks() error {
	if p.answered && len(p.open) > 0 {
		return fmt.Errorf("no tool output found for function calls %q", p.open)
	}
	p.spoken, p.answered = true, false
	return nil
}

func (p *responsesPairs) reasoning(it *responsesItem, asked bool) error {
	switch {
	case !asked:
		return fmt.Errorf("reasoning is given back, and none is asked for")
	case *it.ID == "" || *it.Encrypted == "":
		return fmt.Errorf("reasoning without its id or its encrypted content")
	case p.made["reasoning "+*it.ID]:
		return fmt.Errorf("duplicate item found with id %s", *it.ID)
	}
	for _, piece := range *it.Summary {
		if piece.Type != "summary_text" {
			return fmt.Errorf("a summary of type %q", piece.Type)
		}
	}
	p.made["reasoning "+*it.ID] = true
	if err := p.speaks(); err != nil {
		return err
	}
	p.led = *it.ID
	return nil
}

func (p *responsesPairs) call(it *responsesItem) error {
	id := *it.CallID
	switch {
	case id == "" || len(id) > 64:
		return fmt.Errorf("the call id %q is empty or longer than %d", id, 64)
	case p.made["call "+id]:
		return fmt.Errorf("the call id %s repeats", id)
	case !chatName.MatchString(*it.Name):
		return fmt.Errorf("the name %q of a call is malformed", *it.Name)
	case jsontext.Value(*it.Arguments).Kind() != '{' || !jsontext.Value(*it.Arguments).IsValid():
		return fmt.Errorf("the arguments of call %s are no object", id)
	}
	if err := p.speaks(); err != nil {
		return err
	}
	p.made["call "+id], p.led = true, ""
	p.open = append(p.open, id)
	return nil
}

func (p *responsesPairs) output(it *responsesItem) error {
	if p.led != "" {
		return p.settled()
	}
	if len(p.open) == 0 || p.open[0] != *it.CallID {
		return fmt.Errorf("no tool call found for function call output with call_id %s, expected one of %q", *it.CallID,
			p.open)
	}
	p.open, p.answered = p.open[1:], true
	return nil
}
