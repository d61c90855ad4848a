package compat

import "github.com/regie-run/regie"

// chatAnswer writes an answer of Chat Completions.
type chatAnswer struct{ *answer }

func newChatAnswer(a *answer) format { return chatAnswer{a} }

func (c chatAnswer) encodeObject(kind string, choices ...any) map[string]any {
	if choices == nil {
		choices = []any{}
	}
	return map[string]any{
		"id": "chatcmpl-" + c.round.String(), "object": kind, "created": c.created, "model": c.model,
		"choices": choices,
	}
}

func (c chatAnswer) encodeWhole(o *outcome) any {
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	if o.text != "" || len(o.calls) == 0 {
		message["content"] = o.text
	}
	if len(o.calls) > 0 {
		message["tool_calls"] = chatCalls(o, false)
	}
	out := c.encodeObject("chat.completion", map[string]any{
		"index": 0, "message": message, "logprobs": nil, "finish_reason": o.finish,
	})
	out["usage"], out["metadata"] = chatUsage(o.usage), c.withSession()
	return out
}

// encodeChunk returns a piece of a stream.
func (c chatAnswer) encodeChunk(delta map[string]any, finish any) map[string]any {
	out := c.encodeObject("chat.completion.chunk", map[string]any{
		"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish,
	})
	if c.streamUsage {
		out["usage"] = nil
	}
	return out
}

func (c chatAnswer) beginStream() {
	first := c.encodeChunk(map[string]any{"role": "assistant", "content": ""}, nil)
	first["metadata"] = c.withSession()
	c.out.sendEvent("", first)
}

func (c chatAnswer) streamText(piece string) {
	if piece != "" {
		c.out.sendEvent("", c.encodeChunk(map[string]any{"content": piece}, nil))
	}
}

func (c chatAnswer) endStream(o *outcome) {
	for _, call := range chatCalls(o, true) {
		c.out.sendEvent("", c.encodeChunk(map[string]any{"tool_calls": []any{call}}, nil))
	}
	c.out.sendEvent("", c.encodeChunk(map[string]any{}, o.finish))
	if c.streamUsage {
		last := c.encodeObject("chat.completion.chunk")
		last["usage"] = chatUsage(o.usage)
		c.out.sendEvent("", last)
	}
	c.out.writeEvent([]byte("data: [DONE]\n\n"))
}

func (c chatAnswer) streamError(why *wireError) { c.out.writeEvent(why.toEvent(APIChat)) }

// chatCalls returns the calls that a client is to run.
func chatCalls(o *outcome, indexed bool) []map[string]any {
	out := []map[string]any{}
	for i := range o.calls {
		call := &o.calls[i]
		line := map[string]any{
			"id": callID(o.session, call.ID), "type": "function",
			"function": map[string]any{"name": toolName(call), "arguments": argumentsOf(call)},
		}
		if indexed {
			line["index"] = i
		}
		out = append(out, line)
	}
	return out
}

func chatUsage(u regie.Usage) map[string]any {
	return map[string]any{
		"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.CacheRead},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
	}
}
