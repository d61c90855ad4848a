package client

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// Events gives a session's log after a sequence number and then follows it, until sink returns an
// error or ctx ends. Over a change of engines the log goes on where it stood,
// without a gap and without a repeat.
func (c *Client) Events(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error {
	passOn := func(item dispatch.Item) error {
		if item.Event != nil {
			after = item.Event.Seq
		}
		return sink(item)
	}
	return c.onEngine(ctx, func(engine *Client) error {
		path := "/api/v1/sessions/" + session.String() + "/events?after=" + strconv.FormatInt(after, 10)
		return engine.follow(ctx, path, func(event, id, data string) error { return told(event, id, data, passOn) })
	})
}

// Watch gives sink what happens in all sessions from now on, as Dispatcher.Watch. Over a change of
// engines sink gets an event without a session: all sessions should be looked at anew.
func (c *Client) Watch(ctx context.Context, sink func(regie.Event) error) error {
	again := false
	return c.onEngine(ctx, func(engine *Client) error {
		if again {
			if err := sink(regie.Event{Type: regie.EventSession}); err != nil {
				return err
			}
		}
		again = true
		return engine.watch(ctx, sink)
	})
}

func (c *Client) watch(ctx context.Context, sink func(regie.Event) error) error {
	return c.follow(ctx, "/api/v1/events", func(event, _, data string) error {
		var e regie.Event
		switch event {
		case "error":
			return told(event, "", data, nil)
		case "":
			return nil
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return unreadable(err)
		}
		return sink(e)
	})
}

// silent is after how long without even a heartbeat, which comes every 15 s, a stream is taken for
// broken.
const silent = time.Minute

var errFrozen = regie.Errorf(regie.CodeEngineGone, "the engine has been silent for a minute")

// follow reads a stream of server-sent events until it ends, which is where its engine has gone.
func (c *Client) follow(ctx context.Context, path string, sink func(event, id, data string) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	response, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	silence := time.AfterFunc(silent, func() { cancel(errFrozen) })
	defer silence.Stop()
	reader := bufio.NewReader(response.Body)
	var event, id string
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return explainGone(ctx, err)
		}
		silence.Reset(silent)
		field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		switch field {
		case "":
			event, id = "", ""
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			if err := sink(event, id, value); err != nil {
				return err
			}
		}
	}
}

func unreadable(err error) error {
	return regie.Errorf(regie.CodeInternal, "the engine sent an unreadable event: %v", err)
}

// told gives sink what an event of a stream says: a durable one has an id, and of the others only
// deltas and errors mean something here.
func told(event, id, data string, sink func(dispatch.Item) error) error {
	var item dispatch.Item
	var err error
	switch {
	case id != "":
		err = json.Unmarshal([]byte(data), &item.Event)
	case event == "stream_chunk":
		err = json.Unmarshal([]byte(data), &item.Delta)
	case event == "error":
		var p problem
		if err = json.Unmarshal([]byte(data), &p); err == nil {
			return p.err()
		}
	default:
		return nil
	}
	if err != nil {
		return unreadable(err)
	}
	return sink(item)
}
