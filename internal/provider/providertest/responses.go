package providertest

import (
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
)

// items numbers the items of Responses: the API takes each number once.
var items atomic.Int64

func responsesStream(s *Scene) (out []string) {
	index, sequence := 0, 0
	event := func(kind string, more fields) {
		more["type"], more["sequence_number"] = kind, sequence
		out = append(out, "event: "+kind+"\ndata: "+object(more)+"\n\n")
		sequence++
	}
	response := fields{
		"id": "resp_1", "object": "response", "created_at": 1795235415, "model": "scripted",
		"store": false, "status": "in_progress",
		"error": nil, "incomplete_details": nil, "output": []any{},
	}
	event("response.created", fields{"response": response})
	item := func(kind string, added, done fields, pieces func(at fields)) {
		id := fmt.Sprintf("%s_%d", map[string]string{"reasoning": "rs", "message": "msg", "function_call": "fc"}[kind],
			items.Add(1))
		for _, it := range []fields{added, done} {
			it["id"], it["type"] = id, kind
		}
		event("response.output_item.added", fields{"output_index": index, "item": added})
		pieces(fields{"item_id": id, "output_index": index})
		event("response.output_item.done", fields{"output_index": index, "item": done})
		index++
	}
	with := func(at, more fields) fields {
		maps.Copy(more, at)
		return more
	}
	if s.Thinking != "" || s.Signature != "" {
		summary := []any{fields{"type": "summary_text", "text": s.Thinking}}
		item("reasoning", fields{"summary": []any{}}, fields{"summary": summary, "encrypted_content": s.Signature},
			func(at fields) {
				event("response.reasoning_summary_text.delta", with(at,
					fields{"summary_index": 0, "delta": s.Thinking}))
				event("response.reasoning_summary_text.done", with(at, fields{"summary_index": 0, "text": s.Thinking}))
			})
	}
	if len(s.Text) > 0 {
		content := []any{fields{"type": "output_text", "annotations": []any{}, "text": strings.Join(s.Text, "")}}
		added := fields{"role": "assistant", "status": "in_progress", "content": []any{}}
		item("message", added, fields{"role": "assistant", "status": "completed", "content": content}, func(at fields) {
			for _, text := range s.Text {
				event("response.output_text.delta",
					with(at, fields{"content_index": 0, "delta": text, "logprobs": []any{}}))
			}
		})
	}
	for _, c := range s.Calls {
		head, rest := halves(c.Arguments)
		call := fields{"call_id": c.ID, "name": c.Name, "status": "in_progress", "arguments": ""}
		item("function_call", call, fields{
			"call_id": c.ID, "name": c.Name, "status": "completed",
			"arguments": c.Arguments,
		}, func(at fields) {
			event("response.function_call_arguments.delta", with(at, fields{"delta": head}))
			event("response.function_call_arguments.delta", with(at, fields{"delta": rest}))
			event("response.function_call_arguments.done", with(at, fields{"arguments": c.Arguments}))
		})
	}
	kind := "completed"
	if s.reason() == "length" {
		kind, response["incomplete_details"] = "incomplete", fields{"reason": "max_output_tokens"}
	}
	response["status"], response["usage"] = kind, fields{
		"input_tokens": s.Input, "input_tokens_details": fields{"cached_tokens": s.CacheRead},
		"output_tokens": s.Output, "output_tokens_details": fields{"reasoning_tokens": 0},
	}
	event("response."+kind, fields{"response": response})
	return out
}

// responsesInBand returns a stream's error: in the failed response if that has begun, else an event
// of its own.
func responsesInBand(s *Scene) string {
	if len(s.Text) > 0 {
		failed := fields{"status": "failed", "error": fields{"code": s.Kind, "message": s.Message}}
		return "event: response.failed\ndata: " + object(fields{"type": "response.failed", "response": failed}) + "\n\n"
	}
	return "event: error\ndata: " + object(fields{
		"type": "error", "code": s.Kind, "message": s.Message, "param": nil,
		"sequence_number": 1,
	}) + "\n\n"
}
