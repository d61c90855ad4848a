package replay

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Tape writes a recording of any number of providers.
type Tape struct {
	mask func(string) string // replaces keys

	mu        sync.Mutex
	file      *os.File
	size      int
	recording *recording
}

// NewTape records into a new or empty file, or continues a recording. The file holds requests and
// replies, so only its owner may read it. Keys in secrets are masked, except short ones. NewTape
// returns CodeBadRequest if path holds something else.
func NewTape(path string, secrets []string) (*Tape, error) {
	t := &Tape{mask: provider.MaskKeys(secrets...).Replace, recording: &recording{}}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, regie.Errorf(regie.CodeBadRequest, "the recording cannot be read: %v", err)
	}
	if t.size = len(data); t.size > 0 {
		if t.recording, err = parse(data); err != nil {
			return nil, regie.Errorf(regie.CodeBadRequest, "%s cannot be extended without damaging it: %v",
				path, err)
		}
	}
	if t.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the recording cannot be written: %v", err)
	}
	return t, nil
}

// Record returns a provider that passes everything through to inner and writes it down.
func (t *Tape) Record(inner provider.Provider) provider.Provider { return &recorder{inner, t} }

// recorder is a recorded provider.
type recorder struct {
	provider.Provider
	tape *Tape
}

// Open implements provider.Provider.
func (r *recorder) Open(head provider.Head) (provider.Conversation, error) {
	inner, err := r.Provider.Open(head)
	if err != nil {
		return nil, err
	}
	if head.Dialect == "" {
		head.Dialect = regie.DialectNative
	}
	return &recorded{Conversation: inner, tape: r.tape, name: r.Name(), head: head, thread: newThread()}, nil
}

// recorded is a conversation that is written down.
type recorded struct {
	provider.Conversation
	tape   *Tape
	name   string
	head   provider.Head
	tail   provider.Tail
	thread thread
}

// Append implements provider.Conversation.
func (c *recorded) Append(turns ...provider.Turn) {
	c.thread.add(func(text string) string { return maskVarying(c.tape.mask(text)) }, turns...)
	c.Conversation.Append(turns...)
}

// EndWith implements provider.Conversation.
func (c *recorded) EndWith(tail provider.Tail) {
	c.tail = tail
	c.Conversation.EndWith(tail)
}

// Body implements provider.Shower if the recorded provider does.
func (c *recorded) Body() []byte {
	if shower, ok := c.Conversation.(provider.Shower); ok {
		return shower.Body()
	}
	return nil
}

// Send implements provider.Conversation. It does not record a cancelled call: that is no answer.
func (c *recorded) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	reply, err := c.Conversation.Send(ctx, sink)
	done := &call{Provider: c.name, Head: &c.head, Tail: c.tail}
	if err == nil {
		done.Reply = withoutIDs(reply)
	} else if !errors.As(err, &done.Failed) {
		return nil, err
	}
	if err := c.tape.write(&c.thread, done); err != nil {
		return nil, &provider.Error{Code: regie.CodeOf(err), Message: err.Error(), Err: err}
	}
	return reply, err
}

// withoutIDs returns a copy of a reply without the ids of its calls.
func withoutIDs(reply *provider.Reply) *provider.Reply {
	out := *reply
	out.Parts = slices.Clone(reply.Parts)
	for i := range out.Parts {
		if c := out.Parts[i].Call; c != nil {
			out.Parts[i].Call = &provider.Call{Name: c.Name, Arguments: c.Arguments}
		}
	}
	return &out
}

// write writes one call, atomically as far as the system allows. It writes only what the recording
// lacks: the head, and the turns behind a recorded thread.
func (t *Tape) write(asked *thread, done *call) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	done.Number, done.Asked = len(t.recording.calls)+1, asked.turns
	for i, hash := range slices.Backward(asked.hashes) {
		if done.After = t.recording.threads[hash]; done.After > 0 {
			done.Asked = asked.turns[i:]
			break
		}
	}
	if done.HeadOf = t.recording.heads[chainHash(regie.Hash{}, done.Head)]; done.HeadOf > 0 {
		done.Head = nil
	}
	text, err := encode(done)
	if err != nil {
		return regie.Errorf(regie.CodeInternal, "the recording cannot be written: %v", err)
	}
	if text = t.mask(text); t.size == 0 {
		text = header + "\n" + text
	}
	if t.size+len(text) > maxRecording {
		return regie.Errorf(regie.CodeDiskFull, "the recording is full: its limit is %d MiB", maxRecording>>20)
	}
	if _, err = t.file.WriteString(text); err == nil {
		err = t.file.Sync()
	}
	if err != nil {
		return regie.Errorf(regie.CodeDiskFull, "the recording cannot be written: %v", err)
	}
	t.size += len(text)
	t.recording.add(done)
	return nil
}
