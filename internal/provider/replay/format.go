package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

const (
	header = `{"format":"regie-recording-3"}`
	// maxRecording bounds a recording, in bytes: a Player holds it in memory.
	maxRecording = 64 << 20
)

// call is one model call, a line of a recording.
type call struct {
	Number   int             `json:"call"`
	After    int             `json:"after,omitempty"` // the number of the call that this one continues; 0 = none
	Provider string          `json:"provider"`
	Head     *provider.Head  `json:"head,omitempty"`
	HeadOf   int             `json:"head_of,omitempty"` // the call that has the same head; 0 = Head is set here
	Asked    []provider.Turn `json:"asked,omitempty"`   // the turns behind the thread of After
	Tail     provider.Tail   `json:"tail,omitzero"`
	Reply    *provider.Reply `json:"reply,omitempty"`
	Failed   *provider.Error `json:"failed,omitempty"`

	thread regie.Hash // hash of all turns
}

// encode returns the line of JSON for v.
func encode(v any) (string, error) {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return out.String(), err
}

// recording is the content of a file.
type recording struct {
	calls   []*call
	threads map[regie.Hash]int // the last call with a thread
	heads   map[regie.Hash]int // the call that holds a head
}

func mismatch(format string, values ...any) error {
	return regie.Errorf(regie.CodeReplayMismatch, format, values...)
}

// parse reads a recording. Its errors name the line.
func parse(data []byte) (*recording, error) {
	if len(data) > maxRecording {
		return nil, mismatch("it is larger than %d MiB", maxRecording>>20)
	}
	first, data, _ := bytes.Cut(data, []byte{'\n'})
	if string(first) != header {
		return nil, mismatch("line 1 is not %s: it is not a recording, or another version made it; record it again", header)
	}
	r := &recording{}
	for len(data) > 0 {
		text, rest, whole := bytes.Cut(data, []byte{'\n'})
		data = rest
		c := &call{}
		err := jsonv2.Unmarshal(text, c, jsonv2.RejectUnknownMembers(true))
		if !whole {
			err = errors.New("it is cut off: the recording was not finished")
		} else if err == nil {
			err = r.check(c)
		}
		if err != nil {
			return nil, mismatch("line %d: %v", len(r.calls)+2, err)
		}
		r.add(c)
	}
	if len(r.calls) == 0 {
		return nil, mismatch("it holds no model call")
	}
	return r, nil
}

// check refuses a call out of order, or with an answer that the engine could not use. It completes
// the head.
func (r *recording) check(c *call) error {
	next := len(r.calls) + 1
	switch {
	case c.Number != next:
		return fmt.Errorf("call %d stands where call %d is wanted", c.Number, next)
	case min(c.After, c.HeadOf) < 0 || max(c.After, c.HeadOf) >= next || (c.Head == nil) != (c.HeadOf > 0):
		return errors.New("the call whose thread or head this one continues does not stand before it")
	case c.HeadOf > 0:
		c.Head = r.calls[c.HeadOf-1].Head
	}
	if c.Head.Dialect != regie.DialectNative && c.Head.Dialect != regie.DialectJSON {
		return fmt.Errorf("%q is not a dialect", string(c.Head.Dialect))
	}
	if (c.Reply == nil) == (c.Failed == nil) {
		return errors.New("it has neither a reply nor a failure, or both")
	}
	if c.Reply == nil {
		return nil
	}
	for _, part := range c.Reply.Parts {
		if part.Type == regie.PartCall && (part.Call == nil ||
			json.Unmarshal([]byte(part.Call.Arguments), &map[string]json.RawMessage{}) != nil) {
			return errors.New("the arguments of a call are not a JSON object")
		}
	}
	return nil
}

// add appends a call and sets the hash of its thread.
func (r *recording) add(c *call) {
	if c.After > 0 {
		c.thread = r.calls[c.After-1].thread
	}
	for _, turn := range c.Asked {
		c.thread = chainHash(c.thread, turn)
	}
	if r.calls = append(r.calls, c); c.Number == 1 {
		r.threads, r.heads = map[regie.Hash]int{}, map[regie.Hash]int{}
	}
	r.threads[c.thread] = c.Number
	if c.HeadOf == 0 {
		r.heads[chainHash(regie.Hash{}, c.Head)] = c.Number
	}
}

// turns returns all turns of a call's request, from the beginning.
func (r *recording) turns(c *call) (turns []provider.Turn) {
	for ; ; c = r.calls[c.After-1] {
		for _, turn := range slices.Backward(c.Asked) {
			turns = append(turns, turn)
		}
		if c.After == 0 {
			slices.Reverse(turns)
			return turns
		}
	}
}
