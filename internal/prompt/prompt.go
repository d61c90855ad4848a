// Package prompt turns stored messages into the turns that a model reads (spec 2.3, 6.1). It is pure: the same messages give the
// same turns, and the turns are legal by construction: every call has exactly one result, directly after it.
package prompt

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Names turns a canonical tool name into the one that goes over the wire (decision 27).
type Names func(canonical string) string

// Turns renders a message in the native dialect. calls are those that the message owns, or, for a system message, those whose
// results it brings. A message that no model reads gives no turns.
func Turns(m *regie.Message, calls []regie.Call, names Names) []provider.Turn {
	if m.ExcludeFromPrompt {
		return nil
	}
	switch {
	case m.System != nil:
		return systemTurns(m.System, calls)
	case m.AI != nil:
		return []provider.Turn{assistantTurn(m.AI, calls, names)}
	case len(m.Rich) > 0:
		var text strings.Builder
		for _, segment := range m.Rich {
			text.WriteString(segment.Text)
		}
		return []provider.Turn{userTurn(text.String())}
	default:
		role := provider.RoleUser
		if m.Sender == regie.SenderAI {
			role = provider.RoleAssistant
		}
		return []provider.Turn{{Role: role, Parts: []provider.Part{{Type: regie.PartText, Text: m.Text}}}}
	}
}

func userTurn(text string) provider.Turn {
	return provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: text}}}
}

func assistantTurn(reply *regie.AIReply, calls []regie.Call, names Names) provider.Turn {
	turn := provider.Turn{Role: provider.RoleAssistant, Parts: make([]provider.Part, 0, len(reply.Parts))}
	next := 0
	for _, part := range reply.Parts {
		out := provider.Part{Type: part.Type, Text: part.Text, Provider: part.Provider, Opaque: part.Opaque}
		if part.Type == regie.PartCall {
			for next < len(calls)-1 && calls[next].ID != part.CallID {
				next++
			}
			call := &calls[next]
			out.Call = &provider.Call{ID: call.ProviderCallID, Name: names(call.Tool), Arguments: wireArguments(call.Arguments)}
		}
		turn.Parts = append(turn.Parts, out)
	}
	return turn
}

// wireArguments keeps the history legal where a model wrote something that is no JSON object: the call was not run and its result
// says why, but no API takes its arguments back.
func wireArguments(arguments string) string {
	if !strings.HasPrefix(strings.TrimLeft(arguments, " \t\r\n"), "{") || !json.Valid([]byte(arguments)) {
		return "{}"
	}
	return arguments
}

func systemTurns(content *regie.SystemContent, calls []regie.Call) []provider.Turn {
	if !content.Type.InPrompt() {
		return nil
	}
	var turns []provider.Turn
	if len(content.CallIDs) > 0 {
		turn := provider.Turn{Role: provider.RoleTool, Results: make([]provider.Result, 0, len(calls))}
		for i := range calls {
			text, failed := ResultText(&calls[i])
			turn.Results = append(turn.Results, provider.Result{CallID: calls[i].ProviderCallID, Content: text, IsError: failed})
		}
		turns = append(turns, turn)
	}
	if content.Summary != "" {
		turns = append(turns, userTurn("["+string(content.Type)+"] "+content.Summary))
	}
	return turns
}

// ResultText is what the model reads as a call's one result: the result itself, or the structured error with the state of the
// call (spec 3.3, 4.3). Where a person edited the arguments it says what ran (decision 20).
func ResultText(c *regie.Call) (text string, failed bool) {
	text, failed = resultText(c)
	if len(c.Executed) > 0 {
		text = "[a person changed the arguments of this call before it ran, to: " + clip(string(c.Executed)) + "]\n" + text
	}
	return text, failed
}

// maxExecuted bounds what a model is told of edited arguments, in bytes.
const maxExecuted = 4000

// clip shortens on a rune's boundary.
func clip(s string) string {
	if len(s) <= maxExecuted {
		return s
	}
	end := maxExecuted
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

func resultText(c *regie.Call) (text string, failed bool) {
	if c.Error == nil {
		if c.Result == "" {
			return "(no output)", false
		}
		return c.Result, false
	}
	data, err := json.Marshal(struct {
		Success    bool              `json:"success"`
		Status     string            `json:"status"`
		Error      *regie.CallError  `json:"error"`
		Resolution *regie.Resolution `json:"resolution,omitempty"` // what a person found out (decision 5)
	}{c.State == regie.CallSucceeded, string(c.State), c.Error, c.Resolution})
	if err != nil { // strings and booleans always encode
		return `{"success":false}`, true
	}
	return string(data), c.State != regie.CallSucceeded
}
