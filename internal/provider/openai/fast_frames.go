package openai

import (
	"bytes"
	"unicode/utf8"

	"github.com/regie-run/regie/internal/provider/wire"
)

// frame is the JSON around the delta, which a server repeats in every chunk of a stream (id, time,
// model). It is learned from one chunk and verified by the decoder. Later chunks with the same
// frame and a plain text delta are read by comparing bytes, at a tenth of the cost of JSON. The
// decoder reads all others; a fuzz test compares the two.
type frame struct {
	head, tail []byte // up to the delta's opening brace; from its closing one
	tries      int
}

// maxTries bounds the cost of a server that frames every chunk differently.
const maxTries = 3

var (
	deltaOpens  = []byte(`"delta":{`)
	roleMember  = []byte(`"role":"assistant",`)
	contentOpen = []byte(`"content":"`)
)

// text returns the text of a chunk with nothing else in it.
func (f *frame) text(data []byte) (text []byte, ok bool) {
	if len(f.head) == 0 {
		return nil, false
	}
	inner, found := bytes.CutPrefix(data, f.head)
	if !found {
		return nil, false
	}
	if inner, found = bytes.CutSuffix(inner, f.tail); !found {
		return nil, false
	}
	if inner, found = bytes.CutPrefix(bytes.TrimPrefix(inner, roleMember), contentOpen); !found || len(inner) == 0 {
		return nil, false
	}
	text, last := inner[:len(inner)-1], inner[len(inner)-1]
	return text, last == '"' && plainText(text)
}

// learn takes the frame of a chunk that text did not know, if it is the frame of a plain text.
func (f *frame) learn(data []byte) {
	at := bytes.Index(data, deltaOpens)
	if at < 0 || f.tries >= maxTries {
		return
	}
	head := data[:at+len(deltaOpens)]
	rest, found := bytes.CutPrefix(bytes.TrimPrefix(data[len(head):], roleMember), contentOpen)
	end := bytes.IndexByte(rest, '"')
	if !found || end < 0 {
		return
	}
	f.tries++
	if tail := rest[end+1:]; frames(head, tail, "a") && frames(head, tail, "b") {
		f.head, f.tail = bytes.Clone(head), bytes.Clone(tail)
	}
}

// frames verifies with the decoder that a text between head and tail reads as the text of the only
// choice, with nothing else.
func frames(head, tail []byte, text string) bool {
	data := make([]byte, 0, len(head)+len(tail)+len(contentOpen)+2)
	data = append(append(append(append(data, head...), contentOpen...), text...), '"')
	ch, err := decode(append(data, tail...))
	if err != nil || len(ch.Choices) != 1 || wire.Said(ch.Usage) || len(ch.Error) > 0 ||
		ch.failed() || ch.Groq != nil ||
		len(ch.SearchResults) > 0 {
		return false
	}
	c := &ch.Choices[0]
	d := &c.Delta
	return c.Index == 0 && c.FinishReason == nil && len(c.Error) == 0 && string(d.Content) == `"`+text+`"` &&
		d.Reasoning == nil && len(d.ReasoningDetails) == 0 && d.ReasoningContent == nil &&
		d.Refusal == nil && d.ToolCalls == nil
}

// plainText says that a string's bytes stand for themselves.
func plainText(s []byte) bool {
	ascii := true
	for _, c := range s {
		if c < 0x20 || c == '\\' || c == '"' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(s)
}
