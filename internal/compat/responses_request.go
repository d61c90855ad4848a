package compat

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
)

// responsesRequest is a request of Responses, as far as it is looked at.
type responsesRequest struct {
	Model              string            `json:"model"`
	Input              jsontext.Value    `json:"input"`
	Instructions       string            `json:"instructions"`
	PreviousResponseID string            `json:"previous_response_id"`
	Stream             bool              `json:"stream"`
	Tools              []functionTool    `json:"tools"`
	ToolChoice         jsontext.Value    `json:"tool_choice"`
	ParallelToolCalls  *bool             `json:"parallel_tool_calls"`
	Metadata           map[string]string `json:"metadata"`
	Reasoning          struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Text keys `json:"text"`

	Rest keys `json:",embed"`
}

type inputItem struct {
	Type      string         `json:"type"`
	Role      string         `json:"role"`
	Content   jsontext.Value `json:"content"`
	CallID    string         `json:"call_id"`
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Arguments string         `json:"arguments"`
	Output    jsontext.Value `json:"output"`
	ID        string         `json:"id"`
}

// parseResponses reads a request of Responses to an agent.
func parseResponses(data []byte) (*agentRequest, error) {
	var in responsesRequest
	if err := decodeStrict(data, &in); err != nil {
		return nil, err
	}
	if err := checkRequest(in.Model, 1); err != nil {
		return nil, err
	}
	out := &agentRequest{
		model: in.Model, stream: in.Stream, metadata: in.Metadata, raw: data, effort: in.Reasoning.Effort,
		previous: in.PreviousResponseID, oneCall: in.ParallelToolCalls != nil && !*in.ParallelToolCalls,
	}
	var err error
	if out.ignored, err = ignoredKeys(in.Rest, ""); err == nil {
		_, err = ignoredKeys(in.Text, "text.")
	}
	if err != nil {
		return nil, err
	}
	if in.PreviousResponseID != "" {
		var ok bool
		if out.session, out.round, ok = unpackID(responsePrefix, in.PreviousResponseID); !ok {
			return nil, badParameter("previous_response_id", "%q is not the id of a response of this endpoint",
				truncate(in.PreviousResponseID))
		}
	}
	if in.Instructions != "" {
		out.messages = append(out.messages, textMessage(regie.ImportedContext, in.Instructions, "instructions"))
		if in.PreviousResponseID != "" {
			out.ignored = append(out.ignored, "instructions")
		}
	}
	if err := out.readInput(in.Input); err != nil {
		return nil, err
	}
	tools, err := out.flattenTools(in.Tools, "", "", map[string]bool{})
	if err != nil {
		return nil, err
	}
	out.tools, err = chooseTools(tools, string(in.ToolChoice), "tool_choice")
	return out, err
}

// flattenTools returns the client's functions. Those of a namespace have a flat name. It drops
// tools that only OpenAI runs, and those with a free form, and names them.
func (a *agentRequest) flattenTools(given []functionTool, namespace, within string,
	seen map[string]bool,
) (tools []regie.ClientTool, err error) {
	for i := range given {
		t, param := &given[i], within+indexName("tools", i)
		switch {
		case t.Type == "function":
			tool := t.toClientTool(namespace)
			err = checkName(tool.Name, param+".name", seen)
			tools = append(tools, tool)
		case t.Type == "namespace" && namespace == "" && t.Name != "":
			var more []regie.ClientTool
			more, err = a.flattenTools(t.Tools, t.Name, param+".", seen)
			tools = append(tools, more...)
		case t.Type == "" || t.Type == "namespace" || strings.Trim(t.Type,
			"abcdefghijklmnopqrstuvwxyz_0123456789") != "":
			err = noTool(param, t.Type)
		case len(a.ignored) < maxIgnored:
			a.ignored = append(a.ignored, param+" ("+truncate(t.Type)+")")
		}
		if err != nil {
			return nil, err
		}
	}
	return tools, nil
}

// flatName returns the name of a function of a namespace among all functions of a request.
func flatName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "__" + name
}

