package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Bounds of one reply (spec 11.3).
const (
	maxReply = 16 << 20 // bytes of text, thinking and arguments together
	maxCalls = 10_000
	maxEvent = 8 << 20
)

// chunk is what we read of one streamed chunk.
type chunk struct {
	Choices []struct {
		Index        int     `json:"index"`
		Delta        delta   `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type delta struct {
	Content          *string     `json:"content"`
	Reasoning        *string     `json:"reasoning"`
	ReasoningContent *string     `json:"reasoning_content"`
	Refusal          *string     `json:"refusal"`
	ToolCalls        []callDelta `json:"tool_calls"`
}

type callDelta struct {
	Index    *int    `json:"index"`
	ID       string  `json:"id"`
	Function *called `json:"function"`
}

type called struct {
	Name string `json:"name"`
	// Arguments is a string by the book; some bridges send the object itself.
	Arguments json.RawMessage `json:"arguments"`
}

type usage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	PromptTokensDetails *struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails *struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// collector puts a reply together from its chunks.
type collector struct {
	sink     func(provider.Delta)
	parts    []*building
	calls    map[int]int // by index: the part of the call that index now means
	finish   string
	usage    regie.Usage
	size     int
	nCalls   int
	anything bool
}

// building is a part that still grows. It is kept by pointer: a strings.Builder must not be copied.
type building struct {
	kind regie.PartType
	text strings.Builder // text, thinking, or arguments
	id   string
	name string
}

// add takes one data line. The error is an *provider.Error.
func (c *collector) add(data []byte) error {
	if text, ok := plainDelta(data); ok {
		return c.addText(regie.PartText, text)
	}
	var ch chunk
	if err := json.Unmarshal(data, &ch); err != nil {
		return broken("the server sent something that is no JSON: %v", err)
	}
	if len(ch.Error) > 0 && !bytes.Equal(ch.Error, []byte("null")) {
		return inBand(ch.Error)
	}
	if ch.Usage != nil { // the last one wins (spec 12.6, trap 6)
		c.usage = regie.Usage{Input: ch.Usage.PromptTokens, Output: ch.Usage.CompletionTokens}
		if d := ch.Usage.PromptTokensDetails; d != nil {
			c.usage.CacheRead = d.CachedTokens
		}
		if d := ch.Usage.CompletionTokensDetails; d != nil {
			c.usage.Reasoning = d.ReasoningTokens
		}
	}
	for i := range ch.Choices {
		choice := &ch.Choices[i]
		if choice.Index != 0 {
			continue // one was asked for
		}
		if err := c.addDelta(&choice.Delta); err != nil {
			return err
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			c.finish = *choice.FinishReason
		}
	}
	return nil
}

func (c *collector) addDelta(d *delta) error {
	for _, thinking := range []*string{d.Reasoning, d.ReasoningContent} {
		if thinking != nil && *thinking != "" {
			if err := c.addText(regie.PartThinking, *thinking); err != nil {
				return err
			}
			break // some servers send both names for the same text
		}
	}
	for _, text := range []*string{d.Content, d.Refusal} {
		if text != nil && *text != "" {
			if err := c.addText(regie.PartText, *text); err != nil {
				return err
			}
		}
	}
	for i := range d.ToolCalls {
		if err := c.addCall(&d.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) addText(kind regie.PartType, text string) error {
	if text == "" {
		return nil
	}
	if err := c.grow(len(text)); err != nil {
		return err
	}
	if n := len(c.parts); n == 0 || c.parts[n-1].kind != kind {
		c.parts = append(c.parts, &building{kind: kind})
	}
	c.parts[len(c.parts)-1].text.WriteString(text)
	if c.sink != nil {
		if kind == regie.PartThinking {
			c.sink(provider.Delta{Thinking: text})
		} else {
			c.sink(provider.Delta{Text: text})
		}
	}
	return nil
}

func (c *collector) grow(n int) error {
	c.anything = true
	if c.size += n; c.size > maxReply {
		return &provider.Error{Code: regie.CodeReplyTooLarge, Message: "the model's reply passed the bound of 16 MiB and was cut off"}
	}
	return nil
}

// addCall takes a piece of a call. A later piece is known by its index alone; an index that comes with another id is another call,
// whatever its number says: some bridges number all calls 0 (spec 12.6, trap 2).
func (c *collector) addCall(d *callDelta) error {
	var index int // without one in the chunk: a call of its own, or the one before
	switch {
	case d.Index != nil:
		index = *d.Index
	case d.ID == "" && (d.Function == nil || d.Function.Name == ""):
		index = -1
	default:
		index = -2 - c.nCalls
	}
	part, known := c.calls[index]
	if index == -1 {
		part, known = len(c.parts)-1, len(c.parts) > 0 && c.parts[len(c.parts)-1].kind == regie.PartCall
		if !known {
			return broken("the server sent a piece of a call that belongs to none%v", "")
		}
	}
	if known && d.ID != "" && c.parts[part].id != "" && c.parts[part].id != d.ID {
		known = false
	}
	// Without ids a new name on a finished call is a new call.
	if known && d.ID == "" && d.Function != nil && d.Function.Name != "" && c.parts[part].id == "" && json.Valid([]byte(c.parts[part].text.String())) {
		known = false
	}
	if !known {
		if c.nCalls++; c.nCalls > maxCalls {
			return &provider.Error{Code: regie.CodeReplyTooLarge, Message: "the model made more than 10,000 calls in one reply"}
		}
		part = len(c.parts)
		c.parts = append(c.parts, &building{kind: regie.PartCall})
		if c.calls == nil {
			c.calls = map[int]int{}
		}
		c.calls[index] = part
	}
	b := c.parts[part]
	if d.ID != "" {
		b.id = d.ID
	}
	if d.Function == nil {
		return c.grow(len(d.ID))
	}
	if b.name == "" {
		b.name = d.Function.Name
	}
	arguments := argumentText(d.Function.Arguments)
	b.text.WriteString(arguments)
	return c.grow(len(d.ID) + len(d.Function.Name) + len(arguments))
}

// argumentText returns the piece of arguments, whether it came as a string or as the object itself.
func argumentText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] != '"' {
		return string(raw)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}

// reply returns the whole reply once the stream has ended in good order.
func (c *collector) reply() (*provider.Reply, error) {
	out := &provider.Reply{StopReason: safe(c.finish), Usage: c.usage}
	visible := false
	for i := range c.parts {
		b := c.parts[i]
		text := b.text.String()
		if b.kind != regie.PartCall {
			part := provider.Part{Type: b.kind, Text: safe(text)}
			if b.kind == regie.PartThinking {
				part.Provider = Name
			} else if strings.TrimSpace(text) != "" {
				visible = true
			}
			out.Parts = append(out.Parts, part)
			continue
		}
		arguments, err := wholeArguments(b, text)
		if err != nil {
			return nil, err
		}
		visible = true
		out.Parts = append(out.Parts, provider.Part{Type: regie.PartCall, Call: &provider.Call{ID: safe(b.id), Name: safe(b.name), Arguments: arguments}})
	}
	if !visible {
		return nil, &provider.Error{Code: regie.CodeEmptyReply, Retryable: true, Message: "the model sent an empty reply", Usage: c.usage}
	}
	return out, nil
}

// wholeArguments checks that a call is whole: arguments that are cut, or no object, never reach a tool (spec 12.6, trap 1). What
// is a string by the book but wrong by the schema is the pipeline's to judge.
func wholeArguments(b *building, text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" { // zero arguments stream as nothing (spec 12.6, trap 3)
		return "{}", nil
	}
	if text[0] != '{' || !json.Valid([]byte(text)) {
		return "", &provider.Error{Code: regie.CodeBadReply, Retryable: true, Message: "the model sent a call of " + clip(safe(b.name), 80) + " whose arguments are not a whole JSON object"}
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// safe makes text that every store and every API takes: valid UTF-8 without NUL.
func safe(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
