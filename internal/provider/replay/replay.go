// Package replay answers from a recorded file, and records any provider into one (spec 6.3). Answering calls nothing.
//
// A recording is a file of lines: a header, then one JSON object for each model call in its order, with the hash and size of the
// exact request and either the reply or the error.
package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

const format = "regie-recording-1"

type header struct {
	Format string `json:"format"`
}

// record is one model call.
type record struct {
	Model   string           `json:"model"`
	Request regie.Hash       `json:"request"`
	Bytes   int              `json:"bytes"`
	Summary bool             `json:"summary,omitempty"` // it asks for a summary of the thread
	Deltas  []provider.Delta `json:"deltas,omitempty"`
	Reply   *provider.Reply  `json:"reply,omitempty"`
	Error   *failure         `json:"error,omitempty"`
}

type failure struct {
	Code      regie.Code  `json:"code"`
	Message   string      `json:"message"`
	Retryable bool        `json:"retryable,omitempty"`
	Partial   string      `json:"partial,omitempty"`
	Usage     regie.Usage `json:"usage"`
}

// Player is a provider that answers from a recording.
type Player struct {
	path string

	mu      sync.Mutex
	records []record
	next    int
}

// Open reads a recording. It returns CodeReplayMismatch with the line where the file is not one.
func Open(path string) (*Player, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, regie.Errorf(regie.CodeReplayMismatch, "the recording cannot be read: %v", err)
	}
	records, err := parse(data)
	if err != nil {
		return nil, regie.Errorf(regie.CodeReplayMismatch, "the recording %s cannot be used: %v", path, err)
	}
	return &Player{path: path, records: records}, nil
}

// Silent is a player without answers: it writes requests as the one of a recording does, and whoever sends one gets CodeReplayMismatch.
func Silent() *Player { return &Player{} }

func parse(data []byte) ([]record, error) {
	var records []record
	for number := 1; len(data) > 0; number++ {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		data = rest
		if !whole {
			return nil, regie.Errorf(regie.CodeReplayMismatch, "line %d is cut off: the recording was not finished", number)
		}
		if number == 1 {
			var h header
			if err := json.Unmarshal(line, &h); err != nil || h.Format != format {
				return nil, regie.Errorf(regie.CodeReplayMismatch, "line 1 is not the header of a recording")
			}
			continue
		}
		var r record
		strict := json.NewDecoder(bytes.NewReader(line))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&r); err != nil {
			return nil, regie.Errorf(regie.CodeReplayMismatch, "line %d: %v", number, err)
		}
		if (r.Reply == nil) == (r.Error == nil) {
			return nil, regie.Errorf(regie.CodeReplayMismatch, "line %d holds neither one reply nor one error", number)
		}
		parts := replyParts(r.Reply)
		for i := range parts {
			part := &parts[i]
			if string(part.Opaque) == "null" { // what was absent is absent again
				part.Opaque = nil
			}
			if (part.Type == regie.PartCall) != (part.Call != nil) {
				return nil, regie.Errorf(regie.CodeReplayMismatch, "line %d holds a part that is half a call", number)
			}
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		return nil, regie.Errorf(regie.CodeReplayMismatch, "it holds no model call")
	}
	return records, nil
}

func replyParts(reply *provider.Reply) []provider.Part {
	if reply == nil {
		return nil
	}
	return reply.Parts
}

// Name implements provider.Provider.
func (p *Player) Name() string { return "replay" }

// Capabilities implements provider.Provider.
func (p *Player) Capabilities(string) provider.Capabilities {
	return provider.Capabilities{NativeTools: true, Free: true}
}

// Open implements provider.Provider.
func (p *Player) Open(provider.Head) (provider.Conversation, error) {
	return &playing{player: p}, nil
}

type playing struct {
	player *Player
	turns  []provider.Turn
}

// Append implements provider.Conversation.
func (c *playing) Append(turns ...provider.Turn) { c.turns = append(c.turns, turns...) }

// EndWith implements provider.Conversation: a recording answers whatever it is asked.
func (c *playing) EndWith(provider.Tail) {}

// Request implements provider.Conversation: the hash of a canonical rendering, since nothing is sent. Where the recording has a summary
// next, the prompt was larger than its budget, and it is here.
func (c *playing) Request() (regie.Hash, int) {
	data := c.Body()
	size := len(data)
	c.player.mu.Lock()
	defer c.player.mu.Unlock()
	if p := c.player; p.next < len(p.records) && p.records[p.next].Summary && len(c.turns) > 0 && !provider.AsksSummary(c.turns) {
		size += overAnyBudget
	}
	return regie.HashOf(data), size
}

