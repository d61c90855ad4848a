package compat

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// chatRequest is a request of Chat Completions. Members in Rest either have no effect on an agent,
// or are unknown and refused.
type chatRequest struct {
	Model             string            `json:"model"`
	Messages          []chatMessage     `json:"messages"`
	Stream            bool              `json:"stream"`
	StreamOptions     streamOptions     `json:"stream_options"`
	Tools             []chatTool        `json:"tools"`
	ToolChoice        jsontext.Value    `json:"tool_choice"`
	ParallelToolCalls *bool             `json:"parallel_tool_calls"`
	Metadata          map[string]string `json:"metadata"`
	ReasoningEffort   string            `json:"reasoning_effort"`

	Rest keys `json:",embed"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type chatTool struct {
	Type     string        `json:"type"`
	Function *functionTool `json:"function"`
}

// functionTool is a function that a client brings.
type functionTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  jsontext.Value `json:"parameters"`
	Tools       []functionTool `json:"tools"` // of a namespace
}

type chatMessage struct {
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content"`
	Refusal    string         `json:"refusal"`
	ToolCallID string         `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function *struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// parseChat reads a request of Chat Completions to an agent.
func parseChat(data []byte) (*agentRequest, error) {
	var in chatRequest
	if err := decodeStrict(data, &in); err != nil {
		return nil, err
	}
	if err := checkRequest(in.Model, len(in.Messages)); err != nil {
		return nil, err
	}
	out := &agentRequest{
		model: in.Model, stream: in.Stream, metadata: in.Metadata, effort: in.ReasoningEffort, raw: data,
		oneCall: in.ParallelToolCalls != nil && !*in.ParallelToolCalls, streamUsage: in.StreamOptions.IncludeUsage,
	}
	var err error
	if out.ignored, err = ignoredKeys(in.Rest, ""); err != nil {
		return nil, err
	}
	for i := range in.Messages {
		m, err := in.Messages[i].toMessage(indexName("messages", i))
		if err != nil {
			return nil, err
		}
		out.messages = append(out.messages, m)
	}
	var tools []regie.ClientTool
	seen := map[string]bool{}
	for i, t := range in.Tools {
		param := indexName("tools", i)
		if t.Type != "function" || t.Function == nil {
			return nil, noTool(param, t.Type)
		}
		if err := checkName(t.Function.Name, param+".function.name", seen); err != nil {
			return nil, err
		}
		tools = append(tools, t.Function.toClientTool(""))
	}
	out.tools, err = chooseTools(tools, string(in.ToolChoice), "tool_choice")
	return out, err
}

// toClientTool converts a function for the model; a function in a namespace gets a flat name.
func (f *functionTool) toClientTool(namespace string) regie.ClientTool {
	return regie.ClientTool{
		Name: flatName(namespace, f.Name), Namespace: namespace, Description: f.Description,
		Parameters: json.RawMessage(f.Parameters),
	}
}

// noTool is the error of a tool that is no function.
func noTool(param, kind string) error {
	return badParameter(param+".type", "tools of type %q are not supported: use function", truncate(kind))
}

// toMessage makes a message of one of Chat Completions.
func (m *chatMessage) toMessage(param string) (message, error) {
	text, err := textOf(m.Content, param+".content")
	if err != nil {
		return message{}, err
	}
	if m.Role == "tool" {
		out := textMessage(roleTool, "", param)
		out.results = []clientResult{{m.ToolCallID, text, param + ".tool_call_id"}}
		return out, nil
	}
	out, err := openAIMessage(m.Role, cmp.Or(text, m.Refusal), param)
	if err != nil || m.Role != "assistant" {
		return out, err
	}
	for i, c := range m.ToolCalls {
		at := indexName(param+".tool_calls", i)
		if c.Function == nil || c.Type != "" && c.Type != "function" {
			return out, badParameter(at, "calls of type %q are not supported", truncate(c.Type))
		}
		out.Calls = append(out.Calls, regie.ImportedCall{
			ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments,
		})
	}
	return out, checkCalls(out.Calls, param)
}

// openAIMessage makes a message of a role of OpenAI's that says a text.
func openAIMessage(role, text, param string) (message, error) {
	roles := map[string]regie.ImportedRole{
		"system": regie.ImportedContext, "developer": regie.ImportedContext,
		"user": regie.ImportedUser, "assistant": regie.ImportedAssistant,
	}
	out := textMessage(roles[role], text, param)
	switch {
	case out.Role == "":
		return out, badParameter(param+".role", "%q is not a role: use system, developer, user or assistant", truncate(role))
	case role == "user" && strings.TrimSpace(text) == "":
		return out, badParameter(param+".content", "the message has no content")
	}
	return out, nil
}
