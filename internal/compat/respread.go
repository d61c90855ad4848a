package compat

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
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
	Tools              []responsesTool   `json:"tools"`
	ToolChoice         jsontext.Value    `json:"tool_choice"`
	ParallelToolCalls  *bool             `json:"parallel_tool_calls"`
	Metadata           map[string]string `json:"metadata"`
	Reasoning          *struct {
		Effort string `json:"effort"`

		Rest map[string]jsontext.Value `json:",embed"`
	} `json:"reasoning"`

	Background   bool           `json:"background"`
	Conversation jsontext.Value `json:"conversation"`
	Prompt       jsontext.Value `json:"prompt"`
	TopLogprobs  int            `json:"top_logprobs"`
	Text         *struct {
		Format *struct {
			Type string `json:"type"`
		} `json:"format"`

		Rest map[string]jsontext.Value `json:",embed"`
	} `json:"text"`

	Rest map[string]jsontext.Value `json:",embed"`
}

type responsesTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`

	Rest map[string]jsontext.Value `json:",embed"`
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

	Rest map[string]jsontext.Value `json:",embed"`
}

// parseResponses reads a request of Responses to an agent.
func parseResponses(data []byte) (*asking, *responsesRequest, error) {
	var in responsesRequest
	if err := decode(data, &in); err != nil {
		return nil, nil, err
	}
	if err := in.refuse(); err != nil {
		return nil, nil, err
	}
	out := &asking{model: in.Model, stream: in.Stream, metadata: in.Metadata, raw: data}
	var err error
	if in.Reasoning != nil {
		out.effort = in.Reasoning.Effort
		err = strays(in.Reasoning.Rest, "reasoning", besideReasoning)
	}
	if in.Text != nil {
		err = cmp.Or(err, strays(in.Text.Rest, "text", []string{"verbosity"}))
	}
	if err != nil {
		return nil, nil, err
	}
	if out.ignored, err = ignored(in.Rest, slices.Concat(ignoredByAgents, ignoredInResponses)); err != nil {
		return nil, nil, err
	}
	out.oneCall = in.ParallelToolCalls != nil && !*in.ParallelToolCalls
	if in.PreviousResponseID != "" {
		session, round, number, ok := parseResponseID(in.PreviousResponseID)
		if !ok {
			return nil, nil, refused("previous_response_id", "%q is no response of this endpoint",
				clip(in.PreviousResponseID))
		}
		out.session, out.round, out.number = session, round, number
	}
	if in.Instructions != "" {
		out.messages = append(out.messages,
			said{
				ImportedMessage: regie.ImportedMessage{Role: regie.ImportedContext, Text: in.Instructions},
				param:           "instructions",
			})
		if in.PreviousResponseID != "" {
			out.ignored = append(out.ignored, "instructions")
		}
	}
	if err := in.read(out); err != nil {
		return nil, nil, err
	}
	tools, dropped, err := flattenTools(in.Tools)
	if err != nil {
		return nil, nil, err
	}
	out.ignored = append(out.ignored, dropped...)
	out.tools, err = chosen(tools, in.ToolChoice)
	return out, &in, err
}

// flattenTools returns the client's functions. Those of a namespace have a flat name. It drops
// tools that only OpenAI runs, and those with a free form, and names them.
func flattenTools(given []responsesTool) (tools []regie.ClientTool, dropped []string, err error) {
	seen := map[string]bool{}
	var flatten func(t *responsesTool, namespace, param string) error
	flatten = func(t *responsesTool, namespace, param string) error {
		switch {
		case t.Type == "function":
			name := flatName(namespace, t.Name)
			tools = append(tools, regie.ClientTool{
				Name: name, Namespace: namespace, Description: t.Description, Parameters: json.RawMessage(t.Parameters),
			})
			return cmp.Or(strays(t.Rest, param, besideTool), checkName(name, param+".name", seen))
		case t.Type == "namespace" && namespace == "" && t.Name != "":
			var inner []responsesTool
			if decode(t.Rest["tools"], &inner) != nil {
				return refused(param+".tools", "a namespace has an array of tools")
			}
			delete(t.Rest, "tools")
			if err := strays(t.Rest, param, besideTool); err != nil {
				return err
			}
			for i := range inner {
				if err := flatten(&inner[i], t.Name, param+".tools["+strconv.Itoa(i)+"]"); err != nil {
					return err
				}
			}
			return nil
		case t.Type == "" || t.Type == "namespace" || strings.Trim(t.Type,
			"abcdefghijklmnopqrstuvwxyz_0123456789") != "":
			return refused(param+".type", "a tool of the type %q cannot be brought to an agent: use function",
				clip(t.Type))
		case len(dropped) < maxIgnored:
			dropped = append(dropped, param+" ("+clip(t.Type)+")")
		}
		return nil
	}
	for i := range given {
		if err := flatten(&given[i], "", "tools["+strconv.Itoa(i)+"]"); err != nil {
			return nil, nil, err
		}
	}
	return tools, dropped, nil
}

// checkName refuses a name that no tool may have, and one of those seen, to which it adds the
// name.
func checkName(name, param string, seen map[string]bool) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if name == "" || len(name) > 64 || strings.Trim(name, letters) != "" {
		return refused(param, "%q is not a name of a tool: write up to 64 letters, digits, _ and -", clip(name))
	}
	if seen[name] {
		return refused(param, "there are two tools named %s", name)
	}
	seen[name] = true
	return nil
}

// flatName returns the name of a function of a namespace among all functions of a request.
func flatName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "__" + name
}

// refuse names what would have another effect than its client means.
func (in *responsesRequest) refuse() error {
	given := func(v jsontext.Value) bool { return len(v) > 0 && v.Kind() != 'n' }
	switch {
	case in.Model == "":
		return refused("model", "the request names no model")
	case in.Background:
		return refused("background",
			"a response is not made in the background here: a client that goes away does not stop it, and GET /v1/responses/{id} has it")
	case given(in.Conversation):
		return refused("conversation", "a session is continued with previous_response_id, or with metadata.session_id")
	case given(in.Prompt):
		return refused("prompt", "there are no stored prompts here")
	case in.TopLogprobs > 0:
		return refused("top_logprobs", "an agent gives no log probabilities")
	case in.Text != nil && in.Text.Format != nil && in.Text.Format.Type != "text" && in.Text.Format.Type != "":
		return refused("text.format", "an agent answers in text: a format cannot be promised here")
	}
	return nil
}

// read takes the input.
func (in *responsesRequest) read(out *asking) error {
	switch in.Input.Kind() {
	case '"':
		var text string
		if err := decode(in.Input, &text); err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			return refused("input", "the input says nothing")
		}
		out.messages = append(out.messages,
			said{ImportedMessage: regie.ImportedMessage{Role: regie.ImportedUser, Text: text}, param: "input"})
		return nil
	case '[':
	default:
		return refused("input", "the input is a text or an array of items")
	}
	var items []inputItem
	if err := decode(in.Input, &items); err != nil {
		return refused("input", "%s", err.Error())
	}
	if len(items) == 0 || len(items) > maxMessages {
		return refused("input", "the input has %d items: send from 1 to %d", len(items), maxMessages)
	}
	for i := range items {
		if err := out.take(&items[i], "input["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	return nil
}

// take adds an item to the messages. Calls that follow one another, or a text of the assistant, are
// of one reply.
func (a *asking) take(item *inputItem, param string) error {
	if item.Type == "reasoning" { // an agent's model has its own
		return nil
	}
	if err := strays(item.Rest, param, besideItem); err != nil {
		return err
	}
	switch item.Type {
	case "", "message":
		m := chatMessage{Role: item.Role}
		text, err := contentOf(item.Content, param+".content", "input_text", "output_text", "text")
		if err != nil {
			return err
		}
		if item.Role == "tool" {
			return refused(param+".role", "%q is no role: use system, developer, user or assistant", item.Role)
		}
		out, err := m.of(text, param)
		if err == nil {
			a.messages = append(a.messages, out)
		}
		return err
	case "item_reference":
		id := unquoted(item.Rest["id"])
		if id == "" {
			return refused(param+".id", "a reference names an item by its id")
		}
		a.messages = append(a.messages, said{
			ImportedMessage: regie.ImportedMessage{Role: regie.ImportedAssistant}, param: param, reference: id,
		})
		return nil
	case "function_call":
		name := flatName(item.Namespace, item.Name)
		call := regie.ImportedCall{ID: item.CallID, Name: name, Arguments: item.Arguments}
		if err := checkCalls([]regie.ImportedCall{call}, param); err != nil {
			return err
		}
		if n := len(a.messages); n == 0 || a.messages[n-1].Role != regie.ImportedAssistant {
			a.messages = append(a.messages, said{
				ImportedMessage: regie.ImportedMessage{Role: regie.ImportedAssistant},
				param:           param,
			})
		}
		last := &a.messages[len(a.messages)-1]
		last.Calls = append(last.Calls, call)
		return nil
	case "function_call_output":
		text, err := contentOf(item.Output, param+".output", "input_text", "output_text", "text")
		if err == nil {
			a.messages = append(a.messages, said{
				ImportedMessage: regie.ImportedMessage{Role: roleTool},
				results:         []clientResult{{item.CallID, text, param + ".call_id"}}, param: param,
			})
		}
		return err
	default:
		return refused(param+".type", "an item of the type %q cannot be given to an agent", clip(item.Type))
	}
}

// resolveReferences replaces references to items of earlier responses by what those items say.
func (s *server) resolveReferences(ctx context.Context, a *asking) error {
	var out []said
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
				return refused(m.param, "the referenced items have more than %d bytes together: send fewer of them",
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
func (s *server) storedItem(ctx context.Context, id, param string) (regie.ImportedMessage, error) {
	out := regie.ImportedMessage{Role: regie.ImportedAssistant}
	unknown := &problem{
		status: http.StatusNotFound, kind: kindInvalid, param: param,
		err: regie.Errorf(regie.CodeNotFound,
			"no response here has the item %s: send the item itself in place of a reference", clip(id)),
	}
	round, call, ok := parseItemID(id)
	if !ok {
		return out, unknown
	}
	view, err := s.Control.Get(ctx, round)
	if err == nil {
		var place regie.Workspace
		if place, err = s.Workspace(ctx); err == nil {
			_, err = s.summary(ctx, view.Session.ID, place, regie.ScopeChat)
		}
	}
	if regie.CodeOf(err) == regie.CodeNotFound {
		return out, unknown
	}
	if err != nil {
		return out, err
	}
	result, _ := retold(view)
	if call.IsZero() {
		out.Text = result.text
		return out, nil
	}
	for i := range result.calls {
		if c := &result.calls[i]; c.ID == call {
			out.Calls = []regie.ImportedCall{{
				ID:   callID(result.session, call),
				Name: toolName(c), Arguments: argumentsOf(c),
			}}
			return out, nil
		}
	}
	return out, unknown
}

// response finds a stored response, as a client names it.
func (s *server) stored(r *http.Request, scope regie.TokenScope) (session, round regie.ID, err error) {
	session, round, _, ok := parseResponseID(r.PathValue("id"))
	unknown := &problem{
		status: http.StatusNotFound, kind: kindInvalid,
		err: regie.Errorf(regie.CodeNotFound, "there is no response %s here", clip(r.PathValue("id"))),
	}
	if !ok {
		return session, round, unknown
	}
	place, err := s.Workspace(r.Context())
	if err != nil {
		return session, round, err
	}
	_, err = s.summary(r.Context(), session, place, scope)
	if regie.CodeOf(err) == regie.CodeNotFound {
		err = unknown
	}
	return session, round, err
}
