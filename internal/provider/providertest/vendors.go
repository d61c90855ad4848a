package providertest

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
)

// framing is how a vendor of Chat Completions frames its stream, as its documentation or what its
// server sent to others shows it.
type framing struct {
	before string // comments ahead of the first chunk
	id     string
	every  fields                       // members of each chunk
	choice fields                       // members of each choice
	role   bool                         // a chunk with the role and an empty content comes first
	think  func(text string) fields     // the delta of thinking; nil where thinking is no member of its own
	text   func(text string) fields     // the delta of text; nil is a plain one
	whole  bool                         // a call comes in one chunk
	usage  func(s *Scene) fields        // nil is OpenAI's
	place  string                       // of the usage: behind, finish or each
	fail   func(s *Scene) fields        // the body of an error; nil is OpenAI's
	inBand func(body fields) string     // how an error comes in the stream; nil is a chunk of its own
	path   string                       // what an address ends in
	models func(names []string) []route // the routes besides the chat; nil is OpenAI's list
	noDone bool
	crlf   bool
	// What the format reports.
	hasCache, hasKinds bool
}

// route is a path with its answer.
type route struct {
	path   string
	answer fields
}

func plainUsage(s *Scene) fields {
	return fields{"prompt_tokens": s.Input, "completion_tokens": s.Output, "total_tokens": s.Input + s.Output}
}

func member(name string) func(string) fields {
	return func(text string) fields { return fields{name: text} }
}

// listedAs returns a list of models with more members each.
func listedAs(more fields) func(names []string) []route {
	return func(names []string) []route {
		data := []any{}
		for _, name := range names {
			model := fields{"id": name, "object": "model", "owned_by": "test"}
			maps.Copy(model, more)
			data = append(data, model)
		}
		return []route{{"/v1/models", fields{"object": "list", "data": data}}}
	}
}

