package sim

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
)

// object is how a model of the JSON dialect writes its object, and what it puts into it beside its
// parts.
type object struct {
	Frame string `json:"frame,omitempty"`
	// Mixed leaves queries beside actions, Wrong puts each into the other's list.
	Mixed bool `json:"mixed,omitempty"`
	Wrong bool `json:"wrong,omitempty"`
	// Also are fields more, as they stand between two commas.
	Also string `json:"also,omitempty"`
}

// The frames of an object; "" is the object alone.
const (
	inFence   = "fence"
	inProse   = "prose"
	inThought = "thought" // behind thinking in the text
	inList    = "list"
	inTwo     = "two"   // another object follows
	inTwice   = "twice" // the same follows
	inHalf    = "half"  // it ends in the middle
	inText    = "text"  // no object, only what it would say
	inComma   = "comma" // commas before closing brackets
)

// object makes most objects plain.
func (m *maker) object() (o object) {
	if m.one(3) {
		o.Frame = pick(m, inFence, inFence, inProse, inProse, inThought, inThought, inTwice, inComma, inList, inTwo, inHalf, inHalf, inText)
	}
	o.Mixed, o.Wrong = m.one(12), m.one(16)
	if m.one(4) {
		o.Also = pick(m, `"post_text":"It is done."`, `"post_text":"It is done."`, `"keep_control":true`, `"post_text":"x","keep_control":true`, `"validation_request":true`,
			`"completed":true`, `"completed":true`, `"communication_module":{"type":"Carousel","data":{}}`, `"communication_module":{"type":"Validation","data":{"message":""}}`,
			`"communication_module":{"type":"Validation","data":{"message":"Go on?"}}`, `"plan":{"steps":[{"text":"look","status":"done"}]}`, `"plan":"x"`, `"pre_text":"again"`,
			`"Pre_Text":"other"`, `"more":{"a":1}`, `"data_commands":{}`, `"action_commands":["x"]`, `"x":`+strings.Repeat("[", 80)+strings.Repeat("]", 80))
	}
	return o
}

// reads are the tools that are queries.
var reads = map[string]bool{
	"ledger__read": true, "ledger__slow_read": true, "ledger__poll": true, "files__read_file": true, "files__list_files": true, "read_result": true,
}

// inJSON speaks Chat Completions without tool calls: its text is one object, or is meant to be.
type inJSON struct{}

// events implements speaker.
func (inJSON) events(r reply, n int) iter.Seq[string] {
	return stream(r, n, func(delta func(string) bool) {
		for _, p := range r.Parts {
			if p.Think != "" && !delta(`{"reasoning_content":`+quote(p.Think)+`}`) {
				return
			}
		}
		text := framed(r.Object.Frame, written(r.Parts, r.Object))
		size := 40 + 9*r.Wire.Split
		for len(text) > 0 {
			n := min(size, len(text))
			size = min(size*3/2, 64<<10)
			for n < len(text) && text[n]&0xC0 == 0x80 { // a character is not cut: quoting has to read it
				n++
			}
			if !delta(`{"content":` + quote(text[:n]) + `}`) {
				return
			}
			text = text[n:]
		}
	})
}

// written is the object that says the parts. What they have of broken arguments breaks it.
func written(parts []part, o object) string {
	var text strings.Builder
	lists := map[bool][]string{}
	var fields []string
	first, known := false, false
	for _, p := range parts {
		for range max(1, p.Times) {
			text.WriteString(p.Text)
			switch {
			case p.Tool == "" && p.ID == "" && p.Args == "":
			case p.Tool == "session__ask_user":
				fields = append(fields, `"communication_module":`+module(p.Args))
			case p.Tool == "session__complete":
				fields = append(fields, `"completed":true`)
			case p.Tool == "session__update_plan":
				fields = append(fields, `"plan":`+p.Args)
			default:
				query := reads[p.Tool]
				if !known {
					first, known = query, true
				}
				if o.Mixed || query == first {
					lists[query != o.Wrong] = append(lists[query != o.Wrong], `{"type":`+quoted(strings.Replace(p.Tool, "__", ".", 1))+`,"params":`+p.Args+`}`)
				}
			}
		}
	}
	out := []string{`"pre_text":` + quoted(text.String())}
	for _, query := range []bool{true, false} {
		name := map[bool]string{true: "data_commands", false: "action_commands"}[query]
		if len(lists[query]) > 0 {
			out = append(out, `"`+name+`":[`+strings.Join(lists[query], ",")+`]`)
		}
	}
	out = append(out, fields...)
	if o.Also != "" {
		out = append(out, o.Also)
	}
	return "{" + strings.Join(out, ",") + "}"
}

// quoted is a JSON string in which what stands for a byte is not that byte yet: the outer quoting
// makes it.
func quoted(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return string(data)
}

// module is what asks in this dialect what a call would ask in the other.
func module(args string) string {
	var q struct {
		Question string   `json:"question"`
		Options  []string `json:"options"`
		Multiple bool     `json:"allow_multiple"`
		FreeText bool     `json:"allow_free_text"`
	}
	if err := json.Unmarshal([]byte(args), &q); err != nil {
		return args
	}
	if q.Options == nil {
		return fmt.Sprintf(`{"type":"Validation","data":{"message":%s}}`, quoted(q.Question))
	}
	options, err := json.Marshal(q.Options)
	if err != nil {
		panic(err) // strings
	}
	return fmt.Sprintf(`{"type":"MultipleChoice","data":{"question":%s,"options":%s,"allow_multiple":%v,"allow_free_text":%v}}`, quoted(q.Question), options, q.Multiple, q.FreeText)
}

// framed is an object as a model writes it.
func framed(frame, body string) string {
	switch frame {
	case inFence:
		return "```json\n" + body + "\n```"
	case inProse:
		return "Sure, {this} is it:\n" + body + "\nAnything else?"
	case inThought:
		return "<think>Perhaps {\"pre_text\":\"no\"}?</think>\n" + body
	case inList:
		return "[" + body + "]"
	case inTwo:
		return body + "\n{\"pre_text\":\"or rather not\"}"
	case inTwice:
		return body + "\n" + body
	case inHalf:
		return body[:len(body)*2/3]
	case inText:
		return "I have done it."
	case inComma:
		return strings.NewReplacer("}]", "},]", "]}", "],}").Replace(body)
	default:
		return body
	}
}
