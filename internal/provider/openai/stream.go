package openai

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// chunk is what we read of one streamed chunk.
type chunk struct {
	Choices []struct {
		Index        int             `json:"index"`
		Delta        delta           `json:"delta"`
		FinishReason *string         `json:"finish_reason"`
		Error        json.RawMessage `json:"error"` // OpenRouter
	} `json:"choices"`
	Usage  json.RawMessage `json:"usage"`
	Error  json.RawMessage `json:"error"`
	Object json.RawMessage `json:"object"` // "error" where Mistral, and vLLM of old, report one
	// Groq holds Groq's usage, which it sends without a request for it too.
	Groq *struct {
		Usage json.RawMessage `json:"usage"`
	} `json:"x_groq"`
	SearchResults json.RawMessage `json:"search_results"` // Perplexity's: what it answered from
}

type delta struct {
	// Content is a text; Mistral's thinking models send a list of chunks.
	Content          json.RawMessage `json:"content"`
	Reasoning        *string         `json:"reasoning"`
	ReasoningContent *string         `json:"reasoning_content"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"` // OpenRouter
	Refusal          *string         `json:"refusal"`
	ToolCalls        []callDelta     `json:"tool_calls"`
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
	CacheHits           int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptTokensDetails *struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails *struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func decode(data []byte) (ch chunk, err error) {
	err = jsonv2.Unmarshal(data, &ch, wire.Lenient)
	return ch, err
}

// collector puts a reply together from its chunks.
type collector struct {
	wire.Collector
	server  *wire.Server
	frame   frame
	calls   map[int]*wire.Part // by index: the call that index now means
	opened  int                // how many calls there are
	details []map[string]any   // OpenRouter's thinking, as it goes back
	sources []provider.Source
}

// newCollector returns a collector; vendor names the vendor of its thinking.
func newCollector(server *wire.Server, vendor string, sink func(provider.Delta)) *collector {
	return &collector{Collector: wire.Collector{Name: vendor, Sink: sink}, server: server}
}

// add takes one data line. The error is an *provider.Error.
func (c *collector) add(data []byte) error {
	if text, ok := c.frame.text(data); ok {
		return c.AddText(regie.PartText, string(text))
	}
	c.frame.learn(data)
	ch, err := decode(data)
	if err != nil {
		return wire.Broken("the server sent something that is no JSON: %v", err)
	}
	if ch.failed() {
		return c.server.InBand(data)
	}
	for _, used := range []json.RawMessage{ch.groqUsage(), ch.Usage} {
		if wire.Said(used) { // the last one wins (spec 12.6, trap 6)
			c.addUsage(used)
		}
	}
	c.addSources(&ch)
	for i := range ch.Choices {
		choice := &ch.Choices[i]
		if choice.Index != 0 {
			continue // one was asked for
		}
		if wire.Said(choice.Error) {
			return c.server.InBand([]byte(`{"error":` + string(choice.Error) + `}`))
		}
		if err := c.addDelta(&choice.Delta); err != nil {
			return err
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			if err := c.finish(*choice.FinishReason); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish records the finish reason. It returns CodeProviderBusy if the vendor broke off the reply.
func (c *collector) finish(reason string) error {
	switch reason {
	case "error", "insufficient_system_resource": // Mistral and OpenRouter; DeepSeek
		return &provider.Error{
			Code: regie.CodeProviderBusy, Retryable: true,
			Message: "the model's server broke the reply off: " + reason,
		}
	case "length", "content_filter", "model_length": // the last is Mistral's window
		c.Cut = true
	default:
		c.Cut = false
	}
	c.HeldBack = reason == "content_filter"
	c.Finish = reason
	return nil
}

func (ch *chunk) failed() bool { return wire.Said(ch.Error) || string(ch.Object) == `"error"` }

func (ch *chunk) groqUsage() json.RawMessage {
	if ch.Groq == nil {
		return nil
	}
	return ch.Groq.Usage
}

// addUsage records the usage that the server reports. It ignores unreadable usage and keeps the
// reply.
func (c *collector) addUsage(claimed json.RawMessage) {
	var u usage
	if !wire.Claimed(claimed, &u) {
		return
	}
	c.Usage = regie.Usage{Input: wire.Tokens(u.PromptTokens), Output: wire.Tokens(u.CompletionTokens)}
	c.Usage.CacheRead = wire.Tokens(u.CacheHits)
	if d := u.PromptTokensDetails; d != nil && d.CachedTokens > 0 {
		c.Usage.CacheRead = wire.Tokens(d.CachedTokens)
	}
	if d := u.CompletionTokensDetails; d != nil {
		c.Usage.Reasoning = wire.Tokens(d.ReasoningTokens)
	}
}

func (c *collector) addDelta(d *delta) error {
	for _, thinking := range []*string{d.Reasoning, d.ReasoningContent} {
		if thinking != nil && *thinking != "" {
			if err := c.AddText(regie.PartThinking, *thinking); err != nil {
				return err
			}
			break // some servers send both names for the same text
		}
	}
	if err := c.addDetails(d.ReasoningDetails); err != nil {
		return err
	}
	if err := c.addContent(d.Content); err != nil {
		return err
	}
	if d.Refusal != nil && *d.Refusal != "" {
		if err := c.AddText(regie.PartText, *d.Refusal); err != nil {
			return err
		}
	}
	for i := range d.ToolCalls {
		if err := c.addCall(&d.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

// addCall takes a piece of a call. The index alone identifies a later piece; the same index with
// another id is a new call, because some bridges number all calls 0 (spec 12.6, trap 2).
func (c *collector) addCall(d *callDelta) error {
	var index int // without one in the chunk: a call of its own, or the one before
	switch {
	case d.Index != nil:
		index = *d.Index
	case d.ID == "" && (d.Function == nil || d.Function.Name == ""):
		index = -1
	default:
		index = -2 - c.opened
	}
	part := c.calls[index]
	if index == -1 {
		if n := len(c.Parts); n > 0 && c.Parts[n-1].Kind == regie.PartCall {
			part = c.Parts[n-1]
		} else {
			return wire.Broken("the server sent a piece of a call that belongs to none")
		}
	}
	if part != nil && d.ID != "" && part.ID != "" && part.ID != d.ID {
		part = nil
	}
	// Without ids a new name on a finished call is a new call.
	if part != nil && d.ID == "" && d.Function != nil && d.Function.Name != "" && part.ID == "" &&
		json.Valid([]byte(part.Text())) {
		part = nil
	}
	if part == nil {
		var err error
		if part, err = c.OpenCall(); err != nil {
			return err
		}
		c.opened++
		if c.calls == nil {
			c.calls = map[int]*wire.Part{}
		}
		c.calls[index] = part
	}
	if d.Function == nil {
		return c.AddCall(part, d.ID, "", "")
	}
	return c.AddCall(part, d.ID, d.Function.Name, wire.ArgumentText(d.Function.Arguments))
}
