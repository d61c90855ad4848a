package ollama

import (
	"strconv"
	"strings"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Options holds the request's settings besides its head.
type Options struct {
	Context   int    // num_ctx, tokens; 0 leaves it to the server
	KeepAlive string // empty leaves it to the server
	// Think is the JSON of the think member: true, false or a level such as "high"; empty leaves it
	// out.
	Think string
}

// Request is a request body that only grows: each turn is encoded once, and the tail is added for
// sending (decision 31). One goroutine uses it.
//
// The API cannot forbid calls. The declarations stay even so: without them the server would take a
// call for text, and read the whole prompt anew, which begins with them. The guidance asks for an
// answer, and the engine refuses a call that comes anyway.
type Request struct {
	wire.GrowingBody
	server *wire.Server
	first  bool              // no message yet
	names  map[string]string // of the calls of the last reply, by id: a result names its tool

	options     []byte // still open
	temperature *float64
}

// NewRequest begins a request.
func NewRequest(head provider.Head, options Options) *Request {
	r := &Request{first: true, names: map[string]string{}, temperature: head.Temperature}
	r.Close = r.tail
	r.options = strconv.AppendInt([]byte(`],"options":{"num_predict":`), int64(predicted(head.MaxOutput, options.Context)), 10)
	if options.Context > 0 {
		r.options = strconv.AppendInt(append(r.options, `,"num_ctx":`...), int64(options.Context), 10)
	}
	r.options = wire.AppendNumber(r.options, "top_p", head.TopP)
	r.Add(func(b []byte) []byte { return appendHead(b, head, options) })
	// One system message: templates of small models keep the last one only.
	if levels := wire.Levels(&head); len(levels) > 0 {
		r.Add(func(b []byte) []byte { return append(r.message(b, "system", strings.Join(levels, "\n\n")), '}') })
	}
	return r
}

// appendHead writes the request up to the messages.
func appendHead(b []byte, head provider.Head, options Options) []byte {
	b = wire.AppendString(append(b, `{"model":`...), head.Model)
	b = append(b, `,"stream":true`...)
	b = appendKeepAlive(b, options.KeepAlive)
	if options.Think != "" {
		b = append(append(b, `,"think":`...), options.Think...)
	}
	if len(head.Tools) > 0 {
		b = append(b, head.Encoded.Get(Name, func() []byte { return wire.AppendFunctions(head.Tools) })...)
	}
	return append(b, `,"messages":[`...)
}

// appendKeepAlive writes how long the model stays in memory, if configured.
func appendKeepAlive(b []byte, keepAlive string) []byte {
	if keepAlive == "" {
		return b
	}
	b = append(b, `,"keep_alive":`...)
	if _, err := strconv.Atoi(keepAlive); err == nil { // seconds, and -1, are numbers there
		return append(b, keepAlive...)
	}
	return wire.AppendString(b, keepAlive)
}

// predicted keeps the reply within the context: at least half of that is the prompt's.
func predicted(output, window int) int {
	if window > 0 {
		return max(1, min(output, window/2))
	}
	return output
}

// message opens a message; its brace is left open.
func (r *Request) message(b []byte, role, content string) []byte {
	if !r.first {
		b = append(b, ',')
	}
	r.first = false
	b = append(append(append(b, `{"role":"`...), role...), `","content":`...)
	return wire.AppendString(b, content)
}

// Append implements provider.Conversation.
func (r *Request) Append(turns ...provider.Turn) {
	for i := range turns {
		turn := &turns[i]
		switch turn.Role {
		case provider.RoleTool:
			for j := range turn.Results {
				r.Add(func(b []byte) []byte { return r.result(b, &turn.Results[j]) })
			}
		case provider.RoleAssistant:
			r.Add(func(b []byte) []byte { return r.assistant(b, turn) })
		default:
			r.Add(func(b []byte) []byte { return r.user(b, turn) })
		}
	}
}

func (r *Request) user(b []byte, turn *provider.Turn) []byte {
	b = r.message(b, "user", provider.JoinText(turn.Parts))
	if images := provider.Images(turn.Parts); len(images) > 0 {
		b = wire.AppendList(append(b, `,"images":`...), images, func(b []byte, image *provider.Media) []byte {
			return append(r.AppendImage(b, `"`, image), '"')
		})
	}
	return append(b, '}')
}

func (r *Request) result(b []byte, result *provider.Result) []byte {
	b = r.message(b, "tool", result.Content)
	if name := r.names[result.CallID]; name != "" {
		b = wire.AppendString(append(b, `,"tool_name":`...), name)
	}
	b = wire.AppendString(append(b, `,"tool_call_id":`...), result.CallID)
	return append(b, '}')
}

// assistant writes a model's own turn. Thinking goes back only with calls, and only if it came from
// Ollama.
func (r *Request) assistant(b []byte, turn *provider.Turn) []byte {
	b = r.message(b, "assistant", provider.JoinText(turn.Parts))
	clear(r.names)
	calls := provider.Calls(turn.Parts)
	if len(calls) == 0 {
		return append(b, '}')
	}
	if thinking := provider.JoinThinking(turn.Parts, Name); thinking != "" {
		b = wire.AppendString(append(b, `,"thinking":`...), thinking)
	}
	n := int64(0)
	b = wire.AppendList(append(b, `,"tool_calls":`...), calls, func(b []byte, call *provider.Call) []byte {
		r.names[call.ID] = call.Name
		b = wire.AppendString(append(b, `{"id":`...), call.ID)
		b = strconv.AppendInt(append(b, `,"function":{"index":`...), n, 10)
		n++
		b = wire.AppendString(append(b, `,"name":`...), call.Name)
		b = append(append(b, `,"arguments":`...), provider.Object(call.Arguments)...)
		return append(b, `}}`...)
	})
	return append(b, '}')
}

// tail closes the messages and the request.
func (r *Request) tail() []byte {
	var b []byte
	if r.Tail.Guidance != "" {
		if !r.first {
			b = append(b, ',')
		}
		b = append(wire.AppendString(append(b, `{"role":"user","content":`...), r.Tail.Guidance), '}')
	}
	return append(wire.AppendTemperature(append(b, r.options...), r.temperature, r.Tail, 2), `}}`...)
}