// readInput takes the messages of the input.
func (a *agentRequest) readInput(input jsontext.Value) error {
	switch input.Kind() {
	case '"':
		var text string
		if err := decodeStrict(input, &text); err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			return badParameter("input", "the input is empty")
		}
		a.messages = append(a.messages, textMessage(regie.ImportedUser, text, "input"))
		return nil
	case '[':
	default:
		return badParameter("input", "the input must be a text or a list of items")
	}
	var items []inputItem
	if err := decodeStrict(input, &items); err != nil {
		return badParameter("input", "%s", err.Error())
	}
	if len(items) == 0 || len(items) > maxMessages {
		return badParameter("input", "the input has %d items: send from 1 to %d", len(items), maxMessages)
	}
	for i := range items {
		if err := a.addItem(&items[i], indexName("input", i)); err != nil {
			return err
		}
	}
	return nil
}

// addItem adds an item to the messages. Calls that follow one another, or a text of the assistant,
// are of one reply.
func (a *agentRequest) addItem(item *inputItem, param string) error {
	if item.Type == "reasoning" { // an agent's model has its own
		return nil
	}
	switch item.Type {
	case "", "message":
		text, err := textOf(item.Content, param+".content", "input_text", "output_text")
		if err != nil {
			return err
		}
		out, err := openAIMessage(item.Role, text, param)
		a.messages = append(a.messages, out)
		return err
	case "item_reference":
		out := textMessage(regie.ImportedAssistant, "", param)
		if out.reference = item.ID; out.reference == "" {
			return badParameter(param+".id", "a reference names an item by its id")
		}
		a.messages = append(a.messages, out)
		return nil
	case "function_call":
		call := regie.ImportedCall{
			ID: item.CallID, Name: flatName(item.Namespace, item.Name), Arguments: item.Arguments,
		}
		if n := len(a.messages); n == 0 || a.messages[n-1].Role != regie.ImportedAssistant {
			a.messages = append(a.messages, textMessage(regie.ImportedAssistant, "", param))
		}
		last := &a.messages[len(a.messages)-1]
		last.Calls = append(last.Calls, call)
		return checkCalls([]regie.ImportedCall{call}, param)
	case "function_call_output":
		text, err := textOf(item.Output, param+".output", "input_text", "output_text")
		out := textMessage(roleTool, "", param)
		out.results = []clientResult{{item.CallID, text, param + ".call_id"}}
		a.messages = append(a.messages, out)
		return err
	default:
		return badParameter(param+".type", "items of type %q are not supported", truncate(item.Type))
	}
}

// resolveReferences replaces references to items of earlier responses by what those items say.
func (s *server) resolveReferences(ctx context.Context, a *agentRequest) error {
	var out []message
	size := 0
	for i := range a.messages {
		m := a.messages[i]
		if m.reference != "" {
			item, err := s.storedItem(ctx, m.reference, m.param+".id")
			if err != nil {
				return err
			}
			m.Text, m.Calls = item.Text, slices.Concat(item.Calls, m.Calls)
			for _, call := range item.Calls {
				size += len(call.Arguments)
			}
			if size += len(item.Text); size > httpread.MaxBody {
				return badParameter(m.param, "the referenced items have more than %d bytes together: send fewer of them",
					httpread.MaxBody)
			}
			if n := len(out); item.Text == "" && n > 0 && out[n-1].Role == regie.ImportedAssistant {
				out[n-1].Calls = slices.Concat(out[n-1].Calls, m.Calls)
				continue
			}
		}
		out = append(out, m)
	}
	a.messages = out
	return nil
}

// storedItem finds an output item of a response. It returns NOT_FOUND for one of a session that
// the caller may not continue.
func (s *server) storedItem(ctx context.Context, id, param string) (out regie.ImportedMessage, err error) {
	unknown := &problem{param: param, err: regie.Errorf(regie.CodeNotFound,
		"no response here has the item %s: send the item itself instead of a reference", truncate(id))}
	round, call, ok := parseItemID(id)
	if !ok {
		return out, unknown
	}
	view, err := s.findRound(ctx, round, regie.ScopeChat, unknown)
	if err != nil {
		return out, err
	}
	result := storedOutcome(&view)
	if call.IsZero() {
		out.Text = result.text
		return out, nil
	}
	for i := range result.calls {
		if c := &result.calls[i]; c.ID == call {
			out.Calls = []regie.ImportedCall{{
				ID: callID(result.session, call), Name: toolName(c), Arguments: argumentsOf(c),
			}}
			return out, nil
		}
	}
	return out, unknown
}