var framings = map[string]framing{
	"openai": {
		id: "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG", every: fields{
			"service_tier":       "default",
			"system_fingerprint": "fp_44709d6fcb",
		}, choice: fields{"logprobs": nil}, role: true,
		place: "behind", hasCache: true, hasKinds: true,
	},
	"groq": {
		id: "chatcmpl-f51b2cd2", every: fields{
			"system_fingerprint": "fp_10c08bf97d",
			"x_groq":             fields{"id": "req_01jbd6g2"},
		},
		choice: fields{"logprobs": nil}, role: true,
		think: member("reasoning"), whole: true, place: "groq", hasCache: true, hasKinds: true,
		models: listedAs(fields{"context_window": 131072, "max_completion_tokens": 65536, "active": true}),
	},
	"deepseek": {
		before: ": keep-alive\n\n: keep-alive\n\n", id: "1f633d8b", role: true,
		think:    func(text string) fields { return fields{"content": nil, "reasoning_content": text} },
		text:     func(text string) fields { return fields{"content": text, "reasoning_content": nil} },
		usage:    func(s *Scene) fields { u := plainUsage(s); u["prompt_cache_hit_tokens"] = s.CacheRead; return u },
		place:    "finish",
		hasCache: true, hasKinds: true,
	},
	"mistral": {
		id: "cmpl-e5cc70bb28c444948073e77776eb30ef", role: true, whole: true, usage: plainUsage,
		place: "finish", hasKinds: true,
		think: func(text string) fields {
			return fields{"content": []any{fields{
				"type":     "thinking",
				"thinking": []any{fields{"type": "text", "text": text}},
			}}}
		},
		text: func(text string) fields {
			if strings.HasPrefix(text, "Hello") { // the first chunks behind the thinking are a list too
				return fields{"content": []any{fields{"type": "text", "text": text}}}
			}
			return fields{"content": text}
		},
		fail: func(s *Scene) fields {
			return fields{
				"object": "error", "message": s.Message, "type": s.Kind, "param": nil,
				"code": "3000", "raw_status_code": s.Status,
			}
		},
		models: listedAs(fields{"max_context_length": 131072, "capabilities": fields{
			"completion_chat": true, "function_calling": true,
		}}),
	},
	"openrouter": {
		before: ": OPENROUTER PROCESSING\n\n", id: "gen-1758885012-2qVPBxGHZxOgYWKthK4E",
		every:  fields{"provider": "Anthropic"},
		choice: fields{"native_finish_reason": nil, "logprobs": nil}, role: true,
		think: func(text string) fields {
			return fields{
				"content": "", "reasoning": text,
				"reasoning_details": []any{fields{
					"type": "reasoning.text", "text": text,
					"format": "anthropic-claude-v1", "index": 0,
				}},
			}
		},
		place: "behind", hasCache: true,
		fail: func(s *Scene) fields {
			return fields{"error": fields{"code": max(s.Status, 502), "message": s.Message}, "user_id": "user_1"}
		},
		inBand: func(body fields) string {
			choice := fields{"index": 0, "delta": fields{"content": ""}, "finish_reason": "error"}
			chunk := fields{
				"id": "gen-1", "object": "chat.completion.chunk",
				"provider": "Anthropic", "choices": []any{choice},
			}
			maps.Copy(chunk, body)
			return "data: " + object(chunk) + "\n\n"
		},
		models: listedAs(fields{
			"context_length": 200000, "top_provider": fields{"max_completion_tokens": 64000},
			"supported_parameters": []string{"tools", "reasoning"},
		}),
	},
	"vllm": {
		id: "chatcmpl-7f1b7a8bd86348d4b1dd0c7b39b1c1d8", choice: fields{"logprobs": nil, "token_ids": nil}, role: true,
		think: member("reasoning"), place: "behind", hasCache: true, hasKinds: true,
		fail: func(s *Scene) fields {
			return fields{"error": fields{"message": s.Message, "type": s.Kind, "param": nil, "code": s.Status}}
		},
		models: listedAs(fields{"max_model_len": 32768, "root": "m"}),
	},
	"lmstudio": {
		id: "chatcmpl-zqjtx0lr9w", every: fields{"system_fingerprint": "qwen3"}, choice: fields{"logprobs": nil},
		think: member("reasoning_content"), usage: plainUsage, place: "behind",
		fail:   func(s *Scene) fields { return fields{"error": s.Message} },
		inBand: func(body fields) string { return "event: error\ndata: " + object(body) + "\n\n" },
		models: func(names []string) []route {
			routes := listedAs(nil)(names)
			rich := listedAs(fields{
				"type": "llm", "state": "loaded",
				"max_context_length": 131072, "loaded_context_length": 8192,
				"capabilities": []string{"tool_use"},
			})(names)
			return append(routes, route{"/api/v0/models", rich[0].answer})
		},
	},
	"llamacpp": {
		id: "chatcmpl-GDZlsQQXU8tSHZc7kUQ0PkW0zOyXq8wE", every: fields{"system_fingerprint": "b6840-5d195f17"},
		role:  true,
		think: member("reasoning_content"), usage: plainUsage, place: "behind", hasKinds: true,
		fail: func(s *Scene) fields {
			return fields{"error": fields{"code": s.Status, "message": s.Message, "type": s.Kind}}
		},
		models: func(names []string) []route {
			return append(listedAs(fields{"meta": fields{"n_ctx_train": 131072}})(names),
				route{"/props", fields{"default_generation_settings": fields{"n_ctx": 16384}}})
		},
	},
	"perplexity": {
		id: "8c1596dd-319a-4c71-a1b8-e0c546b01641", every: fields{
			"search_results": []any{fields{"url": "https://a.example/1"}, fields{"url": "https://b.example/2"}},
		},
		choice: fields{"message": fields{"role": "assistant", "content": "…"}},
		usage:  plainUsage, place: "each", noDone: true, crlf: true, path: "-", hasKinds: true,
		fail: func(s *Scene) fields {
			return fields{"error": fields{"message": s.Message, "type": s.Kind, "code": s.Status}}
		},
	},
}

// chunk is one line of the stream.
func (v *framing) chunk(delta fields, reason any, more fields) string {
	choice := fields{"index": 0, "delta": delta, "finish_reason": reason}
	maps.Copy(choice, v.choice)
	chunk := fields{
		"id": v.id, "object": "chat.completion.chunk", "created": 1795235407,
		"model": "scripted", "choices": []any{choice},
	}
	maps.Copy(chunk, v.every)
	maps.Copy(chunk, more)
	return "data: " + object(chunk) + "\n\n"
}

