// Package demo is a provider without a model (spec 6.3): rules that understand a few requests in English and French and drive the
// real tools through the real loop. It says plainly that it is not a model.
//
// It is a pure function from the declared tools and the turns of the thread to a reply, so a run that is killed and resumed goes on
// as any model's would. What stands in files is data to it; no instruction in them is ever followed. It starts no goroutine.
package demo

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Model is the only "model" of this provider; its name says what it is.
const Model = "rules, not a model"

// Provider is the demo provider.
type Provider struct{}

// New returns the demo provider.
func New() Provider { return Provider{} }

// Name implements provider.Provider.
func (Provider) Name() string { return "demo" }

// Capabilities implements provider.Provider.
func (Provider) Capabilities(string) provider.Capabilities {
	return provider.Capabilities{NativeTools: true, Local: true}
}

// Open implements provider.Provider.
func (Provider) Open(head provider.Head) (provider.Conversation, error) {
	c := &conversation{tools: map[string]bool{}}
	for _, t := range head.Tools {
		c.tools[t.Name] = true
	}
	return c, nil
}

type conversation struct {
	tools map[string]bool
	turns []provider.Turn
	bytes int
}

// Append implements provider.Conversation.
func (c *conversation) Append(turns ...provider.Turn) {
	c.turns = append(c.turns, turns...)
	for i := range turns {
		for _, part := range turns[i].Parts {
			c.bytes += len(part.Text)
		}
		for _, result := range turns[i].Results {
			c.bytes += len(result.Content)
		}
	}
}

// Request implements provider.Conversation: nothing is sent, so the hash is that of the thread as JSON.
func (c *conversation) Request() (regie.Hash, int) {
	data, err := json.Marshal(c.turns)
	if err != nil {
		return regie.Hash{}, 0
	}
	return regie.HashOf(data), len(data)
}

// Send implements provider.Conversation.
func (c *conversation) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := react(c.tools, c.turns)
	if sink != nil && r.text != "" {
		for _, word := range strings.SplitAfter(r.text, " ") {
			sink(provider.Delta{Text: word})
		}
	}
	reply := &provider.Reply{StopReason: "stop"}
	if r.text != "" {
		reply.Parts = append(reply.Parts, provider.Part{Type: regie.PartText, Text: r.text})
	}
	out := len(r.text)
	for _, call := range r.calls {
		reply.Parts = append(reply.Parts, provider.Part{Type: regie.PartCall, Call: &call})
		reply.StopReason = "tool_calls"
		out += len(call.Arguments)
	}
	// A rule reads no tokens; four bytes for one is the usual estimate, so that the counters have something to show.
	reply.Usage = regie.Usage{Input: int64(c.bytes / 4), Output: int64(out / 4)}
	return reply, nil
}
