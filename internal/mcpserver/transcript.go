package mcpserver

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// maxTranscript bounds a transcript in bytes: of a longer one the end is told.
const maxTranscript = 256 << 10

const (
	transcripts    = "regie://sessions/"
	transcriptType = "text/markdown"
)

// addTranscripts offers what was said in a session as a resource.
func (s *server) addTranscripts(to *mcp.Server) {
	to.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "session", Title: "Transcript of a session", URITemplate: transcripts +
			"{session_id}", MIMEType: transcriptType,
		Description: "What was said in a session, and which calls its agent made.",
	}, func(ctx context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := request.Params.URI
		found, err := s.find(ctx, strings.TrimPrefix(uri, transcripts), regie.ScopeRead)
		switch regie.CodeOf(err) {
		case "":
		case regie.CodeNotFound, regie.CodeBadID:
			return nil, mcp.ResourceNotFoundError(uri)
		default:
			return nil, s.failed(err)
		}
		view, err := s.Control.Session(ctx, found.ID)
		if err != nil {
			return nil, s.failed(err)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: uri, MIMEType: transcriptType, Text: transcript(&view)},
		}}, nil
	})
}

// transcript is a session as a text.
func transcript(view *store.SessionView) string {
	var b strings.Builder
	for i := range view.Thread {
		m := &view.Thread[i]
		switch {
		case m.Superseded:
			continue
		case m.Message.Sender == regie.SenderUser:
			b.WriteString("## Person\n\n" + m.Message.LinearText() + "\n\n")
		case m.Message.AI != nil:
			b.WriteString("## Agent\n\n" + m.Message.AI.Text() + "\n\n")
			for j := range m.Calls {
				c := &m.Calls[j]
				b.WriteString("- " + c.Tool + ": " + string(c.State) + " " + string(c.NotRun) + "\n")
			}
		case m.Message.Sender == regie.SenderAI && m.Message.Text != "":
			b.WriteString("## Agent\n\n" + m.Message.Text + "\n\n")
		}
	}
	text := plain.Strip(b.String())
	if cut := len(text) - maxTranscript; cut > 0 {
		return "(the beginning is left out)\n" + strings.ToValidUTF8(text[cut:], "")
	}
	return text
}
