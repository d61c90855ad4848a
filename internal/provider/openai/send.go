package openai

import (
	"context"
	"errors"
	"io"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/sse"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Send implements provider.Conversation.
func (c *conversation) Send(ctx context.Context, sink func(provider.Delta)) (_ *provider.Reply, err error) {
	defer c.provider.server.Hide(&err)
	stream, err := c.provider.server.Post(ctx, "/chat/completions", c.request, "text/event-stream")
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	return c.read(stream, sink)
}

// read collects the reply until its terminal marker.
func (c *conversation) read(stream *wire.Stream, sink func(provider.Delta)) (*provider.Reply, error) {
	collected := newCollector(c.provider.server, c.quirks.vendor, sink)
	events := sse.NewReader(stream, wire.MaxEvent)
	defer events.Release()
	for {
		event, err := events.Next()
		if err != nil {
			if errors.Is(err, io.EOF) && c.quirks.noDone && collected.Finish != "" {
				break
			}
			return nil, collected.Failed(stream.Failed(err))
		}
		if string(event.Data) == "[DONE]" {
			break
		}
		if err := collected.add(event.Data); err != nil {
			return nil, collected.Failed(err)
		}
		collected.Touch(stream)
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
