package compat

import "github.com/regie-run/regie"

// chatAnswer writes an answer of Chat Completions.
type chatAnswer struct{ *answer }

func newChatAnswer(a *answer) format { return chatAnswer{a} }

func (c chatAnswer) object(kind string, choices ...any) map[string]any {
	if choices == nil {
		choices = []any{}
	}
	return map[string]any{
		"id": "chatcmpl-" + c.round.String(), "object": kind, "created": c.created, "model": c.model,
		"choices": choices,
	}
}

func (c chatAnswer) whole(o *outcome) any {
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	if o.text != "" || len(o.calls) == 0 {
		message["content"] = o.text
	}
	if len(o.calls) > 0 {
		message["tool_calls"] = chatCalls(o, false)
	}
	out := c.object("chat.completion", map[string]any{
		"index": 0, "message": message, "logprobs": nil, "finish_reason": o.finish,
	})
	out["usage"], out["metadata"] = chatUsage(o.usage), c.withSession()
	return out
}

// chunk is a piece of a stream.
func (c chatAnswer) chunk(delta map[string]any, finish any) map[string]any {
	out := c.object("chat.completion.chunk", map[string]any{
		"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish,
	})
	if c.streamUsage {
		out["usage"] = nil
	}
	return out
}

func (c chatAnswer) begin() {
	first := c.chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	first["metadata"] = c.withSession()
	c.out.event("", first)
}

func (c chatAnswer) text(piece string) {
	if piece != "" {
		c.out.event("", c.chunk(map[string]any{"content": piece}, nil))
	}
}

func (c chatAnswer) end(o *outcome) {
	for _, call := range chatCalls(o, true) {
		c.out.event("", c.chunk(map[string]any{"tool_calls": []any{call}}, nil))
	}
	c.out.event("", c.chunk(map[string]any{}, o.finish))
	if c.streamUsage {
		last := c.object("chat.completion.chunk")
		last["usage"] = chatUsage(o.usage)
		c.out.event("", last)
	}
	c.out.write([]byte("data: [DONE]\n\n"))
}

func (c chatAnswer) fail(why *wireError) { c.out.write(why.event(APIChat)) }

// chatCalls are the calls that a client is to run.
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
