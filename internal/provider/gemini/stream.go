package gemini

import (
	"encoding/json"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// chunk is what we read of one streamed response.
type chunk struct {
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts []piece `json:"parts"`
		} `json:"content"`
		FinishReason string `json:"finishReason"`
	} `json:"candidates"`
	Feedback *struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage json.RawMessage `json:"usageMetadata"`
	Error json.RawMessage `json:"error"`
}

// piece is a part as it comes. New kinds may come at any time and are passed over.
type piece struct {
	Text      *string `json:"text"`
	Thought   bool    `json:"thought"`
	Signature string  `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"` // older models give none: the engine gives one
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// usage is cumulative: the last one counts for the whole reply. The candidates' tokens leave out
// the thinking, which costs the same.
type usage struct {
	Prompt     int64 `json:"promptTokenCount"` // what was cached is a part of it
	ToolPrompt int64 `json:"toolUsePromptTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
}

// collector puts a reply together from its chunks.
type collector struct {
	wire.Collector
	server *wire.Server
	names  map[string]string // of the declared tools, by the name that the API took
}

func newCollector(server *wire.Server, names map[string]string, sink func(provider.Delta)) *collector {
	return &collector{Collector: wire.Collector{Name: Name, Sink: sink}, server: server, names: names}
}

// add takes one chunk. The error is an *provider.Error.
func (c *collector) add(data []byte) error {
	var ch chunk
	if err := jsonv2.Unmarshal(data, &ch, wire.Lenient); err != nil {
		return wire.Broken("the server sent something that is no JSON: %v", err)
	}
	if wire.Said(ch.Error) {
		return c.server.InBand(data)
	}
	if u := (usage{}); wire.Claimed(ch.Usage, &u) {
		c.Usage = regie.Usage{
			Input:     wire.Tokens(u.Prompt) + wire.Tokens(u.ToolPrompt),
			Output:    wire.Tokens(u.Candidates) + wire.Tokens(u.Thoughts),
			CacheRead: wire.Tokens(u.Cached), Reasoning: wire.Tokens(u.Thoughts),
		}
	}
	if ch.Feedback != nil && blocked(ch.Feedback.BlockReason) {
		return &provider.Error{
			Code: regie.CodeProviderRejected, Message: "Gemini refused the prompt (" +
				wire.Clip(wire.Safe(ch.Feedback.BlockReason), 60) + "): say it in other words",
		}
	}
	for i := range ch.Candidates {
		candidate := &ch.Candidates[i]
		if candidate.Index != 0 {
			continue // one was asked for
		}
		for j := range candidate.Content.Parts {
			if err := c.piece(&candidate.Content.Parts[j]); err != nil {
				return err
			}
		}
		if candidate.FinishReason != "" {
			c.Finish = candidate.FinishReason
			c.HeldBack = held(c.Finish)
			c.Cut = c.Finish == "MAX_TOKENS" || c.HeldBack
		}
	}
	return nil
}

func blocked(reason string) bool { return reason != "" && reason != "BLOCK_REASON_UNSPECIFIED" }

// held reports whether a reply ended because a filter held the rest back.
func held(reason string) bool {
	switch reason {
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
		return true
	default:
		return false
	}
}

// piece takes a part. A signed part stays separate: the signature must go back on the same part
// (spec 12.6, trap 5).
func (c *collector) piece(p *piece) error {
	switch {
	case p.Call != nil:
		part, err := c.OpenCall()
		if err != nil {
			return err
		}
		part.Opaque = opaque(p.Signature)
		return c.AddCall(part, p.Call.ID, c.toolName(p.Call.Name), wire.ArgumentText(p.Call.Args))
	case p.Thought && p.Text != nil:
		return c.AddText(regie.PartThinking, *p.Text)
	case p.Signature != "":
		part := c.Open(regie.PartText)
		part.Opaque = opaque(p.Signature)
		if p.Text == nil {
			return nil
		}
		return c.Add(part, *p.Text)
	case p.Text != nil:
		return c.AddText(regie.PartText, *p.Text)
	default:
		return nil
	}
}

func opaque(signature string) json.RawMessage {
	if signature == "" {
		return nil
	}
	return wire.Opaque(signed{signature})
}

// toolName returns the tool for a function name. Models sometimes prefix it with a module that does
// not exist.
func (c *collector) toolName(name string) string {
	for _, candidate := range []string{
		name, strings.TrimPrefix(name, "default_api."),
		strings.TrimPrefix(name, "default_api:"),
	} {
		if tool, ok := c.names[candidate]; ok {
			return tool
		}
	}
	return name // the pipeline says which ones there are
}

// end judges a stream that has ended in good order: without a reason for the end it is cut (spec
// 12.6, trap 1), and with some there is no reply.
func (c *collector) end() (*provider.Reply, error) {
	switch c.Finish {
	case "":
		return nil, c.Failed(wire.Truncated())
	case "STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED":
	default:
		if held(c.Finish) {
			break
		}
		// the model wrote an invalid call, or too many, or gave up: a retry may do better
		return nil, c.Failed(wire.Broken("the model gave no usable reply (%s)", wire.Clip(c.Finish, 300)))
	}
	reply, err := c.Reply()
	if provider.CodeOf(err) == regie.CodeEmptyReply && held(c.Finish) { // to ask again changes nothing
		return nil, c.Failed(&provider.Error{
			Code:    regie.CodeProviderRejected,
			Message: "Gemini held its reply back (" + c.Finish + "): say it in other words",
		})
	}
	return reply, err
}
