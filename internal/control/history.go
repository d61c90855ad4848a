package control

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/tool"
)

// Bounds of what a client brings (spec 11.3).
const (
	maxHistory     = 4096     // messages
	maxHistoryText = 16 << 20 // bytes together
	maxClientTools = 128
)

// answersCalls reports whether a request says something without a text: results of calls, or a
// history that ends with some.
func answersCalls(in *dispatch.RunRequest) bool {
	return len(in.Results) > 0 || len(in.History) > 0 && len(in.History[len(in.History)-1].Calls) > 0
}

// validateClient checks what an OpenAI-compatible client brings (decision 35), and makes it
// storable.
func (r *Rounds) validateClient(in *dispatch.RunRequest) error {
	switch {
	case in.Origin != "" && in.Origin != regie.OriginAPISession:
		return regie.Errorf(regie.CodeBadRequest, "%q is not an origin of a session", string(in.Origin))
	case len(in.History) > 0 && len(in.Results) > 0:
		return regie.Errorf(regie.CodeBadRequest,
			"a request carries either a history for a new session or results for an existing one")
	case len(in.History) > maxHistory:
		return regie.Errorf(regie.CodeBadRequest, "the history has %d messages, at most %d are allowed",
			len(in.History), maxHistory)
	case len(in.Policy.ClientTools) > maxClientTools:
		return regie.Errorf(regie.CodeBadRequest, "there are %d tools, at most %d are allowed",
			len(in.Policy.ClientTools), maxClientTools)
	}
	size := 0
	for i := range in.History {
		m := &in.History[i]
		m.Text = storable(m.Text)
		size += len(m.Text)
		for j := range m.Calls {
			c := &m.Calls[j]
			c.Arguments, c.Result = storable(c.Arguments), storable(c.Result)
			size += len(c.Arguments) + len(c.Result)
		}
	}
	for i := range in.Results {
		in.Results[i].Content = storable(in.Results[i].Content)
		size += len(in.Results[i].Content)
	}
	if size > maxHistoryText {
		return regie.Errorf(regie.CodeBadRequest, "the request has %d bytes, at most %d are allowed", size,
			maxHistoryText)
	}
	if len(in.Policy.ClientTools) == 0 {
		return nil
	}
	_, err := r.Projects.Scope(in.Root, r.Tools(context.Background())).WithClient(in.Policy.ClientTools)
	return err
}

// imported returns the messages of a client's history, in order. ofClient handles a final message
// of results.
func imported(in *dispatch.RunRequest) []store.Imported {
	var out []store.Imported
	for i := range in.History {
		m := &in.History[i]
		client := regie.Author{Kind: regie.AuthorComponent, ID: sqlite.ComponentClient}
		switch m.Role {
		case regie.ImportedAssistant:
			reply, results := importedReply(m, client, in.SessionID)
			out = append(out, reply)
			if len(reply.Calls) > 0 {
				out = append(out, store.Imported{Message: results})
			}
		default:
			text := m.Text
			if m.Role == regie.ImportedContext {
				text = regie.ClientContextMark + text
			}
			out = append(out, store.Imported{Message: regie.Message{
				ID: regie.NewID(), Sender: regie.SenderUser, Author: client, Text: text,
			}})
		}
	}
	return out
}

// importedReply returns a reply of the history with its calls, and the message with their results.
func importedReply(m *regie.ImportedMessage, author regie.Author, session regie.ID) (store.Imported, regie.Message) {
	reply := store.Imported{Message: regie.Message{
		ID: regie.NewID(), Sender: regie.SenderAI,
		Author: author, AI: &regie.AIReply{},
	}}
	if m.Text != "" {
		reply.Message.AI.Parts = append(reply.Message.AI.Parts, regie.Part{Type: regie.PartText, Text: m.Text})
	}
	results := regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: author,
		System: &regie.SystemContent{Type: regie.SystemDataAdded},
	}
	now := time.Now().UTC()
	for i, c := range m.Calls {
		name := regie.ToolkitClient + "." + c.Name
		call := regie.Call{
			ID: regie.NewID(), SessionID: session, Ordinal: i, MessageID: reply.Message.ID, Origin: regie.OriginClient,
			Tool: name, ProviderCallID: c.ID,
			Kind: regie.KindQuery, Class: regie.ClassRead, Signature: tool.ClientSignature(name, c.Arguments),
			Arguments: c.Arguments,
			State:     regie.CallSucceeded, Result: c.Result, ProposedAt: now, SettledAt: now,
		}
		reply.Calls = append(reply.Calls, call)
		reply.Message.AI.Parts = append(reply.Message.AI.Parts, regie.Part{
			Type: regie.PartCall, CallID: call.ID,
			Tool: name, Arguments: regie.HashOf([]byte(c.Arguments)),
		})
		results.System.CallIDs = append(results.System.CallIDs, call.ID)
	}
	return reply, results
}

// ofClient completes a submission of a client: the round of its calls, and a message of results
// where the request has no text.
func ofClient(in *dispatch.RunRequest, s *store.Submission) {
	for i := range s.History {
		for j := range s.History[i].Calls {
			s.History[i].Calls[j].RoundID = s.Round.ID
		}
	}
	if !answersCalls(in) || said(in) != "" {
		return
	}
	client := regie.Author{Kind: regie.AuthorComponent, ID: sqlite.ComponentClient}
	if len(in.Results) > 0 {
		s.Message = regie.Message{
			ID: s.Message.ID, Sender: regie.SenderSystem, Author: client, ClientID: in.ClientID,
			System: &regie.SystemContent{Type: regie.SystemDataAdded},
		}
		return
	}
	last := len(s.History) - 1 // the results of the history's end start the round
	s.Message = s.History[last].Message
	s.Message.ClientID = in.ClientID
	s.History = s.History[:last]
}
