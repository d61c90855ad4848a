package anthropic

import (
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// event is what we read of one streamed event. New kinds of events, blocks and deltas may come at
// any time and are passed over.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message *struct {
		Usage jsontext.Value `json:"usage"`
	} `json:"message"`
	Block *block         `json:"content_block"`
	Delta *delta         `json:"delta"`
	Usage jsontext.Value `json:"usage"`
}

type block struct {
	Type      string         `json:"type"`
	Text      string         `json:"text"`
	Thinking  string         `json:"thinking"`
	Signature string         `json:"signature"`
	Data      string         `json:"data"`
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Input     jsontext.Value `json:"input"`
}

type delta struct {
	Type       string  `json:"type"`
	Text       string  `json:"text"`
	Thinking   string  `json:"thinking"`
	Signature  string  `json:"signature"`
	Partial    string  `json:"partial_json"`
	StopReason *string `json:"stop_reason"`
	Details    *struct {
		Explanation string `json:"explanation"`
	} `json:"stop_details"`
}

// usage is cumulative: message_delta replaces the fields of message_start one by one.
type usage struct {
	Input         *int64 `json:"input_tokens"`
	Output        *int64 `json:"output_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
}

// collector puts a reply together from its events.
type collector struct {
	wire.Collector
	server  *wire.Server
	blocks  map[int]*open // by index: the block that index now means
	plain   int64         // input tokens that no cache knew
	stopped bool          // message_stop has come
	refusal string        // why the model declined, if it said so
}

// open is a block that grows. Blocks of other kinds than ours have no part.
type open struct {
	part      *wire.Part
	signature string
	input     string // a call's whole input, if it came at once
}

func newCollector(server *wire.Server, sink func(provider.Delta)) *collector {
	return &collector{Collector: wire.Collector{Name: Name, Sink: sink}, server: server, blocks: map[int]*open{}}
}

// add takes one event. The error is an *provider.Error.
func (c *collector) add(data []byte) error {
	var e event
	if err := jsonv2.Unmarshal(data, &e, wire.Lenient); err != nil {
		return wire.Broken("the server sent something that is no JSON: %v", err)
	}
	switch e.Type {
	case "error":
		return c.server.InBand(data)
	case "message_start":
		if e.Message != nil {
			c.count(e.Message.Usage)
		}
	case "content_block_start":
		if e.Block != nil {
			return c.start(e.Index, e.Block)
		}
	case "content_block_delta":
		if e.Delta != nil {
			return c.grow(e.Index, e.Delta)
		}
	case "content_block_stop":
		return c.stop(e.Index)
	case "message_delta":
		c.count(e.Usage)
		if e.Delta != nil && e.Delta.StopReason != nil {
			c.Finish = *e.Delta.StopReason
			c.Cut = c.Finish == "max_tokens" || c.Finish == "model_context_window_exceeded"
			if e.Delta.Details != nil && e.Delta.Details.Explanation != "" {
				c.refusal = ": " + wire.Clip(wire.Safe(e.Delta.Details.Explanation), 300)
			}
		}
	case "message_stop":
		if c.Finish == "" {
			return wire.Truncated()
		}
		for index := range c.blocks { // a bridge may leave the end of a block out
			if err := c.stop(index); err != nil {
				return err
			}
		}
		c.stopped = true
	}
	return nil
}

// count merges the usage that a server reports. Input is the whole prompt, as with other vendors:
// this API reports it without cached tokens.
func (c *collector) count(claimed jsontext.Value) {
	var u usage
	if !wire.Claimed(claimed, &u) {
		return
	}
	for _, field := range []struct {
		from *int64
		to   *int64
	}{
		{u.Input, &c.plain},
		{u.Output, &c.Usage.Output},
		{u.CacheCreation, &c.Usage.CacheCreation},
		{u.CacheRead, &c.Usage.CacheRead},
	} {
		if field.from != nil {
			*field.to = wire.Tokens(*field.from)
		}
	}
	c.Usage.Input = c.plain + c.Usage.CacheCreation + c.Usage.CacheRead
}

// start opens a block. A repeated index is a new block, because some bridges number all of them 0.
func (c *collector) start(index int, b *block) error {
	if err := c.stop(index); err != nil {
		return err
	}
	o := &open{signature: b.Signature}
	c.blocks[index] = o
	switch b.Type {
	case "text":
		return c.AddText(regie.PartText, b.Text)
	case "thinking":
		o.part = c.Open(regie.PartThinking) // never joined: each has its signature
		return c.Add(o.part, b.Thinking)
	case "redacted_thinking":
		o.part = c.Open(regie.PartThinking)
		o.part.Opaque = wire.Opaque(opaque{Data: b.Data})
	case "tool_use":
		part, err := c.OpenCall()
		if err != nil {
			return err
		}
		o.part = part
		if input := string(b.Input); input != "" && input != "{}" && input != "null" {
			o.input = input
		}
		return c.AddCall(part, b.ID, b.Name, "")
	}
	return nil
}

func (c *collector) grow(index int, d *delta) error {
	o := c.blocks[index]
	switch d.Type {
	case "text_delta":
		return c.AddText(regie.PartText, d.Text)
	case "thinking_delta", "signature_delta":
		if o == nil || o.part == nil || o.part.Kind != regie.PartThinking {
			return wire.Broken("the server sent a piece of thinking that belongs to no block")
		}
		o.signature += d.Signature
		return c.Add(o.part, d.Thinking)
	case "input_json_delta":
		if o == nil {
			return wire.Broken("the server sent a piece of a call that belongs to none")
		}
		if o.part == nil || o.part.Kind != regie.PartCall { // of a tool that the server itself ran
			return nil
		}
		return c.AddCall(o.part, "", "", d.Partial)
	}
	return nil
}

// stop closes a block, if it is open.
func (c *collector) stop(index int) error {
	o := c.blocks[index]
	if o == nil {
		return nil
	}
	delete(c.blocks, index)
	switch {
	case o.part == nil:
	case o.part.Kind == regie.PartThinking && o.signature != "":
		o.part.Opaque = wire.Opaque(opaque{Signature: o.signature})
	case o.part.Kind == regie.PartCall && o.part.Text() == "" && o.input != "":
		return c.AddCall(o.part, "", "", o.input)
	}
	return nil
}