// overAnyBudget is more than any model reads, in bytes.
const overAnyBudget = 1 << 26

// Body implements provider.Shower: the rendering that is hashed.
func (c *playing) Body() []byte {
	data, err := json.Marshal(c.turns)
	if err != nil { // somebody else's opaque data that is no JSON
		data = []byte(err.Error())
	}
	return data
}

// Send implements provider.Conversation: the next answer of the recording, in its order. It returns CodeReplayMismatch at the
// recording's end.
func (c *playing) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	p := c.player
	p.mu.Lock()
	if p.next >= len(p.records) {
		p.mu.Unlock()
		return nil, &provider.Error{Code: regie.CodeReplayMismatch, Message: "the recording " + p.path + " has no further answer: the run takes another way than the recorded one"}
	}
	r := p.records[p.next]
	if r.Summary != provider.AsksSummary(c.turns) {
		p.mu.Unlock()
		return nil, &provider.Error{Code: regie.CodeReplayMismatch, Message: "the recording " + p.path + " has a summary where a step is asked for, or the other way round: its run had another budget"}
	}
	p.next++
	p.mu.Unlock()
	if sink != nil {
		for _, d := range r.Deltas {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			sink(d)
		}
	}
	if r.Error != nil {
		return nil, &provider.Error{Code: r.Error.Code, Message: r.Error.Message, Retryable: r.Error.Retryable, Partial: r.Error.Partial, Usage: r.Error.Usage}
	}
	reply := *r.Reply
	return &reply, nil
}

// Recorder is a provider that passes everything through and writes it down.
type Recorder struct {
	inner provider.Provider

	mu   sync.Mutex
	file *os.File
}

// NewRecorder records what inner answers into a new or empty file, or goes on with a recording. The file holds what was asked and
// said, so only its owner may read it.
func NewRecorder(inner provider.Provider, path string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the recording cannot be written: %v", err)
	}
	r := &Recorder{inner: inner, file: f}
	data, err := io.ReadAll(f)
	switch {
	case err != nil:
	case len(data) == 0:
		err = r.write(header{Format: format})
	default:
		if line, _, _ := bytes.Cut(data, []byte{'\n'}); !bytes.Contains(line, []byte(format)) {
			err = regie.Errorf(regie.CodeBadRequest, "%s is not a recording: it would be spoiled", path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func (r *Recorder) write(line any) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Write(append(data, '\n')); err != nil {
		return regie.Errorf(regie.CodeDiskFull, "the recording cannot be written: %v", err)
	}
	return r.file.Sync()
}

// Name implements provider.Provider.
func (r *Recorder) Name() string { return r.inner.Name() }

// Capabilities implements provider.Provider.
func (r *Recorder) Capabilities(model string) provider.Capabilities {
	return r.inner.Capabilities(model)
}

// Open implements provider.Provider.
func (r *Recorder) Open(head provider.Head) (provider.Conversation, error) {
	inner, err := r.inner.Open(head)
	if err != nil {
		return nil, err
	}
	return &recording{Conversation: inner, recorder: r, model: head.Model}, nil
}

type recording struct {
	provider.Conversation
	recorder *Recorder
	model    string
	summary  bool // it asks for one
}

// Append implements provider.Conversation.
func (c *recording) Append(turns ...provider.Turn) {
	if len(turns) > 0 {
		c.summary = provider.AsksSummary(turns)
	}
	c.Conversation.Append(turns...)
}

// Body implements provider.Shower where what is recorded does.
func (c *recording) Body() []byte {
	if shower, ok := c.Conversation.(provider.Shower); ok {
		return shower.Body()
	}
	return nil
}

// Send implements provider.Conversation.
func (c *recording) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	hash, size := c.Request()
	line := record{Model: c.model, Request: hash, Bytes: size, Summary: c.summary}
	reply, err := c.Conversation.Send(ctx, func(d provider.Delta) {
		line.Deltas = append(line.Deltas, d)
		if sink != nil {
			sink(d)
		}
	})
	var failed *provider.Error
	switch {
	case err == nil:
		line.Reply = reply
	case errors.As(err, &failed):
		line.Error = &failure{failed.Code, failed.Message, failed.Retryable, failed.Partial, failed.Usage}
	default:
		return nil, err // cancelled: that is no answer
	}
	if writing := c.recorder.write(line); writing != nil {
		return nil, &provider.Error{Code: regie.CodeOf(writing), Message: writing.Error(), Err: writing}
	}
	return reply, err
}
