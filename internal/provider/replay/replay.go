package replay

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Player is a provider that answers from a recording.
type Player struct {
	path string

	mu        sync.Mutex
	recording *recording
	played    []bool
	next      int // the first call that was not played
}

// Open reads a recording. It returns CodeReplayMismatch with the line where the file is not one.
func Open(path string) (*Player, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, mismatch("the recording cannot be read: %v", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecording+1))
	if err != nil {
		return nil, mismatch("the recording cannot be read: %v", err)
	}
	r, err := parse(data)
	if err != nil {
		return nil, mismatch("the recording %s cannot be used: %v", path, err)
	}
	return &Player{path: path, recording: r, played: make([]bool, len(r.calls))}, nil
}

// Silent is a player without answers: it writes requests as the one of a recording does, and
// whoever sends one gets CodeReplayMismatch.
func Silent() *Player {
	return &Player{recording: &recording{first: speaker{dialect: regie.DialectNative}}}
}

// Name implements provider.Provider.
func (p *Player) Name() string { return "replay" }

// Capabilities implements provider.Provider: the model of a recording speaks the dialect in which
// it was recorded.
func (p *Player) Capabilities(string) provider.Capabilities {
	return provider.Capabilities{NativeTools: p.recording.first.dialect == regie.DialectNative, Free: true}
}

// Open implements provider.Provider.
func (p *Player) Open(head provider.Head) (provider.Conversation, error) {
	return &playing{player: p, dialect: head.Dialect}, nil
}

type playing struct {
	player  *Player
	dialect regie.Dialect
	turns   []provider.Turn
	thread  thread
}

// Append implements provider.Conversation.
func (c *playing) Append(turns ...provider.Turn) {
	c.turns = append(c.turns, turns...)
	c.thread.add(func(text string) string { return text }, turns...)
}

// EndWith implements provider.Conversation: a recording answers the same whatever stands behind the
// thread.
func (c *playing) EndWith(provider.Tail) {}

// Request implements provider.Conversation: the hash of a canonical rendering, since nothing is
// sent. Where the recording has a summary next, the prompt was larger than its budget, and it is
// here.
func (c *playing) Request() (regie.Hash, int) {
	data := c.Body()
	size := len(data)
	c.player.mu.Lock()
	defer c.player.mu.Unlock()
	if p := c.player; p.next < len(p.played) && provider.AsksSummary(p.recording.calls[p.next].asked) &&
		len(c.turns) > 0 && !provider.AsksSummary(c.turns) {
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

// find returns the first call with this thread that was not played, and takes it. It returns
// CodeReplayMismatch where there is none.
func (c *playing) find() (*call, error) {
	p := c.player
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next >= len(p.played) {
		return nil, c.refused("has no further answer: the run takes another way than the recorded one")
	}
	for i := p.next; i < len(p.played); i++ {
		found := p.recording.calls[i]
		if p.played[i] || p.recording.hashes[i].asked != c.thread.hash() {
			continue
		}
		if c.dialect != "" && c.dialect != found.dialect {
			return nil, c.refused("has this in the dialect " + string(found.dialect) + ", and it is asked for in " +
				string(c.dialect) + ": leave the dialect out")
		}
		for p.played[i] = true; p.next < len(p.played) && p.played[p.next]; {
			p.next++
		}
		return found, nil
	}
	wanted := p.recording.calls[p.next]
	if provider.AsksSummary(wanted.asked) != provider.AsksSummary(c.turns) {
		return nil,
			c.refused("has a summary where a step is asked for, or the other way round: its run had another budget")
	}
	shown := difference(p.recording.thread(wanted.number), c.thread.turns)
	return nil, c.refused("holds no answer to this request; its call " + strconv.Itoa(wanted.number) +
		" is the next one:\n" + shown)
}

func (c *playing) refused(why string) error {
	return &provider.Error{Code: regie.CodeReplayMismatch, Message: "the recording " + c.player.path + " " + why}
}

// Send implements provider.Conversation: what the recording has for this thread. It returns
// CodeReplayMismatch where it has nothing.
func (c *playing) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	found, err := c.find()
	if err != nil {
		return nil, err
	}
	stream := told(found.reply)
	if found.streamed != nil {
		stream = *found.streamed
	}
	for _, d := range stream {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if sink != nil {
			sink(d)
		}
	}
	if found.failed != nil {
		failed := *found.failed
		return nil, &failed
	}
	reply := *found.reply
	reply.Parts = append([]provider.Part(nil), found.reply.Parts...)
	for i := range reply.Parts {
		if c := reply.Parts[i].Call; c != nil { // the ids that were recorded are of no use
			reply.Parts[i].Call = &provider.Call{
				ID:   "call_" + strconv.Itoa(found.number) + "_" + strconv.Itoa(i+1),
				Name: c.Name, Arguments: c.Arguments,
			}
		}
	}
	return &reply, nil
}
