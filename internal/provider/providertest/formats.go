package providertest

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
)

// The wire formats as real servers write them: Chat Completions and the native API as recorded,
// Messages as documented. Responses has a file of its own.

type fields = map[string]any

// reason is the end of a scene in the words of Chat Completions.
func (s *Scene) reason() string {
	switch {
	case s.Reason != "":
		return s.Reason
	case len(s.Calls) > 0:
		return "tool_calls"
	default:
		return "stop"
	}
}

func chatChunk(delta fields, reason any) string {
	return "data: " + object(fields{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1795235407, "model": "scripted",
		"choices": []any{fields{"index": 0, "delta": delta, "finish_reason": reason}},
	}) + "\n\n"
}

func chatStream(s *Scene) (out []string) {
	if s.Thinking != "" {
		out = append(out, chatChunk(fields{"role": "assistant", "content": "", "reasoning": s.Thinking}, nil))
	}
	for _, text := range s.Text {
		out = append(out, chatChunk(fields{"role": "assistant", "content": text}, nil))
	}
	for i, c := range s.Calls {
		head, rest := halves(c.Arguments)
		out = append(out,
			chatChunk(fields{"tool_calls": []any{fields{
				"index": i, "id": c.ID, "type": "function",
				"function": fields{"name": c.Name, "arguments": head},
			}}}, nil),
			chatChunk(fields{"tool_calls": []any{fields{"index": i, "function": fields{"arguments": rest}}}}, nil))
	}
	return append(out, chatChunk(fields{}, s.reason())+"data: "+object(fields{"choices": []any{}, "usage": fields{
		"prompt_tokens": s.Input, "completion_tokens": s.Output,
		"prompt_tokens_details": fields{"cached_tokens": s.CacheRead},
	}})+"\n\ndata: [DONE]\n\n")
}

// halves cuts arguments in two, as streams do.
func halves(arguments string) (head, rest string) {
	return arguments[:len(arguments)/2], arguments[len(arguments)/2:]
}

func chatFailure(s *Scene) string {
	return object(fields{"error": fields{"message": s.Message, "type": s.Kind, "code": nil}})
}

func chatModels(w http.ResponseWriter, r *http.Request, names []string) bool {
	if r.URL.Path != "/v1/models" {
		return false
	}
	data := []any{}
	for _, name := range names {
		data = append(data, fields{"id": name, "object": "model", "owned_by": "test"})
	}
	return answer(w, fields{"object": "list", "data": data})
}

func answer(w http.ResponseWriter, v any) bool {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
	return true
}

func messagesEvent(kind string, more fields) string {
	more["type"] = kind
	return "event: " + kind + "\ndata: " + object(more) + "\n\n"
}

