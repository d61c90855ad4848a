package compat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// messagesRequest is a request of Messages, as far as it is looked at.
type messagesRequest struct {
	Model      string         `json:"model"`
	Messages   []turn         `json:"messages"`
	System     jsontext.Value `json:"system"`
	Stream     bool           `json:"stream"`
	Tools      []messagesTool `json:"tools"`
	ToolChoice *struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		OneCall bool   `json:"disable_parallel_tool_use"`

		Rest map[string]jsontext.Value `json:",embed"`
	} `json:"tool_choice"`
	Metadata     map[string]string `json:"metadata"`
	OutputConfig *struct {
		Effort string         `json:"effort"`
		Format jsontext.Value `json:"format"`

		Rest map[string]jsontext.Value `json:",embed"`
	} `json:"output_config"`

	Thread *struct {
		Type     string `json:"type"`
		Previous string `json:"previous_message_id"`

		Rest map[string]jsontext.Value `json:",embed"`
	} `json:"thread"`

	StopSequences jsontext.Value `json:"stop_sequences"`
	Container     jsontext.Value `json:"container"`
	MCPServers    jsontext.Value `json:"mcp_servers"`
	InferenceGeo  jsontext.Value `json:"inference_geo"`
	OutputFormat  jsontext.Value `json:"output_format"`

	Rest map[string]jsontext.Value `json:",embed"`
}

type messagesTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema jsontext.Value `json:"input_schema"`

	Rest map[string]jsontext.Value `json:",embed"`
}