func (v *framing) stream(s *Scene) []string {
	usage := v.usage
	if usage == nil {
		usage = func(s *Scene) fields {
			u := plainUsage(s)
			u["prompt_tokens_details"] = fields{"cached_tokens": s.CacheRead}
			return u
		}
	}
	var each fields
	if v.place == "each" {
		each = fields{"usage": usage(s)}
	}
	out := []string{v.before}
	add := func(delta fields) { out = append(out, v.chunk(delta, nil, each)) }
	if v.role {
		add(fields{"role": "assistant", "content": ""})
	}
	if v.think != nil && s.Thinking != "" {
		head, rest := halves(s.Thinking)
		add(v.think(head))
		add(v.think(rest))
	}
	for _, text := range s.Text {
		if v.text != nil {
			add(v.text(text))
		} else {
			add(fields{"content": text})
		}
	}
	for i, c := range s.Calls {
		if v.whole {
			add(fields{"tool_calls": []any{fields{
				"index": i, "id": c.ID, "type": "function",
				"function": fields{"name": c.Name, "arguments": c.Arguments},
			}}})
			continue
		}
		head, rest := halves(c.Arguments)
		add(fields{"tool_calls": []any{fields{
			"index": i, "id": c.ID, "type": "function",
			"function": fields{"name": c.Name, "arguments": head},
		}}})
		add(fields{"tool_calls": []any{fields{"index": i, "function": fields{"arguments": rest}}}})
	}
	var end string
	switch v.place {
	case "finish", "each":
		end = v.chunk(fields{}, s.reason(), fields{"usage": usage(s)})
	case "groq":
		end = v.chunk(fields{}, s.reason(), fields{"x_groq": fields{"id": "req_1", "usage": usage(s)}})
	default:
		end = v.chunk(fields{}, s.reason(), nil) + "data: " + object(
			fields{"id": v.id, "choices": []any{}, "usage": usage(s)}) + "\n\n"
	}
	if !v.noDone {
		end += "data: [DONE]\n\n"
	}
	out = append(out, end)
	if v.crlf {
		for i := range out {
			out[i] = strings.ReplaceAll(out[i], "\n", "\r\n")
		}
	}
	return out
}

func (v *framing) failure(s *Scene) fields {
	if v.fail != nil {
		return v.fail(s)
	}
	return fields{"error": fields{"message": s.Message, "type": s.Kind, "param": nil, "code": nil}}
}

// Vendors are the vendors of Chat Completions, each in its own framing, with its own validator.
func Vendors() []Format {
	var out []Format
	for _, name := range openai.Vendors() {
		v, ok := framings[name]
		if !ok {
			panic(fmt.Sprintf("nobody wrote down how %s frames its stream", name))
		}
		path := "/v1"
		if v.path == "-" {
			path = ""
		}
		out = append(out, Format{
			Name: name, Path: path, chat: path + "/chat/completions", kind: "text/event-stream", stream: v.stream,
			failure: func(s *Scene) string { return object(v.failure(s)) },
			inBand: func(s *Scene) string {
				if v.inBand != nil {
					return v.inBand(v.failure(s))
				}
				return "data: " + object(v.failure(s)) + "\n\n"
			},
			models: func(w http.ResponseWriter, r *http.Request, names []string) bool {
				if v.models == nil {
					return v.path == "" && chatModels(w, r, names)
				}
				for _, route := range v.models(names) {
					if r.URL.Path == route.path {
						return answer(w, route.answer)
					}
				}
				return false
			},
			Validate: func(body []byte) error { return strict.ChatVendor(name, body) },
			HasCache: v.hasCache, HasKinds: v.hasKinds, NoTools: !openai.TakesTools(name),
			NoThinking: v.think == nil, Vendor: true,
			Open: func(address string, idle time.Duration) (provider.Provider, error) {
				return openai.New(openai.Config{
					Name: name, Vendor: name, BaseURL: address + path,
					APIKey: "sk-canary", Idle: idle,
				})
			},
		})
	}
	return out
}
