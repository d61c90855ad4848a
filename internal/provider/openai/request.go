package openai

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// conversation is a request body that grows: head and turns, each encoded once.
type conversation struct {
	wire.GrowingBody
	server   *wire.Server
	quirks   quirks // for the model
	model    string
	thinking bool // the model was not told to leave it
	messages int
	tools    bool

	temperature *float64
	last        provider.Role // of the thread, empty before its first message
	// the last message is a user's with its text still open: the next user text continues it
	// (strict); a message with images is closed
	open bool
	loop bool // calls were made since the last message of a person
}

// Fillers for the turns that a strict vendor requires and the thread lacks.
const (
	// Noted is a model's between a result and a person's message.
	Noted = "(noted)"
	// GoOn is a person's message before an unprompted reply.
	GoOn = "(go on)"
)

// begin writes everything before the first turn.
func (c *conversation) begin(vendor quirks, head provider.Head) {
	c.quirks, c.model, c.tools = vendor.of(head.Model), head.Model, len(head.Tools) > 0
	c.thinking = head.ReasoningEffort != "none"
	c.Close = c.end
	c.Add(func(b []byte) []byte { return c.appendHead(b, head) })
	levels := []string{head.Level1, head.Level2}
	if c.quirks.oneSystem && head.Level1 != "" && head.Level2 != "" {
		levels = []string{head.Level1 + "\n\n" + head.Level2}
	}
	for _, level := range levels {
		if level != "" {
			c.add(func(b []byte) []byte {
				b = append(b, `{"role":"system","content":`...)
				b = wire.AppendString(b, level)
				return append(b, '}')
			})
		}
	}
}

// appendHead writes the request up to the messages.
func (c *conversation) appendHead(b []byte, head provider.Head) []byte {
	b = append(b, `{"model":`...)
	b = wire.AppendString(b, head.Model)
	b = append(b, `,"stream":true,`...)
	if !c.quirks.noUsageOption {
		b = append(b, `"stream_options":{"include_usage":true},`...)
	}
	if c.quirks.completionTokens {
		b = append(b, `"max_completion_tokens":`...)
	} else {
		b = append(b, `"max_tokens":`...)
	}
	output := head.MaxOutput
	if c.tools {
		output = max(output, c.quirks.minOutput)
	}
	b = strconv.AppendInt(b, int64(output), 10)
	c.temperature = head.Temperature
	if c.quirks.untempered == nil || !c.quirks.untempered(head.Model) {
		b = wire.AppendNumber(b, "top_p", head.TopP)
	}
	if members := c.quirks.effort(head.Model, head.ReasoningEffort, c.tools); members != "" {
		b = append(append(b, ','), members...)
	}
	if head.ServiceTier != "" {
		b = wire.AppendString(append(b, `,"service_tier":`...), head.ServiceTier)
	}
	if c.tools {
		b = append(b, head.Encoded.Get(Name, func() []byte { return wire.AppendFunctions(head.Tools) })...)
		if c.quirks.parallel == parallelSaid || c.quirks.parallel == parallelIfNot && !head.ParallelCalls {
			b = append(b, `,"parallel_tool_calls":`...)
			b = strconv.AppendBool(b, head.ParallelCalls)
		}
	}
	return append(b, `,"messages":[`...)
}

// Body renders a whole request at once: the bytes that a conversation over the same turns sends to
// a server of a vendor, one of Vendors or empty. It is for tests and for showing a prompt.
func Body(vendor string, head provider.Head, tail provider.Tail, turns ...provider.Turn) []byte {
	c := &conversation{}
	c.begin(quirksOf(vendor), head)
	c.Append(turns...)
	c.EndWith(tail)
	return c.Body()
}

// end returns the end of a request that fits the thread as it is.
func (c *conversation) end() []byte {
	b := make([]byte, 0, len(c.Tail.Guidance)+128)
	if c.Tail.Guidance != "" {
		b = c.user(b, c.Tail.Guidance, c.messages == 0)
	}
	if c.Tail.Guidance != "" || c.open {
		b = append(b, `"}`...)
	}
	b = append(b, ']')
	if c.Tail.Withheld && c.tools {
		b = append(b, `,"tool_choice":"none"`...)
	}
	if c.quirks.untempered == nil || !c.quirks.untempered(c.model) {
		b = wire.AppendTemperature(b, c.temperature, c.Tail, 2)
	}
	return append(b, '}')
}

// user writes text on the user's side without closing it: as a new message, or as the continuation
// of the open one.
func (c *conversation) user(b []byte, text string, first bool) []byte {
	if c.open {
		from := len(b)
		b = wire.AppendString(b, "\n\n"+text)
		copy(b[from:], b[from+1:])
		return b[:len(b)-2]
	}
	if !first {
		b = append(b, ',')
	}
	b = wire.AppendString(append(c.appendNoted(b), `{"role":"user","content":`...), text)
	return b[:len(b)-1]
}

// appendNoted writes the filler that a strict vendor requires before a new message of the user.
func (c *conversation) appendNoted(b []byte) []byte {
	if c.quirks.order == strict && (c.last == provider.RoleTool || c.last == provider.RoleUser) {
		b = append(b, `{"role":"assistant","content":"`+Noted+`"},`...)
	}
	return b
}

