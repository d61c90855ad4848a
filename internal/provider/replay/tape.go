package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Tape is a recording that is being made, of any number of providers.
type Tape struct {
	hide *strings.Replacer
	raw  string

	mu     sync.Mutex
	file   *os.File
	size   int
	first  speaker
	calls  int
	texts  map[string]bool
	thread map[regie.Hash]place // of what was recorded
}

// place is a thread in a recording: that of a call, with or without its answer.
type place struct {
	call  int
	again bool
}

// TapeOptions are what a tape is made with.
type TapeOptions struct {
	// Secrets are the keys that must not be in the recording, wherever they come from; short ones
	// are no secrets and are left.
	Secrets []string
	// Raw is a directory for the bytes of each response as they came, as far as they were read;
	// empty keeps none. Of a reply that says a key nothing is kept.
	Raw string
}

// minSecret is how long a key is at least that is looked for, in bytes.
const minSecret = 8

// NewTape records into a new or empty file, or goes on with a recording. The file holds what was
// asked and said, so only its owner may read it. It returns CodeBadRequest where the file is
// something else.
func NewTape(path string, options TapeOptions) (*Tape, error) {
	secrets := slices.Clone(options.Secrets)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // of two that begin alike the longer one
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			pairs = append(pairs, secret, "[the API key]")
		}
	}
	t := &Tape{
		hide: strings.NewReplacer(pairs...), raw: options.Raw, texts: map[string]bool{},
		thread: map[regie.Hash]place{},
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the recording cannot be written: %v", err)
	}
	t.file = f
	if err := t.goOn(path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// goOn reads what the file holds already, and makes the directory of raw responses.
func (t *Tape) goOn(path string) error {
	data, err := io.ReadAll(io.LimitReader(t.file, maxRecording+1))
	if err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the recording cannot be read: %v", err)
	}
	if t.size = len(data); t.size > 0 {
		r, err := parse(data)
		if err != nil {
			return regie.Errorf(regie.CodeBadRequest, "%s cannot be gone on with, and it would be spoiled: %v", path,
				err)
		}
		t.first, t.calls, t.texts = r.first, len(r.calls), r.texts
		for i, link := range r.hashes {
			t.remember(i+1, link)
		}
	}
	if t.raw == "" {
		return nil
	}
	if err := os.MkdirAll(t.raw, 0o700); err != nil {
		return regie.Errorf(regie.CodeBadRequest, "raw responses cannot be kept: %v", err)
	}
	if old, err := filepath.Glob(filepath.Join(t.raw, "call-*")); t.size == 0 && (err != nil || len(old) > 0) {
		return regie.Errorf(regie.CodeBadRequest,
			"%s holds the raw responses of another recording: name another directory", t.raw)
	}
	return nil
}

func (t *Tape) remember(number int, link links) {
	t.thread[link.asked] = place{number, true}
	if !link.answered.IsZero() {
		t.thread[link.answered] = place{number, false}
	}
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
	return &recorded{Conversation: inner, tape: r.tape, name: r.Name(), head: head}, nil
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
	c.thread.add(c.tape.hide.Replace, turns...)
	c.Conversation.Append(turns...)
}

// EndWith implements provider.Conversation.
func (c *recorded) EndWith(tail provider.Tail) {
	c.tail = tail
	c.Conversation.EndWith(tail)
}

// Body implements provider.Shower where what is recorded does.
func (c *recorded) Body() []byte {
	if shower, ok := c.Conversation.(provider.Shower); ok {
		return shower.Body()
	}
	return nil
}

// Send implements provider.Conversation. A call that was cancelled is not written down: that is no
// answer.
func (c *recorded) Send(ctx context.Context, sink func(provider.Delta)) (*provider.Reply, error) {
	var tap *provider.Tap
	if c.tape.raw != "" {
		tap = &provider.Tap{}
		ctx = provider.WithTap(ctx, tap)
	}
	var stream []provider.Delta
	reply, err := c.Conversation.Send(ctx, func(d provider.Delta) {
		if d != (provider.Delta{}) {
			stream = merged(stream, d)
		}
		if sink != nil {
			sink(d)
		}
	})
	done := &call{speaker: c.speaker(), settings: settingsOf(&c.head), withheld: c.tail.Withheld}
	if err == nil {
		if done.reply = c.tape.hidden(reply); !reflect.DeepEqual(withoutIDs(reply), done.reply) {
			tap = nil // what was said holds a key, which a stream can have in pieces: its bytes are not kept
		}
	} else if failed, ok := errors.AsType[*provider.Error](err); ok {
		done.failed = &provider.Error{
			Code: failed.Code, Retryable: failed.Retryable, Offline: failed.Offline, Status: failed.Status,
			Message: c.tape.hide.Replace(failed.Message), Partial: c.tape.hide.Replace(failed.Partial),
			Usage: failed.Usage,
		}
	} else {
		return nil, err
	}
	for i := range stream {
		hidden := provider.Delta{
			Text:     c.tape.hide.Replace(stream[i].Text),
			Thinking: c.tape.hide.Replace(stream[i].Thinking),
		}
		if hidden != stream[i] {
			stream[i], tap = hidden, nil
		}
	}
	if !slices.Equal(stream, told(done.reply)) {
		done.streamed = &stream
	}
	if writing := c.tape.write(c, done, tap); writing != nil {
		return nil, &provider.Error{Code: regie.CodeOf(writing), Message: writing.Error(), Err: writing}
	}
	return reply, err
}