// turn is a message of a request of Messages.
type turn struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`

	Rest map[string]jsontext.Value `json:",embed"`
}

// block is a part of a turn.
type block struct {
	Type      string         `json:"type"`
	Text      string         `json:"text"`
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Input     jsontext.Value `json:"input"`
	ToolUseID string         `json:"tool_use_id"`
	ToolName  string         `json:"tool_name"`
	Content   jsontext.Value `json:"content"`
	IsError   bool           `json:"is_error"`

	Rest map[string]jsontext.Value `json:",embed"`
}

// parseMessages reads a request of Messages to an agent.
func parseMessages(data []byte) (*asking, *messagesRequest, error) {
	var in messagesRequest
	if err := decode(data, &in); err != nil {
		return nil, nil, err
	}
	if err := in.refuse(); err != nil {
		return nil, nil, err
	}
	out := &asking{model: in.Model, stream: in.Stream, metadata: in.Metadata, raw: data}
	var err error
	if out.ignored, err = ignored(in.Rest, ignoredInMessages); err != nil {
		return nil, nil, err
	}
	if in.Metadata["user_id"] != "" {
		out.ignored = append(out.ignored, "metadata.user_id")
	}
	if in.OutputConfig != nil {
		out.effort = in.OutputConfig.Effort
		err = strays(in.OutputConfig.Rest, "output_config", besideOutputConfig)
	}
	if in.Thread != nil {
		err = cmp.Or(err, strays(in.Thread.Rest, "thread", nil))
		out.previous = in.Thread.Previous
	}
	if in.ToolChoice != nil {
		err = cmp.Or(err, strays(in.ToolChoice.Rest, "tool_choice", nil))
	}
	if err != nil {
		return nil, nil, err
	}
	if out.messages, err = in.said(); err != nil {
		return nil, nil, err
	}
	out.tools, err = in.tools()
	out.oneCall = in.ToolChoice != nil && in.ToolChoice.OneCall
	return out, &in, err
}

// refuse names what would have another effect than its client means.
func (in *messagesRequest) refuse() error {
	switch {
	case in.Model == "":
		return refused("model", "the request names no model")
	case len(in.Messages) == 0:
		return refused("messages", "there is no message")
	case len(in.Messages) > maxMessages:
		return refused("messages", "there are %d messages, at most %d are allowed", len(in.Messages), maxMessages)
	case in.Thread != nil && in.Thread.Type != "create" && (in.Thread.Type != "continue" || in.Thread.Previous == ""):
		return refused("thread", "a thread is of the type create, or continues a previous_message_id")
	case given(in.StopSequences):
		return refused("stop_sequences", "an agent takes no stop sequences")
	case in.OutputConfig != nil && given(in.OutputConfig.Format):
		return refused("output_config.format", "an agent answers in text: a format cannot be promised here")
	case given(in.OutputFormat):
		return refused("output_format", "an agent answers in text: a format cannot be promised here")
	case given(in.Container):
		return refused("container", "an agent has its own tools")
	case given(in.MCPServers):
		return refused("mcp_servers", "an agent has its own tools")
	case given(in.InferenceGeo):
		return refused("inference_geo", "where an agent's model runs is decided by its own settings")
	}
	return nil
}

// tools are those of the client that the model is told of. To force one is not possible: an agent
// decides by itself.
func (in *messagesRequest) tools() ([]regie.ClientTool, error) {
	var tools []regie.ClientTool
	for i, t := range in.Tools {
		param := "tools[" + strconv.Itoa(i) + "]"
		if t.Type != "" && t.Type != "custom" {
			return nil, refused(param+".type",
				"a tool of the type %q cannot be brought to an agent: bring one of your own, with a name and an input_schema", clip(t.Type))
		}
		if err := strays(t.Rest, param, besideTool); err != nil {
			return nil, err
		}
		tools = append(tools, regie.ClientTool{
			Name: t.Name, Description: t.Description,
			Parameters: json.RawMessage(t.InputSchema),
		})
	}
	if err := checkNames(tools, ".name"); err != nil {
		return nil, err
	}
	switch {
	case in.ToolChoice == nil || in.ToolChoice.Type == "auto":
		return tools, nil
	case in.ToolChoice.Type == "none":
		return nil, nil
	default:
		return nil, forced("tool_choice.type")
	}
}

// said are the messages of the request, with what it says as system in front.
func (in *messagesRequest) said() ([]said, error) {
	var out []said
	system, err := contentOf(in.System, "system", "text")
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(system) != "" {
		out = append(out, said{
			ImportedMessage: regie.ImportedMessage{Role: regie.ImportedContext, Text: system},
			param:           "system",
		})
	}
	for i := range in.Messages {
		m, err := in.Messages[i].read("messages[" + strconv.Itoa(i) + "]")
		if err != nil {
			return nil, err
		}
		out = append(out, m...)
	}
	return orderContext(out), nil
}

// orderContext places what the application says behind the user's last message. Claude Code sends
// its environment there. Behind results it becomes text of the user's, because a call and its
// result stay together; behind a question it moves before it.
func orderContext(messages []said) []said {
	last := tail(messages)
	results := false
	for i := range last {
		if results = results || last[i].Role == roleTool; results && last[i].Role == regie.ImportedContext {
			last[i].Role, last[i].Text = regie.ImportedUser, regie.ClientContextMark+last[i].Text
		}
	}
	for i := range slices.Backward(last) {
		if last[i].Role != regie.ImportedContext {
			if question := last[i]; question.Role == regie.ImportedUser {
				copy(last[i:], last[i+1:])
				last[len(last)-1] = question
			}
			break
		}
	}
	return messages
}

// read makes messages of one of Messages: results of calls, which stand in one of the user's, are a
// message of their own.
func (t *turn) read(param string) ([]said, error) {
	roles := map[string]regie.ImportedRole{
		"user": regie.ImportedUser, "assistant": regie.ImportedAssistant,
		"system": regie.ImportedContext,
	}
	role, ok := roles[t.Role]
	if !ok {
		return nil, refused(param+".role", "%q is no role: use user or assistant", clip(t.Role))
	}
	if err := strays(t.Rest, param, besideMessage); err != nil {
		return nil, err
	}
	blocks, err := t.blocks(param + ".content")
	if err != nil {
		return nil, err
	}
	own, results := said{ImportedMessage: regie.ImportedMessage{Role: role}, param: param},
		said{ImportedMessage: regie.ImportedMessage{Role: roleTool}, param: param}
	var texts []string
	for i := range blocks {
		b, at := &blocks[i], param+".content["+strconv.Itoa(i)+"]"
		stray := checkCase(b.Rest, at, "type", "text", "id", "name", "input", "tool_use_id", "content", "is_error")
		switch {
		case stray != nil && (b.Type == "text" || b.Type == "tool_result" || b.Type == "tool_use"):
			return nil, stray
		case b.Type == "text":
			texts = append(texts, b.Text)
		case b.Type == "tool_result" && role == regie.ImportedUser:
			if len(texts) > 0 {
				return nil, refused(at, "results of calls come first in a message, and its text behind them")
			}
			result, err := b.result(at)
			if err != nil {
				return nil, err
			}
			results.results = append(results.results, result)
		case b.Type == "tool_use" && role == regie.ImportedAssistant:
			if b.Input.Kind() != '{' {
				return nil, refused(at+".input", "the input of a call is an object")
			}
			own.Calls = append(own.Calls, regie.ImportedCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		case strings.HasSuffix(b.Type, "thinking") && role == regie.ImportedAssistant: // an agent's model has its own
		default:
			return nil, noPart(at, b.Type)
		}
	}
	own.Text = strings.Join(texts, "\n")
	silent := strings.TrimSpace(own.Text) == ""
	switch {
	case len(results.results) == 0 && silent && role == regie.ImportedUser:
		return nil, refused(param+".content", "the message says nothing")
	case len(results.results) == 0:
		return []said{own}, checkCalls(own.Calls, param)
	case silent:
		return []said{results}, nil
	default:
		return []said{results, own}, nil
	}
}

// blocks are the parts of a message; a text is one.
func (t *turn) blocks(param string) (out []block, err error) {
	switch t.Content.Kind() {
	case '"':
		out = []block{{Type: "text"}}
		err = decode(t.Content, &out[0].Text)
	case '[':
		err = decode(t.Content, &out)
	default:
		err = refused(param, "a content is a text or an array of parts")
	}
	if err != nil {
		return nil, refused(param, "a content is a text or an array of parts")
	}
	return slices.Clip(out), nil
}

// result is one of a client's tool. That it failed is said in front of what it says.
func (b *block) result(param string) (clientResult, error) {
	text, err := b.resultText(param + ".content")
	if err == nil && b.IsError {
		text = strings.TrimSpace("The tool failed.\n" + text)
	}
	return clientResult{b.ToolUseID, text, param + ".tool_use_id"}, err
}

// resultText returns a result as the model reads it. A note stands for an image or a document: the
// client repeats its thread with each request, so that a refusal would end the conversation.
func (b *block) resultText(param string) (string, error) {
	if b.Content.Kind() != '[' {
		return contentOf(b.Content, param, "text")
	}
	parts, err := (&turn{Content: b.Content}).blocks(param)
	if err != nil {
		return "", err
	}
	var texts []string
	for i := range parts {
		p, at := &parts[i], param+"["+strconv.Itoa(i)+"]"
		switch p.Type {
		case "text":
			texts, err = append(texts, p.Text), checkCase(p.Rest, at, "type", "text")
		case "image", "document":
			texts = append(texts, "[the tool returned a part of the type "+p.Type+", which the model cannot see here]")
		case "tool_reference":
			texts = append(texts, "[the tool "+clip(p.ToolName)+" can be called now]")
		default:
			err = noPart(at, p.Type)
		}
		if err != nil {
			return "", err
		}
	}
	return strings.Join(texts, "\n"), nil
}