// add adds a message, or several.
func (c *conversation) add(message func(b []byte) []byte) {
	first := c.messages == 0
	c.messages++
	c.Add(func(b []byte) []byte {
		if c.open {
			b = append(b, `"}`...)
		}
		if !first {
			b = append(b, ',')
		}
		return message(b)
	})
	c.open = false
}

// Append implements provider.Conversation.
func (c *conversation) Append(turns ...provider.Turn) {
	for i := range turns {
		turn := &turns[i]
		switch turn.Role {
		case provider.RoleTool:
			for j := range turn.Results {
				c.add(func(b []byte) []byte { return c.appendResult(b, &turn.Results[j]) })
			}
		case provider.RoleUser:
			if images := provider.Images(turn.Parts); len(images) > 0 {
				c.appendImages(provider.JoinText(turn.Parts), images)
			} else {
				c.appendUser(provider.JoinText(turn.Parts))
			}
			c.loop = false
		default:
			if c.quirks.order == strict && c.last != provider.RoleUser && c.last != provider.RoleTool {
				c.appendUser(GoOn)
			}
			c.add(func(b []byte) []byte { return c.appendAssistant(b, turn) })
		}
		c.last = turn.Role
	}
}

// appendUser adds text on the user's side. The message stays open for strict vendors only.
func (c *conversation) appendUser(text string) {
	first := c.messages == 0
	c.messages++
	c.Add(func(b []byte) []byte {
		b = c.user(b, text, first)
		if c.quirks.order != strict {
			b = append(b, `"}`...)
		}
		return b
	})
	c.open, c.last = c.quirks.order == strict, provider.RoleUser
}

// appendImages adds a message on the user's side that is a list of text and images.
func (c *conversation) appendImages(text string, images []*provider.Media) {
	c.add(func(b []byte) []byte {
		b = append(c.appendNoted(b), `{"role":"user","content":[{"type":"text","text":`...)
		b = append(wire.AppendString(b, text), '}')
		for _, image := range images {
			b = append(c.AppendDataURL(append(b, `,{"type":"image_url","image_url":{"url":`...), image), `}}`...)
		}
		return append(b, `]}`...)
	})
}

func (c *conversation) appendResult(b []byte, result *provider.Result) []byte {
	b = append(b, `{"role":"tool","tool_call_id":`...)
	b = wire.AppendString(b, c.wireID(result.CallID))
	b = append(b, `,"content":`...)
	b = wire.AppendString(b, result.Content)
	return append(b, '}')
}

// appendAssistant writes a model's own turn. A vendor gets only its own thinking back, and only if
// it wants it.
func (c *conversation) appendAssistant(b []byte, turn *provider.Turn) []byte {
	b = append(b, `{"role":"assistant","content":`...)
	text := provider.JoinText(turn.Parts)
	calls := provider.Calls(turn.Parts)
	c.loop = c.loop || len(calls) > 0
	if text == "" && len(calls) > 0 {
		b = append(b, "null"...)
	} else {
		b = wire.AppendString(b, text)
	}
	b = c.appendThinking(b, turn)
	if len(calls) == 0 {
		return append(b, '}')
	}
	b = wire.AppendList(append(b, `,"tool_calls":`...), calls, func(b []byte, call *provider.Call) []byte {
		b = wire.AppendString(append(b, `{"id":`...), c.wireID(call.ID))
		b = wire.AppendString(append(b, `,"type":"function","function":{"name":`...), call.Name)
		b = wire.AppendString(append(b, `,"arguments":`...), call.Arguments)
		return append(b, "}}"...)
	})
	return append(b, '}')
}

// appendThinking writes the thinking that goes back with a turn.
func (c *conversation) appendThinking(b []byte, turn *provider.Turn) []byte {
	switch {
	case c.quirks.replay == replayLoop && c.loop && c.thinking:
		// The API requires the member even if it is empty, as in a loop that another vendor's model
		// began.
		b = append(b, `,"reasoning_content":`...)
		return wire.AppendString(b, provider.JoinThinking(turn.Parts, c.quirks.vendor))
	case c.quirks.replay == replayDetails:
		for i := range turn.Parts {
			var kept details
			part := &turn.Parts[i]
			if part.Type != regie.PartThinking || part.Provider != c.quirks.vendor ||
				json.Unmarshal(part.Opaque, &kept) != nil {
				continue
			}
			if kept.Model == c.model && len(kept.Details) > 0 {
				b = append(b, `,"reasoning_details":`...)
				return append(b, kept.Details...)
			}
		}
	}
	return b
}

// maxID is how long an id of a call may be: OpenAI's own server refuses longer ones.
const maxID = 40

// wireID returns a call's id for the vendor. An id of another vendor may be too long for OpenAI (a
// thread can change its provider) or not in Mistral's form. Then its hash replaces it, the same at
// the call and its result.
func (c *conversation) wireID(id string) string {
	switch {
	case c.quirks.shortIDs && !isShortID(id):
		sum := sha256.Sum256([]byte(id))
		for i := range shortID {
			sum[i] = alphanumeric[int(sum[i])%len(alphanumeric)]
		}
		return string(sum[:shortID])
	default:
		return wire.ShortID(id, maxID)
	}
}

const (
	shortID      = 9 // characters of an id as Mistral takes it
	alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

func isShortID(id string) bool { return len(id) == shortID && strings.Trim(id, alphanumeric) == "" }
