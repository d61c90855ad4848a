package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// conversation is a request body that grows: head and turns, each encoded once; the tail is put on
// only for sending. The hash of what is there is kept beside it, so that neither cost grows with
// the thread (decision 31).
type conversation struct {
	provider *Provider
	quirks   quirks // for the model
	model    string
	thinking bool // the model was not told to leave it
	body     wire.Text
	turns    int
	digest   wire.Digest
	ends     provider.Tail
	tail     []byte // the end of a request: ends, encoded, behind the thread as it is
	tools    bool

	last provider.Role // of the thread, empty before its first message
	// the last message is a user's whose text is not closed: the next one of that side goes on with
	// it (strict)
	open bool
	loop bool // calls were made since the last message of a person
}

var plainTail = []byte("]}") // never written to

// The words that stand where a strict vendor wants the other side to have spoken and it has not.
const (
	// Noted is a model's between a result and a person's message.
	Noted = "(noted)"
	// GoOn is a person's before a reply that nobody asked for.
	GoOn = "(go on)"
)

// begin writes everything before the first turn.
func (c *conversation) begin(vendor quirks, head provider.Head) {
	c.quirks, c.model, c.tools = vendor.of(head.Model), head.Model, len(head.Tools) > 0
	c.thinking = head.ReasoningEffort != "none"
	c.body.Add(func(b []byte) []byte { return c.appendHead(b, head) })
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
	c.close()
}

// appendHead writes what stands before the messages.
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
	if head.Temperature != nil && (c.quirks.untempered == nil || !c.quirks.untempered(head.Model)) {
		b = append(b, `,"temperature":`...)
		b = strconv.AppendFloat(b, *head.Temperature, 'g', -1, 64)
	}
	if members := c.quirks.effort(head.Model, head.ReasoningEffort, c.tools); members != "" {
		b = append(append(b, ','), members...)
	}
	if head.ServiceTier != "" {
		b = wire.AppendString(append(b, `,"service_tier":`...), head.ServiceTier)
	}
	if c.tools {
		b = append(b, head.Encoded.Get(Name, func() []byte { return wire.AppendFunctions(nil, head.Tools) })...)
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

// EndWith implements provider.Conversation.
func (c *conversation) EndWith(tail provider.Tail) {
	if tail == c.ends {
		return
	}
	c.ends = tail
	c.close()
}

// close makes the end of a request that fits the thread as it is. Its bytes are new ones: the
// transport may still be reading the old.
func (c *conversation) close() {
	if c.ends == (provider.Tail{}) && !c.open {
		c.tail = plainTail
		return
	}
	b := make([]byte, 0, len(c.ends.Guidance)+128)
	if guidance := c.ends.Guidance; guidance != "" {
		b = c.user(b, guidance, c.turns == 0)
		b = append(b, `"}`...)
	} else if c.open {
		b = append(b, `"}`...)
	}
	b = append(b, ']')
	if c.ends.Withheld && c.tools {
		b = append(b, `,"tool_choice":"none"`...)
	}
	b = append(b, '}')
	c.tail = b
}

// user writes what is said on the user's side, up to the end of its text: as a message, or behind
// the one that is open.
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
	if c.quirks.order == strict && c.last == provider.RoleTool {
		b = append(b, `{"role":"assistant","content":"`+Noted+`"},`...)
	}
	b = wire.AppendString(append(b, `{"role":"user","content":`...), text)
	return b[:len(b)-1]
}

// add adds a message, or several.
func (c *conversation) add(message func(b []byte) []byte) {
	first := c.turns == 0
	c.turns++
	c.body.Add(func(b []byte) []byte {
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
			c.appendUser(joined(turn.Parts, regie.PartText))
			c.loop = false
		default:
			if c.quirks.order == strict && c.last != provider.RoleUser && c.last != provider.RoleTool {
				c.appendUser(GoOn)
			}
			c.add(func(b []byte) []byte { return c.appendAssistant(b, turn) })
		}
		c.last = turn.Role
	}
	c.close()
}

// appendUser adds what is said on the user's side. Only a strict vendor has it stay open.
func (c *conversation) appendUser(text string) {
	first := c.turns == 0
	c.turns++
	c.body.Add(func(b []byte) []byte {
		b = c.user(b, text, first)
		if c.quirks.order != strict {
			b = append(b, `"}`...)
		}
		return b
	})
	c.open, c.last = c.quirks.order == strict, provider.RoleUser
}