func (c *recorded) speaker() speaker {
	spoken := c.head.Dialect
	if spoken == "" {
		spoken = regie.DialectNative
	}
	return speaker{c.name, c.head.Model, spoken}
}

// hidden is a reply without keys.
func (t *Tape) hidden(reply *provider.Reply) *provider.Reply {
	out := withoutIDs(reply)
	for i := range out.Parts {
		part := &out.Parts[i]
		part.Text = t.hide.Replace(part.Text)
		if len(part.Opaque) > 0 {
			part.Opaque = []byte(t.hide.Replace(string(part.Opaque)))
		}
		if part.Call != nil {
			part.Call.Arguments = t.hide.Replace(part.Call.Arguments)
		}
	}
	out.Sources = slices.Clone(reply.Sources)
	for i := range out.Sources {
		out.Sources[i] = provider.Source{
			Title: t.hide.Replace(out.Sources[i].Title),
			URL:   t.hide.Replace(out.Sources[i].URL),
		}
	}
	return out
}

// withoutIDs is a copy of a reply without what changes from run to run.
func withoutIDs(reply *provider.Reply) *provider.Reply {
	out := *reply
	out.FirstByte, out.Parts = 0, slices.Clone(reply.Parts)
	for i := range out.Parts {
		if c := out.Parts[i].Call; c != nil {
			out.Parts[i].Call = &provider.Call{Name: c.Name, Arguments: c.Arguments}
		}
	}
	return &out
}

// write writes one call, whole or not at all as far as the system does that.
func (t *Tape) write(c *recorded, done *call, tap *provider.Tap) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var w writer
	if t.size == 0 {
		t.first = done.speaker
		w.line(firstLine)
		w.line("provider", quoted(t.first.provider))
		w.line("model", quoted(t.first.model))
		w.line("dialect", quoted(string(t.first.dialect)))
		w.line()
	}
	done.number = t.calls + 1
	for i, text := range []string{c.head.Level1, c.head.Level2, toolsText(c.head.Tools), c.tail.Guidance} {
		if text == "" {
			continue
		}
		text = t.hide.Replace(text)
		done.texts[i] = nameOf(text)
		if name := textKinds[i] + " " + done.texts[i]; !t.texts[name] {
			w.line(name)
			w.text(text)
			w.line()
		}
	}
	known := 0 // turns that stand in the recording already
	for i, hash := range slices.Backward(c.thread.hashes) {
		if at, ok := t.thread[hash]; ok {
			done.base, done.again, known = at.call, at.again, i+1
			break
		}
	}
	done.asked = c.thread.turns[known:]
	w.call(done, t.first)
	if t.size+w.out.Len() > maxRecording {
		return regie.Errorf(regie.CodeDiskFull, "the recording is full: it can have %d MiB", maxRecording>>20)
	}
	if err := t.keep(done.number, tap); err != nil {
		return regie.Errorf(regie.CodeDiskFull, "the raw response cannot be written: %v", err)
	}
	if _, err := t.file.WriteString(w.String()); err != nil {
		return regie.Errorf(regie.CodeDiskFull, "the recording cannot be written: %v", err)
	}
	t.size, t.calls = t.size+w.out.Len(), done.number
	for i, name := range done.texts {
		t.texts[textKinds[i]+" "+name] = name != ""
	}
	link := links{asked: c.thread.hash()}
	if done.reply != nil {
		link.answered = answered(link.asked, done.reply)
	}
	t.remember(done.number, link)
	return t.file.Sync()
}

// keep writes what came over the wire for a call: one file, named by its number, its status where
// that is an error, and its kind.
func (t *Tape) keep(number int, tap *provider.Tap) error {
	if tap == nil || tap.Status == 0 {
		return nil // nothing answered
	}
	name := fmt.Sprintf("call-%04d", number)
	if tap.Status != 200 {
		name += fmt.Sprintf("-%d", tap.Status)
	}
	kind := ".txt"
	for _, known := range [][2]string{
		{"text/event-stream", ".sse"},
		{"application/x-ndjson", ".ndjson"},
		{"application/json", ".json"},
	} {
		if strings.HasPrefix(tap.Kind, known[0]) {
			kind = known[1]
		}
	}
	return os.WriteFile(filepath.Join(t.raw, name+kind), []byte(t.hide.Replace(string(tap.Bytes()))), 0o600)
}
