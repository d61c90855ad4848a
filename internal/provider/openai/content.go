package openai

import (
	"encoding/json"
	"fmt"
	"net/url"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// contentChunk is one of a list: text, or thinking, which is a list of texts itself; others, such
// as references, hold no text of the answer.
type contentChunk struct {
	Type     string         `json:"type"`
	Text     string         `json:"text"`
	Thinking jsontext.Value `json:"thinking"`
}

// addContent takes the content of a delta: a text, or Mistral's list of chunks.
func (c *collector) addContent(content json.RawMessage) error {
	if !wire.Said(content) {
		return nil
	}
	if content[0] == '"' {
		if inner := content[1 : len(content)-1]; plainText(inner) {
			return c.AddText(regie.PartText, string(inner))
		}
		var text string
		if err := jsonv2.Unmarshal(content, &text, wire.Lenient); err != nil {
			return wire.Broken("the server sent a text that cannot be read: %v", err)
		}
		return c.AddText(regie.PartText, text)
	}
	var chunks []contentChunk
	if err := jsonv2.Unmarshal(content, &chunks, wire.Lenient); err != nil {
		return wire.Broken("the server sent a content that is neither a text nor a list: %v", err)
	}
	for i := range chunks {
		var err error
		switch chunk := &chunks[i]; chunk.Type {
		case "text":
			err = c.AddText(regie.PartText, chunk.Text)
		case "thinking":
			err = c.addThinking(chunk.Thinking)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) addThinking(thinking jsontext.Value) error {
	var whole string
	if thinking.Kind() == '"' && jsonv2.Unmarshal(thinking, &whole, wire.Lenient) == nil {
		return c.AddText(regie.PartThinking, whole)
	}
	var inner []contentChunk
	if err := jsonv2.Unmarshal(thinking, &inner, wire.Lenient); err != nil {
		return wire.Broken("the server sent thinking that cannot be read: %v", err)
	}
	for i := range inner {
		if err := c.AddText(regie.PartThinking, inner[i].Text); err != nil {
			return err
		}
	}
	return nil
}

// details is the opaque data of OpenRouter's thinking parts: it is valid only for the model that
// made it.
type details struct {
	Model   string          `json:"model"`
	Details json.RawMessage `json:"reasoning_details"`
}

// addDetails takes pieces of reasoning_details. A text or summary continues the piece before it if
// type and index match, and its other members (a signature) replace earlier ones. Other pieces stay
// separate.
func (c *collector) addDetails(raw json.RawMessage) error {
	if !wire.Said(raw) {
		return nil
	}
	if err := c.Grow(len(raw)); err != nil {
		return err
	}
	var pieces []map[string]any
	if err := jsonv2.Unmarshal(raw, &pieces, wire.Lenient); err != nil {
		return nil //nolint:nilerr // what cannot be read cannot go back, and is no part of the answer
	}
	for _, piece := range pieces {
		kind, _ := piece["type"].(string)
		grows := map[string]string{"reasoning.text": "text", "reasoning.summary": "summary"}[kind]
		n := len(c.details)
		if n == 0 || grows == "" || c.details[n-1]["type"] != any(kind) ||
			fmt.Sprint(c.details[n-1]["index"]) != fmt.Sprint(piece["index"]) {
			c.details = append(c.details, piece)
			continue
		}
		last := c.details[n-1]
		before, _ := last[grows].(string)
		for name, value := range piece {
			if value != nil {
				last[name] = value
			}
		}
		if more, ok := piece[grows].(string); ok {
			last[grows] = before + more
		}
	}
	if len(c.details) > 0 && !c.thinks() {
		c.Open(regie.PartThinking) // it goes back to the vendor, though it is not readable
	}
	return nil
}

func (c *collector) thinks() bool {
	for _, part := range c.Parts {
		if part.Kind == regie.PartThinking {
			return true
		}
	}
	return false
}

// keepDetails puts the details on the reply's first thinking part.
func (c *collector) keepDetails(model string) {
	raw, err := jsonv2.Marshal(c.details, jsonv2.Deterministic(true))
	if err != nil || len(c.details) == 0 {
		return
	}
	for _, part := range c.Parts {
		if part.Kind == regie.PartThinking {
			part.Opaque = wire.Opaque(details{Model: model, Details: raw})
			return
		}
	}
}

// Bounds of an answer's sources.
const (
	maxSources = 50
	maxTitle   = 200  // bytes
	maxURL     = 2000 // bytes; a person cannot open a longer one
)

// addSources records an answer's sources; the last list wins, as usage does.
func (c *collector) addSources(ch *chunk) {
	var results []struct {
		Title string `json:"title"`
		URL   string `json:"url"`
	}
	_ = wire.Claimed(ch.SearchResults, &results)
	if len(results) == 0 {
		return
	}
	c.sources = c.sources[:0]
	for _, r := range results[:min(len(results), maxSources)] {
		source := provider.Source{Title: wire.Clip(wire.OneLine(r.Title), maxTitle), URL: wire.OneLine(r.URL)}
		if u, err := url.Parse(source.URL); err != nil || u.Host == "" || u.Scheme != "http" &&
			u.Scheme != "https" || len(source.URL) > maxURL {
			source.URL = "" // it keeps its place: the text counts on the numbers
		}
		c.sources = append(c.sources, source)
	}
}
