package compat

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// maxMessages bounds how many messages a request has.
const maxMessages = 4096

// maxIgnored bounds how many parameters or tools a header names as ignored.
const maxIgnored = 16

// agentRequest is a request to an agent, whichever of the formats it came in.
type agentRequest struct {
	model    string
	messages []message
	tools    []regie.ClientTool
	oneCall  bool
	effort   string
	stream   bool
	metadata map[string]string
	ignored  []string
	// session is the session that the request names, round the round that it continues; zero: any.
	session, round regie.ID
	// previous is the answer that a request of Responses goes on from; empty: none.
	previous string
	raw      []byte

	streamUsage bool // of Chat Completions: the stream ends with what was used
}

// message is a message of a request.
type message struct {
	regie.ImportedMessage
	// results are those that a client gives of calls, by its own ids, in a message of the role
	// tool.
	results []clientResult
	param   string // its place in the request
	// reference is the id of an item of an earlier response that takes the place of this message;
	// empty: none.
	reference string
}

type clientResult struct{ id, content, param string }

// roleTool is the role of a message with results, which is stored as a part of the one with the
// calls.
const roleTool regie.ImportedRole = "tool"

// textMessage returns a message that says a text.
func textMessage(role regie.ImportedRole, text, param string) message {
	return message{ImportedMessage: regie.ImportedMessage{Role: role, Text: text}, param: param}
}

// takeSession takes the session that headers or metadata name.
func (a *agentRequest) takeSession(r *http.Request) error {
	text := cmp.Or(r.Header.Get(HeaderSession), a.metadata["session_id"])
	if text == "" {
		return nil
	}
	id, err := regie.ParseID(text)
	if err != nil {
		return &problem{param: "metadata.session_id", err: err}
	}
	if !a.session.IsZero() && a.session != id {
		return badParameter("previous_response_id", "the response belongs to another session than %s", id)
	}
	a.session = id
	return nil
}

// afterLastReply returns the messages behind the last reply.
func afterLastReply(messages []message) []message {
	for i := range slices.Backward(messages) {
		if messages[i].Role == regie.ImportedAssistant {
			return messages[i+1:]
		}
	}
	return messages
}

// answeredSession finds the session of the calls that the last messages answer; ok is false
// without results, with results of unknown calls, or of several sessions.
func answeredSession(messages []message) (session regie.ID, ok bool) {
	for _, m := range afterLastReply(messages) {
		for _, result := range m.results {
			of, _, ours := unpackID(callPrefix, result.id)
			if !ours || ok && of != session {
				return regie.ID{}, false
			}
			session, ok = of, true
		}
	}
	return session, ok
}

// notLast refuses a conversation that ends with neither the user's message nor results.
func notLast(m *message) error {
	return badParameter(m.param, "the last message is neither the user's nor a result of a call")
}

// newInput returns the new part of a request: the results of its calls, and the user's text after
// the last reply. The session has the earlier messages. If the request only names a session, its
// client may send anything before its last message; only that one is used (decision 35).
func (a *agentRequest) newInput() (text string, results []regie.ClientResult, err error) {
	last := afterLastReply(a.messages)
	if len(last) == 0 {
		return "", nil, badParameter("messages",
			"the last message is the assistant's: send one of the user, or the results of its calls")
	}
	if final := &last[len(last)-1]; final.Role != regie.ImportedUser && final.Role != roleTool {
		return "", nil, notLast(final)
	}
	for _, m := range last {
		for _, result := range m.results {
			of, call, ours := unpackID(callPrefix, result.id)
			if !ours || of != a.session {
				return "", nil, badParameter(result.param, "no call %s of the session %s waits for a result",
					truncate(result.id), a.session)
			}
			results = append(results, regie.ClientResult{CallID: call, Content: result.content})
		}
	}
	var texts []string
	all := len(results) > 0 || a.previous != ""
	for i, m := range last {
		if m.Role == regie.ImportedUser && (all || i == len(last)-1) {
			texts = append(texts, m.Text)
		}
	}
	return strings.Join(texts, "\n\n"), results, nil
}

// importHistory makes a history of a request's messages, and the text that the round begins with.
// It is empty where the history ends with results.
func importHistory(messages []message) (history []regie.ImportedMessage, text string, err error) {
	if len(messages) == 0 {
		return nil, "", badParameter("messages", "there is no message")
	}
	var open []int // the calls of the last reply that have no result yet
	missing := func(param string) error {
		return badParameter(param, "the earlier call %s has no result: put the result of each call directly after its reply",
			truncate(history[len(history)-1].Calls[open[0]].ID))
	}
	for i := range messages {
		m := &messages[i]
		for _, result := range m.results {
			at := slices.IndexFunc(open, func(n int) bool { return history[len(history)-1].Calls[n].ID == result.id })
			if at < 0 {
				return nil, "", badParameter(result.param, "the reply before it has no call %s without a result",
					truncate(result.id))
			}
			history[len(history)-1].Calls[open[at]].Result = result.content
			open = slices.Delete(open, at, at+1)
		}
		if m.Role == roleTool {
			continue
		}
		if len(open) > 0 {
			return nil, "", missing(m.param)
		}
		seen := map[string]bool{}
		for n, call := range m.Calls {
			if seen[call.ID] || call.ID == "" {
				return nil, "", badParameter(m.param, "the calls of one reply have different ids, and %q is none",
					truncate(call.ID))
			}
			seen[call.ID] = true
			open = append(open, n)
		}
		if m.Role == regie.ImportedUser || strings.TrimSpace(m.Text) != "" || len(m.Calls) > 0 {
			history = append(history, m.ImportedMessage)
		}
	}
	switch last := &messages[len(messages)-1]; {
	case len(open) > 0:
		return nil, "", missing("messages")
	case last.Role == roleTool:
		return history, "", nil
	case last.Role != regie.ImportedUser:
		return nil, "", notLast(last)
	default:
		return history[:len(history)-1], last.Text, nil
	}
}
