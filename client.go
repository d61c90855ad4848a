package regie

import (
	"encoding/json"
	"strings"
)

// SessionOrigin says where a session comes from, where lists care (decision 35).
type SessionOrigin string

// OriginAPISession is a session that a request of an OpenAI-compatible client made: lists leave it
// out unless they are asked for it, and it goes 24 hours after something last happened in it
// (decision 35).
const OriginAPISession SessionOrigin = "api"

// ToolkitClient is the toolkit of the tools that an OpenAI-compatible client brings:
// client.get_weather (decisions 27 and 35).
const ToolkitClient = "client"

// ToolNameOf returns a tool's name for people: a client's tool by the client's own name, any other
// by its canonical one.
func ToolNameOf(canonical string) string { return strings.TrimPrefix(canonical, ToolkitClient+".") }

// ClientTool is a tool that a client brings with its request. Regie never runs it: a call of it
// ends the round, and the client's next request has the result (decision 35).
type ClientTool struct {
	Name string `json:"name"` // as the client has it, without the toolkit
	// Namespace is the client's group of the tool; Name begins with it and "__".
	Namespace   string          `json:"namespace,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON Schema; empty: no parameters
}

// ClientResult is a client's result of one call of its tools.
type ClientResult struct {
	CallID  ID     `json:"call_id"`
	Content string `json:"content"`
}

// ImportedRole is who a message of a client's history is from.
type ImportedRole string

// The roles of imported messages. What a client calls system or developer is context: it is shown
// to the model as what the application says, never as Regie's own instructions (decision 35).
const (
	ImportedContext   ImportedRole = "context"
	ImportedUser      ImportedRole = "user"
	ImportedAssistant ImportedRole = "assistant"
)

// ClientContextMark begins a message of an application. The model reads it with the weight of a
// message, never of an instruction.
const ClientContextMark = "[CLIENT_CONTEXT] The application that this conversation goes through says:\n"

// ImportedMessage is a message of the history that a client sends with its request (decision 35).
type ImportedMessage struct {
	Role ImportedRole `json:"role"`
	Text string       `json:"text,omitempty"`
	// Calls are those of an assistant's message, each with its result.
	Calls []ImportedCall `json:"calls,omitempty"`
}

// ImportedCall is a call of a client's tool in an imported history, with the result that the client
// gave.
type ImportedCall struct {
	ID        string `json:"id"` // the provider's, as the client has it
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Result    string `json:"result"`
}
