package wire

import (
	"context"
	"errors"
	"io"

	"github.com/regie-run/regie/internal/provider/sse"
)

// Endpoint is the address of a request that gets a stream of events.
type Endpoint struct {
	Server *Server
	Path   string
	// Lines says that each event is a line of JSON; others are server-sent events.
	Lines bool
	// Unmarked says that a stream may end without a last event, once the reason for the end has
	// come.
	Unmarked bool
}

// ReadEvents posts a request and hands the data of each event of the answer to add, until add
// reports the last one. Errors are those of Server.Post and add, with what had arrived.
func (c *Collector) ReadEvents(ctx context.Context, at Endpoint, body [][]byte,
	add func(data []byte) (last bool, err error),
) error {
	kinds := []string{"text/event-stream"}
	if at.Lines {
		kinds = []string{"application/x-ndjson", "application/json"}
	}
	stream, err := at.Server.Post(ctx, at.Path, body, kinds...)
	if err != nil {
		return err
	}
	defer stream.Close()
	var events interface {
		Next() ([]byte, error)
		Release()
	} = sse.NewEvents(stream, MaxEvent)
	if at.Lines {
		events = sse.NewLines(stream, MaxEvent)
	}
	defer events.Release()
	for last := false; !last; c.Touch(stream) {
		data, err := events.Next()
		switch {
		case err == nil:
			last, err = add(data)
		case at.Unmarked && c.Finish != "" && errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		default:
			err = stream.Failed(err)
		}
		if err != nil {
			return c.Failed(err)
		}
	}
	return nil
}
