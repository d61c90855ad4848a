package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// conversation is a request body that grows: head and turns, each encoded once; the tail is put on only for sending. The hash of
// what is there is kept beside it, so that neither cost grows with the thread (decision 31).
type conversation struct {
	provider *Provider
	body     []byte
	turns    int
	digest   hash.Hash // of body[:hashed]
	hashed   int
	sent     *sentBody // the last request, which the transport may still be reading
}

// sentBody tells when the transport has let go of a request's bytes.
type sentBody struct {
	bytes.Reader
	closed atomic.Bool
}

// Close implements io.Closer; the transport calls it when it no longer reads.
func (b *sentBody) Close() error {
	b.closed.Store(true)
	return nil
}

const tail = "]}"

// begin writes everything before the first turn.
func (c *conversation) begin(head provider.Head) {
	quirks := c.provider.cfg.Quirks
	c.body = append(c.body, `{"model":`...)
	b := c.body
	b = appendString(b, head.Model)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true},`...)
	if quirks.MaxCompletionTokens {
		b = append(b, `"max_completion_tokens":`...)
	} else {
		b = append(b, `"max_tokens":`...)
	}
	b = strconv.AppendInt(b, int64(head.MaxOutput), 10)
	if head.Temperature != nil {
		b = append(b, `,"temperature":`...)
		b = strconv.AppendFloat(b, *head.Temperature, 'g', -1, 64)
	}
	if len(head.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for i, t := range head.Tools {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"type":"function","function":{"name":`...)
			b = appendString(b, t.Name)
			b = append(b, `,"description":`...)
			b = appendString(b, t.Description)
			b = append(b, `,"parameters":`...)
			b = append(b, t.Parameters...)
			b = append(b, "}}"...)
		}
		b = append(b, ']')
		if !quirks.NoParallel {
			b = append(b, `,"parallel_tool_calls":`...)
			b = strconv.AppendBool(b, head.ParallelCalls)
		}
	}
	b = append(b, `,"messages":[`...)
	c.body = b
	for _, level := range []string{head.Level1, head.Level2} {
		if level != "" {
			c.separate()
			c.body = append(c.body, `{"role":"system","content":`...)
			c.body = appendString(c.body, level)
			c.body = append(c.body, '}')
		}
	}
	c.digest = sha256.New()
}

// separate puts a comma between two messages.
func (c *conversation) separate() {
	if c.turns > 0 {
		c.body = append(c.body, ',')
	}
	c.turns++
}

// Append implements provider.Conversation.
func (c *conversation) Append(turns ...provider.Turn) {
	// A server that answers before it has read the request leaves the transport reading: its bytes are not written over.
	if c.sent != nil && !c.sent.closed.Load() {
		c.body = bytes.Clone(c.body)
	}
	c.sent = nil
	for i := range turns {
		turn := &turns[i]
		if turn.Role == provider.RoleTool {
			for j := range turn.Results {
				c.separate()
				c.body = appendResult(c.body, &turn.Results[j])
			}
			continue
		}
		c.separate()
		if turn.Role == provider.RoleUser {
			c.body = appendUser(c.body, turn)
		} else {
			c.body = appendAssistant(c.body, turn, c.provider.cfg.Quirks)
		}
	}
}

// Request implements provider.Conversation.
func (c *conversation) Request() (regie.Hash, int) {
	c.digest.Write(c.body[c.hashed:])
	c.hashed = len(c.body)
	whole := sha256.New()
	if cloner, ok := c.digest.(hash.Cloner); ok {
		if clone, err := cloner.Clone(); err == nil {
			whole = clone
		}
	} else { // the standard library's SHA-256 can be cloned; without it the cost grows with the thread, the result does not change
		whole.Write(c.body)
	}
	whole.Write([]byte(tail))
	var sum regie.Hash
	whole.Sum(sum[:0])
	return sum, len(c.body) + len(tail)
}

// request returns the whole request. Its bytes are those of the conversation: the next Append writes over the tail.
func (c *conversation) request() *sentBody {
	size := len(c.body)
	whole := append(c.body, tail...) //nolint:gocritic // the same buffer, seen with its tail
	c.body = whole[:size]
	c.sent = &sentBody{}
	c.sent.Reset(whole)
	return c.sent
}

func appendUser(b []byte, turn *provider.Turn) []byte {
	b = append(b, `{"role":"user","content":`...)
	b = appendString(b, joined(turn.Parts, regie.PartText))
	return append(b, '}')
}

func appendResult(b []byte, result *provider.Result) []byte {
	b = append(b, `{"role":"tool","tool_call_id":`...)
	b = appendString(b, result.CallID)
	b = append(b, `,"content":`...)
	b = appendString(b, result.Content)
	return append(b, '}')
}

// appendAssistant writes a model's own turn. Thinking goes back only where the vendor wants it, and only its own.
func appendAssistant(b []byte, turn *provider.Turn, quirks *Quirks) []byte {
	b = append(b, `{"role":"assistant","content":`...)
	text := joined(turn.Parts, regie.PartText)
	calls := false
	for i := range turn.Parts {
		calls = calls || turn.Parts[i].Type == regie.PartCall
	}
	if text == "" && calls {
		b = append(b, "null"...)
	} else {
		b = appendString(b, text)
	}
	if quirks.ReasoningBack && calls {
		if thinking := ownThinking(turn.Parts); thinking != "" {
			b = append(b, `,"reasoning_content":`...)
			b = appendString(b, thinking)
		}
	}
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
		b = appendString(b, call.ID)
		b = append(b, `,"type":"function","function":{"name":`...)
		b = appendString(b, call.Name)
		b = append(b, `,"arguments":`...)
		b = appendString(b, call.Arguments)
		b = append(b, "}}"...)
	}
	return append(b, "]}"...)
}

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

func ownThinking(parts []provider.Part) string {
	var text strings.Builder
	for i := range parts {
		if parts[i].Type == regie.PartThinking && parts[i].Provider == Name {
			text.WriteString(parts[i].Text)
		}
	}
	return text.String()
}

// appendString writes a JSON string. Plain ASCII, which is nearly everything, is copied as it is.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendEscaped(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	data, err := json.Marshal(s)
	if err != nil { // a string always encodes
		return append(b, `""`...)
	}
	return append(b, data...)
}
