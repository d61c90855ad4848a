package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Player is a provider that answers from a recording.
type Player struct {
	path    string
	dialect regie.Dialect // of the first call
	images  bool          // the recorded model took images

	recording *recording

	mu   sync.Mutex
	left []*call // what was not played
}

// Open reads a recording. It returns CodeReplayMismatch with the bad line if the file is not a
// recording.
func Open(path string) (*Player, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, mismatch("the recording cannot be read: %v", err)
	}
	r, err := parse(data)
	if err != nil {
		return nil, mismatch("the recording %s cannot be used: %v", path, err)
	}
	images := slices.ContainsFunc(r.calls, func(c *call) bool {
		n, _ := provider.CountImages(c.Asked)
		return n > 0
	})
	return &Player{
		path: path, dialect: r.calls[0].Head.Dialect, images: images, recording: r, left: slices.Clone(r.calls),
	}, nil
}

// Silent returns a player without answers: it writes requests as the one of a recording does, and
// sending one returns CodeReplayMismatch.
func Silent() *Player {
	return &Player{dialect: regie.DialectNative}
}

// Name implements provider.Provider.
func (p *Player) Name() string { return "replay" }

// Capabilities implements provider.Provider: the model speaks the dialect of the recording, and
// takes images if the recording holds some.
func (p *Player) Capabilities(string) provider.Capabilities {
	return provider.Capabilities{NativeTools: p.dialect == regie.DialectNative, Images: p.images, Free: true}
}

// Open implements provider.Provider.
func (p *Player) Open(head provider.Head) (provider.Conversation, error) {
	return &playing{player: p, dialect: head.Dialect, thread: newThread()}, nil
}

// playing is a conversation that a Player answers.
type playing struct {
	player  *Player
	dialect regie.Dialect
	turns   []provider.Turn
	thread  thread
}

// Append implements provider.Conversation.
func (c *playing) Append(turns ...provider.Turn) {
	c.turns = append(c.turns, turns...)
	c.thread.add(maskVarying, turns...)
}

// EndWith implements provider.Conversation. It ignores the tail: a recording finds its answer by
// the thread.
func (c *playing) EndWith(provider.Tail) {}

// Request implements provider.Conversation: the hash of a canonical rendering, since nothing is
// sent. If the recording's next call is a summary, it reports a size over any budget, as the prompt
// was then.
func (c *playing) Request() (regie.Hash, int) {
	data := c.Body()
	images, _ := provider.CountImages(c.turns)
	size := len(data) + images*provider.ImageWeight
	c.player.mu.Lock()
	defer c.player.mu.Unlock()
	if left := c.player.left; len(left) > 0 && provider.AsksSummary(left[0].Asked) &&
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
	if err != nil { // opaque data of another provider that is not JSON
		data = []byte(err.Error())
	}
	return data
}

// takeCall takes the first unplayed call with this thread. It returns CodeReplayMismatch if there
// is no such call.
func (c *playing) takeCall() (*call, error) {
	p := c.player
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.left) == 0 {
		return nil, c.refuse("has no further answer: the run takes another way than the recorded one")
	}
	for i, found := range p.left {
		if found.thread != c.thread.hash() {
			continue
		}
		if recorded := found.Head.Dialect; c.dialect != "" && c.dialect != recorded {
			return nil, c.refuse("has this in the dialect %s, and it is asked for in %s: leave the dialect out",
				recorded, c.dialect)
		}
		p.left = slices.Delete(p.left, i, i+1)
		return found, nil
	}
	wanted := p.left[0]
	return nil, c.refuse("holds no answer to this request; its call %d is the next one:\n%s", wanted.Number,
		diffTurns(p.recording.turns(wanted), c.thread.turns))
}

func (c *playing) refuse(why string, values ...any) error {
	return &provider.Error{
		Code:    regie.CodeReplayMismatch,
		Message: "the recording " + c.player.path + " " + fmt.Sprintf(why, values...),
	}
}

// Send implements provider.Conversation: it returns the recorded reply for this thread, or
// CodeReplayMismatch without one.
func (c *playing) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	found, err := c.takeCall()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	stream := func(d provider.Delta) {
		if sink != nil && d != (provider.Delta{}) {
			sink(d)
		}
	}
	if found.Failed != nil {
		stream(provider.Delta{Text: found.Failed.Partial})
		failed := *found.Failed
		return nil, &failed
	}
	reply := withoutIDs(found.Reply)
	for i, part := range reply.Parts {
		switch part.Type {
		case regie.PartText:
			stream(provider.Delta{Text: part.Text})
		case regie.PartThinking:
			stream(provider.Delta{Thinking: part.Text})
		case regie.PartCall:
			part.Call.ID = fmt.Sprintf("call_%d_%d", found.Number, i+1)
		}
	}
	return reply, nil
}
