package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Bounds of one reply (spec 11.3).
const (
	maxReply = 16 << 20 // bytes of text, thinking and arguments together
	maxCalls = 10_000
)

// Collector puts a reply together from the pieces of a stream. It is used by one goroutine.
type Collector struct {
	// Name is the provider's name on thinking parts.
	Name string
	// Sink receives each delta; may be nil.
	Sink func(provider.Delta)
	// Parts are the parts so far, in order.
	Parts []*Part
	// Finish is the vendor's finish reason, "" before it came.
	Finish string
	// Cut says that the reply ended before its end, at a limit of its length or at a filter: a call
	// without arguments may have been about to get some.
	Cut bool
	// HeldBack says that it was a filter.
	HeldBack bool
	Usage    regie.Usage

	size, calls int
	anything    bool
	first       time.Duration
}

// Part is a part of a reply that still grows. It is kept by pointer: a strings.Builder must not be
// copied.
type Part struct {
	Kind     regie.PartType
	ID, Name string          // of a call
	Opaque   json.RawMessage // what the vendor wants back with the part
	text     strings.Builder // text, thinking, or arguments
}

// Text returns the text of the part so far.
func (p *Part) Text() string { return p.text.String() }

// Open begins a part of text or thinking.
func (c *Collector) Open(kind regie.PartType) *Part {
	part := &Part{Kind: kind}
	c.Parts = append(c.Parts, part)
	return part
}

// Add adds to a part of text or thinking. The error is CodeReplyTooLarge.
func (c *Collector) Add(part *Part, text string) error {
	if text == "" {
		return nil
	}
	if err := c.Grow(len(text)); err != nil {
		return err
	}
	part.text.WriteString(text)
	switch {
	case c.Sink == nil:
	case part.Kind == regie.PartThinking:
		c.Sink(provider.Delta{Thinking: text})
	default:
		c.Sink(provider.Delta{Text: text})
	}
	return nil
}

// AddText appends to the last part if that has this kind and nothing opaque, else to a new part.
// The error is CodeReplyTooLarge.
func (c *Collector) AddText(kind regie.PartType, text string) error {
	if text == "" {
		return nil
	}
	if n := len(c.Parts); n == 0 || c.Parts[n-1].Kind != kind || c.Parts[n-1].Opaque != nil {
		c.Open(kind)
	}
	return c.Add(c.Parts[len(c.Parts)-1], text)
}

// OpenCall begins a call. The error is CodeReplyTooLarge.
func (c *Collector) OpenCall() (*Part, error) {
	if c.calls++; c.calls > maxCalls {
		return nil, &provider.Error{
			Code:    regie.CodeReplyTooLarge,
			Message: "the model made more than 10,000 calls in one reply",
		}
	}
	return c.Open(regie.PartCall), nil
}

// AddCall adds pieces to a call; empty fields are absent. The error is CodeReplyTooLarge.
func (c *Collector) AddCall(part *Part, id, name, arguments string) error {
	if id != "" {
		part.ID = id
	}
	if part.Name == "" {
		part.Name = name
	}
	part.text.WriteString(arguments)
	if c.Sink != nil {
		c.Sink(provider.Delta{})
	}
	return c.Grow(len(id) + len(name) + len(arguments))
}

// Keep sets what the vendor wants back with a part of text or thinking. The error is
// CodeReplyTooLarge.
func (c *Collector) Keep(part *Part, opaque json.RawMessage) error {
	part.Opaque = opaque
	return c.Grow(len(opaque))
}

// Grow counts n bytes of a reply. The error is CodeReplyTooLarge.
func (c *Collector) Grow(n int) error {
	c.anything = true
	if c.size += n; c.size > maxReply {
		return &provider.Error{
			Code:    regie.CodeReplyTooLarge,
			Message: "the model's reply passed the bound of 16 MiB and was cut off",
		}
	}
	return nil
}

// Touch notes the time of the first piece; it is called after each event.
func (c *Collector) Touch(stream *Stream) {
	if c.first == 0 && c.anything {
		c.first = stream.Since()
	}
}

// Failed keeps with an error what had arrived, for the audit (decision 28).
func (c *Collector) Failed(err error) error {
	if cut, is := errors.AsType[*provider.Cut](err); is {
		cut.Usage, cut.Received = c.Usage, c.size
	}
	var failed *provider.Error
	if !errors.As(err, &failed) {
		return err
	}
	var partial strings.Builder
	for _, part := range c.Parts {
		if part.Kind == regie.PartText {
			partial.WriteString(part.Text())
		}
	}
	failed.Partial = Clip(Safe(partial.String()), 64<<10)
	failed.Usage, failed.Received = c.Usage, c.size
	return failed
}

// Reply returns the whole reply, once the stream has ended in good order. The error is
// CodeEmptyReply or CodeBadReply.
func (c *Collector) Reply() (*provider.Reply, error) {
	out := &provider.Reply{
		StopReason: Safe(c.Finish), Cut: c.Cut, HeldBack: c.HeldBack,
		Usage: c.Usage, FirstByte: c.first,
	}
	visible := false
	for _, from := range c.Parts {
		if from.Kind != regie.PartCall {
			part := provider.Part{Type: from.Kind, Text: Safe(from.Text())}
			if from.Kind == regie.PartThinking || from.Opaque != nil {
				part.Provider, part.Opaque = c.Name, from.Opaque
			}
			switch {
			case from.Kind == regie.PartThinking:
			case part.Text == "" && from.Opaque == nil:
				continue
			case strings.TrimSpace(part.Text) != "":
				visible = true
			}
			out.Parts = append(out.Parts, part)
			continue
		}
		arguments, err := c.whole(from)
		if err != nil {
			return nil, c.Failed(err)
		}
		visible = true
		part := provider.Part{Type: regie.PartCall, Call: &provider.Call{
			ID:   Safe(from.ID),
			Name: Safe(from.Name), Arguments: arguments,
		}}
		if from.Opaque != nil {
			part.Provider, part.Opaque = c.Name, from.Opaque
		}
		out.Parts = append(out.Parts, part)
	}
	if !visible {
		message := "the model sent an empty reply"
		switch {
		case c.HeldBack:
			message = "the model's server held its whole reply back (" + Clip(Safe(c.Finish), 60) + ")"
		case c.Cut:
			message = "the model thought until its reply reached the limit of its length, and answered nothing"
		}
		return nil, c.Failed(&provider.Error{Code: regie.CodeEmptyReply, Retryable: true, Message: message})
	}
	return out, nil
}

// whole checks that a call is complete: cut arguments, or ones that are no object, never reach a
// tool (spec 12.6, trap 1). The pipeline checks them against the schema.
func (c *Collector) whole(part *Part) (string, error) {
	text := strings.TrimSpace(part.Text())
	switch {
	case text == "" && c.Cut:
		return "", Broken("the model's reply reached the limit of its length in the middle of a call of %s",
			Clip(part.Name, 80))
	case text == "": // zero arguments stream as nothing (spec 12.6, trap 3)
		return "{}", nil
	case text[0] != '{' || !json.Valid([]byte(text)):
		return "", Broken("the model sent a call of %s whose arguments are not a whole JSON object",
			Clip(part.Name, 80))
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// ArgumentText returns a piece of arguments, whether it came as a string or as the object itself.
func ArgumentText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if raw[0] != '"' {
		return string(raw)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}
