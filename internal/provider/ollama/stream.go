package ollama

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// line is what we read of one line of a stream.
type line struct {
	Message struct {
		Content   string `json:"content"`
		Thinking  string `json:"thinking"`
		ToolCalls []struct {
			ID       string `json:"id"` // older servers have none: the engine gives one
			Function struct {
				Name string `json:"name"`
				// Arguments is an object by the book; some bridges send it as a string.
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason"`
	Prompt     json.RawMessage `json:"prompt_eval_count"`
	Output     json.RawMessage `json:"eval_count"`
	Error      json.RawMessage `json:"error"`
}

// collector puts a reply together from its lines.
type collector struct {
	wire.Collector
	server *wire.Server
	done   bool // the last line has come
}

func newCollector(server *wire.Server, sink func(provider.Delta)) *collector {
	return &collector{Collector: wire.Collector{Name: Name, Sink: sink}, server: server}
}

// add takes one line. Calls come whole, each in one line; their numbers say nothing that their
// order does not. The error is an *provider.Error.
func (c *collector) add(data []byte) error {
	var l line
	if err := jsonv2.Unmarshal(data, &l, wire.Lenient); err != nil {
		if !json.Valid(data) && data[0] == '{' { // the line broke off
			return wire.Truncated()
		}
		return wire.Broken("the server sent something that is no JSON: %v", err)
	}
	if wire.Said(l.Error) && string(l.Error) != `""` {
		return c.server.InBand(data)
	}
	var tokens int64
	if wire.Claimed(l.Prompt, &tokens) {
		c.Usage.Input = wire.Tokens(tokens)
	}
	if wire.Claimed(l.Output, &tokens) {
		c.Usage.Output = wire.Tokens(tokens)
	}
	if err := c.AddText(regie.PartThinking, l.Message.Thinking); err != nil {
		return err
	}
	if err := c.AddText(regie.PartText, l.Message.Content); err != nil {
		return err
	}
	for i := range l.Message.ToolCalls {
		call := &l.Message.ToolCalls[i]
		part, err := c.OpenCall()
		if err != nil {
			return err
		}
		if err := c.AddCall(part, call.ID, call.Function.Name, wire.ArgumentText(call.Function.Arguments)); err != nil {
			return err
		}
	}
	if l.Done {
		c.done, c.Finish = true, l.DoneReason
		c.Cut = l.DoneReason == "length"
		if c.Finish == "" { // older servers say no reason
			c.Finish = "stop"
		}
	}
	return nil
}
