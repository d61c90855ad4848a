package openai

import (
	"context"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Send implements provider.Conversation.
func (c *conversation) Send(ctx context.Context, sink func(provider.Delta)) (_ *provider.Reply, err error) {
	defer c.server.Hide(&err)
	collected := newCollector(c.server, c.quirks.vendor, sink)
	at := wire.Endpoint{Server: c.server, Path: "/chat/completions", Unmarked: c.quirks.noDone}
	err = collected.ReadEvents(ctx, at, c.Whole(), func(data []byte) (bool, error) {
		if string(data) == "[DONE]" {
			return true, nil
		}
		return false, collected.add(data)
	})
	if err != nil {
		return nil, err
	}
	if collected.Finish == "" {
		return nil, collected.Failed(wire.Truncated())
	}
	collected.keepDetails(c.model)
	reply, err := collected.Reply()
	if err == nil {
		reply.Sources = collected.sources
	}
	return reply, err
}
