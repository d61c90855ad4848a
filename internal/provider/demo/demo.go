package demo

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Model is the only "model" of this provider (spec 6.3); its name says what it is.
const Model = "rules, not a model"

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
	c := &conversation{tools: map[string]provider.Tool{}}
	for _, t := range head.Tools {
		c.tools[t.Name] = t
	}
	c.appendLine(head)
	return c, nil
}

type conversation struct {
	tools map[string]provider.Tool
	turns []provider.Turn
	tail  provider.Tail
	body  []byte // the head and the turns as lines of JSON: what the hash of a request covers
	// unread is how much of the body the rules do not read, in bytes.
	unread int
}

// Append implements provider.Conversation.
func (c *conversation) Append(turns ...provider.Turn) {
	c.turns = append(c.turns, turns...)
	for i := range turns {
		c.appendLine(turns[i])
		for _, p := range turns[i].Parts {
			if p.Opening { // the day's name has not always the same length
				c.unread += len(encodeLine(p))
			}
		}
		for _, r := range turns[i].Results {
			c.unread += len(r.Content) - len(provider.WithoutDurations(r.Content))
		}
	}
}

func (c *conversation) appendLine(part any) { c.body = append(c.body, encodeLine(part)...) }

func encodeLine(part any) []byte {
	data, err := json.Marshal(part)
	if err != nil { // another provider's opaque data that is no JSON: its error is as stable as it is
		data = []byte(err.Error())
	}
	return append(data, '\n')
}

// Body implements provider.Shower.
func (c *conversation) Body() []byte { return c.body }

// EndWith implements provider.Conversation. Rules need no guidance.
func (c *conversation) EndWith(tail provider.Tail) { c.tail = tail }

// Request implements provider.Conversation. Nothing is sent anywhere.
func (c *conversation) Request() (regie.Hash, int) { return sha256.Sum256(c.body), len(c.body) }

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
	r := nextReply(tools, c.turns)
	reply := &provider.Reply{StopReason: "stop", FirstByte: time.Since(started)}
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
	written := len(r.text)
	if r.text != "" {
		reply.Parts = append(reply.Parts, provider.Part{Type: regie.PartText, Text: r.text})
	}
	for i := range r.calls {
		reply.Parts = append(reply.Parts, provider.Part{Type: regie.PartCall, Call: &r.calls[i]})
		reply.StopReason = "tool_calls"
		written += len(r.calls[i].Name) + len(r.calls[i].Arguments)
	}
	reply.Usage = regie.Usage{Input: estimateTokens(len(c.body) - c.unread), Output: estimateTokens(written)}
	return reply, nil
}

// estimateTokens estimates four bytes a token, as is usual without a tokenizer.
func estimateTokens(bytes int) int64 { return int64((bytes + 3) / 4) }