func messagesStream(s *Scene) (out []string) {
	out = append(out, messagesEvent("message_start", fields{"message": fields{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted",
		"content": []any{}, "stop_reason": nil,
		"usage": fields{
			"input_tokens": s.Input - s.CacheRead, "cache_creation_input_tokens": 0,
			"cache_read_input_tokens": s.CacheRead, "output_tokens": 1,
		},
	}}), messagesEvent("ping", fields{}))
	index := 0
	block := func(start fields, deltas ...fields) {
		out = append(out, messagesEvent("content_block_start", fields{"index": index, "content_block": start}))
		for _, delta := range deltas {
			out = append(out, messagesEvent("content_block_delta", fields{"index": index, "delta": delta}))
		}
		out = append(out, messagesEvent("content_block_stop", fields{"index": index}))
		index++
	}
	if s.Thinking != "" || s.Signature != "" {
		deltas := []fields{}
		if s.Thinking != "" {
			deltas = append(deltas, fields{"type": "thinking_delta", "thinking": s.Thinking})
		}
		if s.Signature != "" {
			deltas = append(deltas, fields{"type": "signature_delta", "signature": s.Signature})
		}
		block(fields{"type": "thinking", "thinking": "", "signature": ""}, deltas...)
	}
	if len(s.Text) > 0 {
		deltas := []fields{}
		for _, text := range s.Text {
			deltas = append(deltas, fields{"type": "text_delta", "text": text})
		}
		block(fields{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range s.Calls {
		head, rest := halves(c.Arguments)
		block(fields{"type": "tool_use", "id": c.ID, "name": c.Name, "input": fields{}},
			fields{"type": "input_json_delta", "partial_json": ""},
			fields{"type": "input_json_delta", "partial_json": head},
			fields{"type": "input_json_delta", "partial_json": rest})
	}
	reason := map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}[s.reason()]
	return append(out, messagesEvent("message_delta",
		fields{
			"delta": fields{"stop_reason": reason, "stop_sequence": nil},
			"usage": fields{"output_tokens": s.Output},
		})+
		messagesEvent("message_stop", fields{}))
}

func messagesFailure(s *Scene) string {
	return object(fields{"type": "error", "error": fields{"type": s.Kind, "message": s.Message}, "request_id": "req_1"})
}

func messagesModels(w http.ResponseWriter, r *http.Request, names []string) bool {
	if r.URL.Path != "/v1/models" {
		return false
	}
	data := []any{}
	for _, name := range names {
		data = append(data, fields{
			"id": name, "type": "model", "display_name": name, "created_at": "2026-10-01T00:00:00Z",
			"max_input_tokens": 200000, "max_tokens": 64000,
			"capabilities": fields{"thinking": fields{"supported": true}},
		})
	}
	return answer(w, fields{"data": data, "has_more": false})
}

func nativeLine(message fields, more fields) string {
	message["role"] = "assistant"
	if message["content"] == nil {
		message["content"] = ""
	}
	line := fields{
		"model": "scripted", "created_at": "2026-11-21T04:30:07.297178426Z",
		"message": message, "done": false,
	}
	maps.Copy(line, more)
	return object(line) + "\n"
}

func nativeStream(s *Scene) (out []string) {
	if s.Thinking != "" {
		out = append(out, nativeLine(fields{"thinking": s.Thinking}, nil))
	}
	for _, text := range s.Text {
		out = append(out, nativeLine(fields{"content": text}, nil))
	}
	for i, c := range s.Calls {
		arguments := c.Arguments
		if arguments == "" {
			arguments = "{}"
		}
		out = append(out,
			nativeLine(fields{"tool_calls": []any{fields{
				"id":       c.ID,
				"function": fields{"index": i, "name": c.Name, "arguments": json.RawMessage(arguments)},
			}}}, nil))
	}
	reason := s.reason()
	if reason == "tool_calls" { // it never says so (spec 12.6, trap 4)
		reason = "stop"
	}
	return append(out, nativeLine(fields{}, fields{
		"done": true, "done_reason": reason,
		"prompt_eval_count": s.Input, "eval_count": s.Output,
	}))
}

func nativeFailure(s *Scene) string { return object(fields{"error": s.Message}) }

func nativeModels(w http.ResponseWriter, r *http.Request, names []string) bool {
	switch r.URL.Path {
	case "/api/version":
		return answer(w, fields{"version": "0.30.0"})
	case "/api/tags":
		models := []any{}
		for _, name := range names {
			models = append(models, fields{"name": name, "model": name, "size": 5 << 30})
		}
		return answer(w, fields{"models": models})
	case "/api/show":
		var in struct {
			Model string `json:"model"`
		}
		_ = json.NewDecoder(r.Body).Decode(&in)
		can := []string{"completion", "tools", "thinking"}
		if strings.Contains(in.Model, "embed") {
			can = []string{"embedding"}
		}
		return answer(w, fields{"capabilities": can, "model_info": fields{
			"general.architecture":    "scripted",
			"scripted.context_length": 40960,
		}})
	default:
		return false
	}
}
