package openai

import (
	"encoding/json"
	"net/url"
	"strings"

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

// details is what a thinking part of OpenRouter carries: they are good for the model that thought
// them.
type details struct {
	Model   string          `json:"model"`
	Details json.RawMessage `json:"reasoning_details"`
}

// detail is one of reasoning_details, with all of its members. What of it grows with the stream is
// kept apart, so that a long one costs what is added.
type detail struct {
	members map[string]jsontext.Value
	grows   string // text or summary; empty for one that comes whole
	text    *strings.Builder
}

// addDetails takes pieces of reasoning_details: a piece of a text or a summary goes on with the one
// before it if that is of the same type and index, what else it brings (a signature) replaces what
// was there; any other piece is one of its own.
func (c *collector) addDetails(raw json.RawMessage) error {
	if !wire.Said(raw) {
		return nil
	}
	if err := c.Grow(len(raw)); err != nil {
		return err
	}
	var pieces []map[string]jsontext.Value
	if err := jsonv2.Unmarshal(raw, &pieces, wire.Lenient); err != nil {
		return nil //nolint:nilerr // what cannot be read cannot go back, and is no part of the answer
	}
	for _, piece := range pieces {
		d := detail{members: piece, text: &strings.Builder{}}
		d.grows = map[string]string{`"reasoning.text"`: "text", `"reasoning.summary"`: "summary"}[string(piece["type"])]
		if n := len(c.details); n > 0 && d.grows != "" && c.details[n-1].same(&d) {
			d = c.details[n-1]
			for name, value := range piece {
				if name != d.grows && value.Kind() != 'n' {
					d.members[name] = value
				}
			}
		} else {
			c.details = append(c.details, d)
		}
		var text string
		if d.grows != "" && jsonv2.Unmarshal(piece[d.grows], &text, wire.Lenient) == nil {
			d.text.WriteString(text)
		}
	}
	if len(c.details) > 0 && !c.thinks() {
		c.Open(regie.PartThinking) // it goes back, though nobody can read it
	}
	return nil
}

func (d *detail) same(other *detail) bool {
	return d.grows == other.grows && string(d.members["index"]) == string(other.members["index"])
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
	list := make([]map[string]jsontext.Value, 0, len(c.details))
	for i := range c.details {
		d := &c.details[i]
		if d.grows != "" && (d.text.Len() > 0 || d.members[d.grows].Kind() == '"') {
			d.members[d.grows] = jsontext.Value(wire.AppendString(nil, wire.Safe(d.text.String())))
		}
		list = append(list, d.members)
	}
	raw, err := jsonv2.Marshal(list, jsonv2.Deterministic(true), jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(true))
	if err != nil || len(list) == 0 {
		return
	}
	opaque, err := json.Marshal(details{Model: model, Details: raw})
	if err != nil {
		return
	}
	for _, part := range c.Parts {
		if part.Kind == regie.PartThinking {
			part.Opaque = json.RawMessage(wire.Safe(string(opaque)))
			return
		}
	}
}

// Bounds of what an answer is from.
const (
	maxSources = 50
	maxTitle   = 200  // bytes
	maxURL     = 2000 // bytes; a longer one is no address that anybody opens
)

// addSources takes what the answer is from; the last list wins, as usage does. The one with titles
// goes before the one without.
func (c *collector) addSources(ch *chunk) {
	var results []struct {
		Title string `json:"title"`
		URL   string `json:"url"`
	}
	var addresses []string
	switch {
	case wire.Claimed(ch.SearchResults, &results) && len(results) > 0:
	case len(c.sources) == 0 && wire.Claimed(ch.Citations, &addresses):
		for _, address := range addresses {
			results = append(results, struct {
				Title string `json:"title"`
				URL   string `json:"url"`
			}{URL: address})
		}
	}
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
