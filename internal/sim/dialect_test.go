package sim

import (
	"fmt"
	"iter"
	"strings"

	"github.com/regie-run/regie"
)

// speaker turns a reply into the bytes of a stream, event by event: a dialect of the hostile model.
// n is how many tokens it counts in the request.
type speaker interface {
	events(r reply, n int) iter.Seq[string]
}

func speakerOf(d regie.Dialect) speaker {
	if d == regie.DialectJSON {
		return inJSON{}
	}
	return native{}
}

// native speaks Chat Completions with tool calls.
type native struct{}

// raw turns what stands for a byte in a plan, which is JSON, into that byte: U+E000 and above.
func raw(s string) string {
	var out strings.Builder
	for _, r := range s {
		if r >= 0xE000 && r <= 0xE0FF {
			out.WriteByte(byte(r - 0xE000))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// quote writes a JSON string and leaves bytes that are no UTF-8 as they are.
func quote(s string) string {
	s = raw(s)
	out := make([]byte, 0, len(s)+2)
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < 0x20:
			out = fmt.Appendf(out, "\\u%04x", c)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

// events implements speaker.
func (native) events(r reply, n int) iter.Seq[string] {
	return stream(r, n, func(delta func(string) bool) {
		index := 0
		for _, p := range r.Parts {
			for range max(1, p.Times) {
				for _, d := range deltas(p, r.Wire, &index) {
					if !delta(d) {
						return
					}
				}
			}
		}
	})
}

// stream frames the deltas that say makes.
func stream(r reply, n int, say func(delta func(string) bool)) iter.Seq[string] {
	end := "\n\n"
	if r.Wire.CRLF {
		end = "\r\n\r\n"
	}
	return func(yield func(string) bool) {
		over := false
		data := func(body string) bool {
			over = over || r.Wire.Comments && !yield(": keep-alive"+end) || !yield("data: "+body+end)
			return !over
		}
		say(func(delta string) bool {
			return data(`{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`)
		})
		if !over {
			closing(r, n, data)
		}
	}
}

// deltas are the pieces of one part.
func deltas(p part, w wire, index *int) (out []string) {
	if p.Text != "" {
		out = append(out, `{"content":`+quote(p.Text)+`}`)
	}
	if p.Think != "" {
		out = append(out, `{"reasoning_content":`+quote(p.Think)+`}`)
	}
	if p.Tool == "" && p.ID == "" && p.Args == "" {
		return out
	}
	number := *index
	*index++
	if w.Index0 {
		number = 0
	}
	pieces, id := []string{quote(p.Args)}, ""
	if p.ID != "" {
		id = `"id":` + quote(p.ID) + `,`
	}
	switch {
	case w.Object && strings.HasPrefix(p.Args, "{") && strings.HasSuffix(p.Args, "}"):
		pieces = []string{p.Args}
	case w.Split > 0:
		pieces = []string{`""`}
		for rest := p.Args; rest != ""; {
			n := min(w.Split*3, len(rest))
			pieces, rest = append(pieces, quote(rest[:n])), rest[n:]
		}
	}
	for i, piece := range pieces {
		if i == 0 {
			out = append(out, fmt.Sprintf(`{"tool_calls":[{"index":%d,%s"type":"function","function":{"name":%s,"arguments":%s}}]}`, number, id, quote(p.Tool), piece))
		} else {
			out = append(out, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, number, piece))
		}
	}
	return out
}

// closing is the end of a stream, or what stands in its place.
func closing(r reply, n int, data func(string) bool) {
	finish := r.Finish
	if finish == "" {
		finish = "stop"
	}
	usage := r.Usage
	if usage == "" {
		usage = fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":5}`, n)
	}
	switch {
	case r.Wire.Error:
		data(`{"error":{"message":"overloaded, your key ` + canary + `","code":"overloaded"}}`)
		return
	case !r.Wire.NoEnd && !data(`{"choices":[{"index":0,"delta":{},"finish_reason":`+quote(finish)+`}]}`), !data(`{"choices":[],"usage":` + usage + `}`), r.Wire.NoDone:
		return
	}
	data("[DONE]")
}
