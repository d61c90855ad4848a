package compat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// messagesRequest is a request of Messages, as far as it is looked at.
type messagesRequest struct {
	Model      string            `json:"model"`
	Messages   []turn            `json:"messages"`
	System     jsontext.Value    `json:"system"`
	Stream     bool              `json:"stream"`
	Tools      []messagesTool    `json:"tools"`
	Metadata   map[string]string `json:"metadata"`
	ToolChoice struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		OneCall bool   `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	OutputConfig struct {
		Effort string `json:"effort"`

		Rest keys `json:",embed"` // a format
	} `json:"output_config"`
	Thread struct {
		Type     string `json:"type"`
		Previous string `json:"previous_message_id"`
	} `json:"thread"`

	Rest keys `json:",embed"`
}

type messagesTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema jsontext.Value `json:"input_schema"`
}

// turn is a message of a request of Messages.
type turn struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
}

// parseMessages reads a request of Messages to an agent.
func parseMessages(data []byte) (*agentRequest, error) {
	var in messagesRequest
	if err := decodeStrict(data, &in); err != nil {
		return nil, err
	}
	if err := checkRequest(in.Model, len(in.Messages)); err != nil {
		return nil, err
	}
	if in.Thread.Type == "continue" { // its client sends the whole conversation then
		err := regie.Errorf(regie.CodeNotFound,
			"there is no response %s to continue from: send the whole conversation", truncate(in.Thread.Previous))
		return nil, &problem{code: "thread_not_found", param: "thread.previous_message_id", err: err}
	}
	out := &agentRequest{
		model: in.Model, stream: in.Stream, metadata: in.Metadata, raw: data, effort: in.OutputConfig.Effort,
		oneCall: in.ToolChoice.OneCall,
	}
	var err error
	if out.ignored, err = ignoredKeys(in.Rest, ""); err == nil {
		_, err = ignoredKeys(in.OutputConfig.Rest, "output_config.")
	}
	if err != nil {
		return nil, err
	}
	if out.messages, err = in.allMessages(); err != nil {
		return nil, err
	}
	tools, err := in.clientTools()
	if err != nil {
		return nil, err
	}
	choice := in.ToolChoice.Type
	if choice != "" {
		choice = `"` + choice + `"`
	}
	out.tools, err = chooseTools(tools, choice, "tool_choice.type")
	return out, err
}

// clientTools returns those of the client.
func (in *messagesRequest) clientTools() ([]regie.ClientTool, error) {
	var tools []regie.ClientTool
	seen := map[string]bool{}
	for i, t := range in.Tools {
		param := indexName("tools", i)
		if t.Type != "" && t.Type != "custom" {
			return nil, badParameter(param+".type",
				"tools of type %q are not supported: define your own, with a name and an input_schema", truncate(t.Type))
		}
		if err := checkName(t.Name, param+".name", seen); err != nil {
			return nil, err
		}
		tools = append(tools, regie.ClientTool{
			Name: t.Name, Description: t.Description, Parameters: json.RawMessage(t.InputSchema),
		})
	}
	return tools, nil
}

// allMessages returns the messages of the request, after its system text.
func (in *messagesRequest) allMessages() ([]message, error) {
	var out []message
	system, err := textOf(in.System, "system")
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(system) != "" {
		out = append(out, textMessage(regie.ImportedContext, system, "system"))
	}
	for i := range in.Messages {
		m, err := in.Messages[i].toMessages(indexName("messages", i))
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
func orderContext(messages []message) []message {
	last := afterLastReply(messages)
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

// toMessages makes messages of one of Messages: results of calls, which stand in one of the user's,
// are a message of their own.
func (t *turn) toMessages(param string) ([]message, error) {
	roles := map[string]regie.ImportedRole{
		"user": regie.ImportedUser, "assistant": regie.ImportedAssistant,
		"system": regie.ImportedContext,
	}
	role, ok := roles[t.Role]
	if !ok {
		return nil, badParameter(param+".role", "%q is not a role: use user or assistant", truncate(t.Role))
	}
	parts, err := partsOf(t.Content, param+".content")
	if err != nil {
		return nil, err
	}
	own, results := textMessage(role, "", param), textMessage(roleTool, "", param)
	var texts []string
	for i := range parts {
		p, at := &parts[i], indexName(param+".content", i)
		switch {
		case p.Type == "text":
			texts = append(texts, p.Text)
		case p.Type == "tool_result" && role == regie.ImportedUser:
			if len(texts) > 0 {
				return nil, badParameter(at, "results of calls come first in a message, and its text after them")
			}
			var text string
			text, err = p.resultText(at + ".content")
			results.results = append(results.results, clientResult{p.ToolUseID, text, at + ".tool_use_id"})
		case p.Type == "tool_use" && role == regie.ImportedAssistant:
			if p.Input.Kind() != '{' {
				return nil, badParameter(at+".input", "the input of a call must be an object")
			}
			own.Calls = append(own.Calls, regie.ImportedCall{ID: p.ID, Name: p.Name, Arguments: string(p.Input)})
		case strings.HasSuffix(p.Type, "thinking") && role == regie.ImportedAssistant: // an agent's model has its own
		default:
			err = noPart(at, p.Type)
		}
		if err != nil {
			return nil, err
		}
	}
	own.Text = strings.Join(texts, "\n")
	silent := strings.TrimSpace(own.Text) == ""
	switch {
	case len(results.results) == 0 && silent && role == regie.ImportedUser:
		return nil, badParameter(param+".content", "the message has no content")
	case len(results.results) == 0:
		return []message{own}, checkCalls(own.Calls, param)
	case silent:
		return []message{results}, nil
	default:
		return []message{results, own}, nil
	}
}

// resultText returns a call's result for the model, with a note in front if the tool failed. A note
// replaces an image or a document. A refusal would end the conversation, because the client repeats
// its thread with each request.
func (p *part) resultText(param string) (string, error) {
	parts, err := partsOf(p.Content, param)
	var texts []string
	for i := range parts {
		p, at := &parts[i], indexName(param, i)
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case "image", "document":
			texts = append(texts, "[the tool returned a part of the type "+p.Type+", which the model cannot see here]")
		case "tool_reference":
			texts = append(texts, "[the tool "+truncate(p.ToolName)+" can be called now]")
		default:
			err = noPart(at, p.Type)
		}
		if err != nil {
			return "", err
		}
	}
	text := strings.Join(texts, "\n")
	if p.IsError {
		text = strings.TrimSpace("The tool failed.\n" + text)
	}
	return text, err
}