// Request implements provider.Conversation.
func (c *conversation) Request() (regie.Hash, int) { return c.digest.Sum(nil, c.body.All(), c.tail) }

// Body implements provider.Shower.
func (c *conversation) Body() []byte { return slices.Concat(append(c.body.All(), c.tail)...) }

// request returns the whole request. Its bytes are those of the conversation: what is appended
// later stands behind them, and another tail has bytes of its own.
func (c *conversation) request() *wire.Body { return wire.NewBody(append(c.body.All(), c.tail)...) }

func (c *conversation) appendResult(b []byte, result *provider.Result) []byte {
	b = append(b, `{"role":"tool","tool_call_id":`...)
	b = wire.AppendString(b, c.wireID(result.CallID))
	b = append(b, `,"content":`...)
	b = wire.AppendString(b, result.Content)
	return append(b, '}')
}

// appendAssistant writes a model's own turn. Thinking goes back only where the vendor wants it, and
// only its own.
func (c *conversation) appendAssistant(b []byte, turn *provider.Turn) []byte {
	b = append(b, `{"role":"assistant","content":`...)
	text := joined(turn.Parts, regie.PartText)
	calls := slices.ContainsFunc(turn.Parts, func(p provider.Part) bool { return p.Type == regie.PartCall })
	c.loop = c.loop || calls
	if text == "" && calls {
		b = append(b, "null"...)
	} else {
		b = wire.AppendString(b, text)
	}
	b = c.appendThinking(b, turn)
	if !calls {
		return append(b, '}')
	}
	b = append(b, `,"tool_calls":[`...)
	first := true
	for i := range turn.Parts {
		call := turn.Parts[i].Call
		if turn.Parts[i].Type != regie.PartCall {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, `{"id":`...)
		b = wire.AppendString(b, c.wireID(call.ID))
		b = append(b, `,"type":"function","function":{"name":`...)
		b = wire.AppendString(b, call.Name)
		b = append(b, `,"arguments":`...)
		b = wire.AppendString(b, call.Arguments)
		b = append(b, "}}"...)
	}
	return append(b, "]}"...)
}

// appendThinking writes what goes back of a turn's thinking.
func (c *conversation) appendThinking(b []byte, turn *provider.Turn) []byte {
	switch {
	case c.quirks.replay == replayLoop && c.loop && c.thinking:
		// Also where there is none, as in a loop that another vendor's model began: the member is
		// asked for, not what it says.
		b = append(b, `,"reasoning_content":`...)
		return wire.AppendString(b, c.ownThinking(turn.Parts))
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

// wireID is a call's id as it goes out. Other vendors' ids may be longer than OpenAI takes (a
// thread can change its provider), and few are like Mistral's: such a one becomes a hash of itself,
// the same at the call and at its result.
func (c *conversation) wireID(id string) string {
	switch {
	case c.quirks.shortIDs && !isShortID(id):
		sum := sha256.Sum256([]byte(id))
		for i := range shortID {
			sum[i] = alphanumeric[int(sum[i])%len(alphanumeric)]
		}
		return string(sum[:shortID])
	case len(id) > maxID:
		sum := sha256.Sum256([]byte(id))
		return "call_" + hex.EncodeToString(sum[:16])
	default:
		return id
	}
}

const (
	shortID      = 9 // characters of an id as Mistral takes it
	alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

func isShortID(id string) bool { return len(id) == shortID && strings.Trim(id, alphanumeric) == "" }

func joined(parts []provider.Part, kind regie.PartType) string {
	switch {
	case len(parts) == 1 && parts[0].Type == kind:
		return parts[0].Text
	case len(parts) == 0:
		return ""
	}
	var text strings.Builder
	for i := range parts {
		if parts[i].Type == kind {
			text.WriteString(parts[i].Text)
		}
	}
	return text.String()
}

func (c *conversation) ownThinking(parts []provider.Part) string {
	var text strings.Builder
	for i := range parts {
		if parts[i].Type == regie.PartThinking && parts[i].Provider == c.quirks.vendor {
			text.WriteString(parts[i].Text)
		}
	}
	return text.String()
}
