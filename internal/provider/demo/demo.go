package demo

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Model is the only "model" of this provider (spec 6.3); its name says what it is.
const Model = "rules, not a model"

// bytesPerToken turns bytes into tokens. Rules read no tokens: the counters get the usual estimate,
// and the price is none.
const bytesPerToken = 4

// Provider is the demo provider (spec 6.3).
type Provider struct{}

// New returns the demo provider.
func New() Provider { return Provider{} }

// Name implements provider.Provider.
func (Provider) Name() string { return "demo" }

// Capabilities implements provider.Provider.
func (Provider) Capabilities(string) provider.Capabilities {
	return provider.Capabilities{NativeTools: true, NativeOnly: true, Free: true}
}

// Open implements provider.Provider. Every head can be sent here.
func (Provider) Open(head provider.Head) (provider.Conversation, error) {
	c := &conversation{tools: map[string]provider.Tool{}, sum: sha256.New(), head: head}
	for _, t := range head.Tools {
		c.tools[t.Name] = t
	}
	c.render(head)
	return c, nil
}

type conversation struct {
	tools map[string]provider.Tool
	turns []provider.Turn
	tail  provider.Tail
	// sum and size are those of the canonical rendering so far: each turn is rendered once
	// (decision 31).
	sum  hash.Hash
	size int
	head provider.Head
	// unread is how much of it the rules do not read, in bytes.
	unread int
}

// Append implements provider.Conversation.
func (c *conversation) Append(turns ...provider.Turn) {
	c.turns = append(c.turns, turns...)
	for i := range turns {
		c.render(turns[i])
		for _, p := range turns[i].Parts {
			if p.Opening { // read by nobody here, and as long as the day's name is
				c.unread += len(line(p))
			}
		}
	}
}

// render adds a line of JSON to what the hash of a request covers.
func (c *conversation) render(part any) {
	data := line(part)
	c.size += len(data)
	_, _ = c.sum.Write(data) // a hash never fails
}

func line(part any) []byte {
	data, err := json.Marshal(part)
	if err != nil { // somebody else's opaque data that is no JSON: its error is as stable as it is
		data = []byte(err.Error())
	}
	return append(data, '\n')
}

// Body implements provider.Shower: what the hash of a request covers.
func (c *conversation) Body() []byte {
	out := line(c.head)
	for i := range c.turns {
		out = append(out, line(c.turns[i])...)
	}
	return out
}

// EndWith implements provider.Conversation. Rules need no guidance.
func (c *conversation) EndWith(tail provider.Tail) { c.tail = tail }

// Request implements provider.Conversation. Nothing is sent anywhere: the hash is that of the head
// and the turns as lines of JSON.
func (c *conversation) Request() (regie.Hash, int) {
	return regie.Hash(c.sum.Sum(nil)), c.size
}

// Send implements provider.Conversation.
func (c *conversation) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if provider.AsksSummary(c.turns) {
		return nil, &provider.Error{Code: regie.CodeProviderRejected, Message: "rules cannot summarise a conversation"}
	}
	started := time.Now()
	tools := c.tools
	if c.tail.Withheld {
		tools = nil
	}
	r := react(tools, c.turns)
	firstByte := time.Since(started)
	if sink != nil {
		for word := range strings.SplitAfterSeq(r.text, " ") {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if word != "" {
				sink(provider.Delta{Text: word})
			}
		}
	}
	reply := &provider.Reply{StopReason: "stop", FirstByte: firstByte}
	written := len(r.text)
	if r.text != "" {
		reply.Parts = append(reply.Parts, provider.Part{Type: regie.PartText, Text: r.text})
	}
	for i := range r.calls {
		reply.Parts = append(reply.Parts, provider.Part{Type: regie.PartCall, Call: &r.calls[i]})
		reply.StopReason = "tool_calls"
		written += len(r.calls[i].Name) + len(r.calls[i].Arguments)
	}
	reply.Usage = regie.Usage{Input: estimate(c.size - c.unread), Output: estimate(written)}
	return reply, nil
}

// estimate counts tokens where nobody counted them.
func estimate(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }
