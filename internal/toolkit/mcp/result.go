package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie/internal/sanitize"
)

// maxContent bounds a result in bytes. The pipeline shortens what the model sees long before; this
// bounds what is held and kept.
const maxContent = 8 << 20

// renderContent renders a result as text: its texts; without any, its structured form; and what
// else there is by name, type and size, as a model cannot read bytes.
func renderContent(result *sdk.CallToolResult) string {
	var b strings.Builder
	add := func(text string) {
		if b.Len() > 0 && text != "" {
			b.WriteByte('\n')
		}
		b.WriteString(sanitize.Clip(text, max(0, maxContent-b.Len())))
	}
	var texts, others []string
	for _, part := range result.Content {
		if text, ok := part.(*sdk.TextContent); ok {
			texts = append(texts, text.Text)
			continue
		}
		others = append(others, describePart(part))
	}
	for _, text := range texts {
		add(text)
	}
	if len(texts) == 0 && result.StructuredContent != nil {
		if data, err := json.Marshal(result.StructuredContent); err == nil {
			add(string(data))
		}
	}
	for _, other := range others {
		add(other)
	}
	if b.Len() == 0 {
		return "[the tool returned nothing]"
	}
	return b.String()
}

// describePart says what a part that is not text is.
func describePart(part sdk.Content) string {
	switch part := part.(type) {
	case *sdk.ImageContent:
		return fmt.Sprintf("[image %s, %d bytes, not shown]", shortWord(part.MIMEType), len(part.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio %s, %d bytes, not shown]", shortWord(part.MIMEType), len(part.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[resource %q at %s, %s, not shown]", shortWord(part.Name), shortWord(part.URI),
			shortWord(part.MIMEType))
	case *sdk.EmbeddedResource:
		if part.Resource == nil {
			return "[resource without content]"
		}
		return fmt.Sprintf("[resource at %s, %s, not shown]", shortWord(part.Resource.URI),
			shortWord(part.Resource.MIMEType))
	default:
		return fmt.Sprintf("[content of the kind %T, not shown]", part)
	}
}

// shortWord returns a short piece of a server's text, in a line of ours.
func shortWord(s string) string {
	if s = strings.ReplaceAll(cleanText(s, 200), "\n", " "); s == "" {
		return "of no given type or name"
	}
	return s
}
