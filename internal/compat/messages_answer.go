package compat

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// stopReasons are the finish reasons in the words of Messages.
var stopReasons = map[string]string{finishStop: "end_turn", finishLength: "max_tokens", finishTools: "tool_use"}

// countTokens serves POST /v1/messages/count_tokens: for an agent an estimate of the request's
// size, three bytes a token; for a provider's model that provider's count.
func (s *server) countTokens(w http.ResponseWriter, r *http.Request) {
	a, done, err := s.readRequest(w, r, APICount, parseMessages)
	if done {
		return
	}
	if err == nil {
		err = s.checkAgent(r.Context(), a.model)
	}
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	writeJSON(w, map[string]any{"input_tokens": len(a.raw) / 3})
}

// messagesAnswer writes an answer of Messages.
type messagesAnswer struct{ *answer }

func newMessagesAnswer(a *answer) format { return messagesAnswer{a} }

// encodeObject returns the message in the form of the Messages API.
func (m messagesAnswer) encodeObject(content []any, reason any, used regie.Usage) map[string]any {
	return map[string]any{
		"id": messageID(m.round), "type": "message", "role": "assistant", "model": m.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil, "stop_details": nil, "container": nil,
		"usage": messagesUsage(used), "metadata": m.withSession(),
	}
}

func (m messagesAnswer) encodeWhole(o *outcome) any {
	content := []any{}
	if o.text != "" || len(o.calls) == 0 {
		content = append(content, textBlock(o.text))
	}
	for i := range o.calls {
		content = append(content, toolUse(o, &o.calls[i], jsontext.Value(argumentsOf(&o.calls[i]))))
	}
	return m.encodeObject(content, stopReasons[o.finish], o.usage)
}

func (m messagesAnswer) beginStream() {
	m.sendEvent("message_start", map[string]any{"message": m.encodeObject([]any{}, nil, regie.Usage{})})
}

func (m messagesAnswer) streamText(piece string) {
	if !m.open {
		m.sendEvent("content_block_start", map[string]any{"index": 0, "content_block": textBlock("")})
	}
	m.sendEvent("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{
		"type": "text_delta", "text": piece,
	}})
}

func (m messagesAnswer) endStream(o *outcome) {
	index := 0
	if m.open {
		m.sendEvent("content_block_stop", map[string]any{"index": index})
		index++
	}
	for i := range o.calls {
		call := &o.calls[i]
		m.sendEvent("content_block_start", map[string]any{
			"index": index, "content_block": toolUse(o, call, jsontext.Value("{}")),
		})
		m.sendEvent("content_block_delta", map[string]any{
			"index": index, "delta": map[string]any{"type": "input_json_delta", "partial_json": argumentsOf(call)},
		})
		m.sendEvent("content_block_stop", map[string]any{"index": index})
		index++
	}
	m.sendEvent("message_delta", map[string]any{
		"delta": map[string]any{
			"stop_reason": stopReasons[o.finish], "stop_sequence": nil, "stop_details": nil, "container": nil,
		}, "usage": messagesUsage(o.usage),
	})
	m.sendEvent("message_stop", map[string]any{})
}

func (m messagesAnswer) streamError(why *wireError) { m.out.writeEvent(why.toEvent(APIMessages)) }

// sendEvent sends one event, which says its own name too.
func (m messagesAnswer) sendEvent(kind string, v map[string]any) {
	v["type"] = kind
	m.out.sendEvent(kind, v)
}

func textBlock(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

// toolUse returns a call that the client is to run.
func toolUse(o *outcome, call *regie.Call, input jsontext.Value) map[string]any {
	return map[string]any{
		"type": "tool_use", "id": callID(o.session, call.ID), "name": toolName(call), "input": input,
		"caller": map[string]any{"type": "direct"},
	}
}

// messagesUsage converts usage to the form of Messages, which does not count tokens read from or
// written to a cache as input.
func messagesUsage(u regie.Usage) map[string]any {
	return map[string]any{
		"input_tokens": max(0, u.Input-u.CacheRead-u.CacheCreation), "output_tokens": u.Output,
		"cache_creation_input_tokens": u.CacheCreation, "cache_read_input_tokens": u.CacheRead,
	}
}
