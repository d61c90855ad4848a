package dialect

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxTries bounds how often the search begins anew after a bracket that nothing closes: each try
// reads to the end of the reply, so without a bound a reply of brackets would cost its length
// squared.
const maxTries = 8

// fields are the fields of a reply, in their written order.
var fields = []string{
	"pre_text", "validation_request", "data_commands", "action_commands", "post_text", "keep_control",
	"communication_module", "completed", "plan",
}

// found is the object of a reply.
type found struct {
	object []byte // repaired, but not yet known to be JSON
	around bool   // something besides it stands in the reply
	depth  int
}

// extract finds the one object of a reply that has fields of ours. Objects without any are taken
// for part of the text, unless there is no other.
func extract(raw string) (found, *FormatError) {
	if len(raw) > maxReply {
		return found{}, &FormatError{Expected: "a reply of at most 32 MiB", Found: sizeOf(len(raw))}
	}
	text, whole := withoutThinking(strings.ToValidUTF8(raw, "\uFFFD"))
	if !whole {
		return found{}, &FormatError{
			Expected: "one JSON object", Found: "thinking that does not end",
			Hint: "close it with </think>, and write the object behind it",
		}
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\uFEFF"))
	var ours, other *found
	cut, tries := false, 0
	for at := nextObject(text, 0); at >= 0; {
		end, depth := closing(text, at)
		if end < 0 {
			cut = cut || hasField(text[at:])
			if tries++; tries == maxTries {
				break
			}
			at = nextObject(text, at+1)
			continue
		}
		candidate := found{object: repair(text[at:end]), around: end-at < len(text), depth: depth}
		switch {
		case !hasField(text[at:end]) || !topField(candidate.object):
			if other == nil {
				other = &candidate
			}
		case ours == nil:
			ours = &candidate
		case !bytes.Equal(ours.object, candidate.object):
			return found{}, &FormatError{
				Expected: "one JSON object", Found: "two or more",
				Hint: "put everything into one object, or send the next one when the results of this one are here",
			}
		}
		at = nextObject(text, end)
	}
	switch {
	case ours != nil:
		return *ours, nil
	case cut:
		return found{}, &FormatError{
			Expected: "one whole JSON object",
			Found:    "one that is cut off, or whose brackets or quotation marks do not close",
			Hint:     "keep it shorter if it was too long, and escape every quotation mark inside a string",
		}
	case other != nil:
		return *other, nil
	case text == "":
		return found{}, &FormatError{Expected: "one JSON object", Found: "nothing"}
	default:
		return found{}, &FormatError{
			Expected: "one JSON object", Found: "text without any",
			Hint: `what you say to the person is the string pre_text: {"pre_text":"…"}`,
		}
	}
}

// withoutThinking takes away what some models write before their reply, and reports whether it
// ends: what a model only considers is no reply. Where a template has opened the block, only its
// end is there to see.
func withoutThinking(text string) (rest string, whole bool) {
	if after, ok := strings.CutPrefix(strings.TrimLeft(text, "\uFEFF \t\r\n"), thinkOpen); ok {
		if _, text, whole = strings.Cut(after, thinkClose); !whole {
			return "", false
		}
	}
	tries := 0
	for at, start := 0, 0; ; {
		end := strings.Index(text[at:], thinkClose)
		if end < 0 || tries == maxTries {
			return text[start:], true
		}
		end += at
		object := nextObject(text, at)
		if object < 0 || object > end {
			start = end + len(thinkClose)
			at = start
			continue
		}
		tries++
		if after, _ := closing(text, object); after > 0 { // a mark inside an object is content of it
			at = after
		} else {
			at = object + 1
		}
	}
}

// nextObject returns where the next thing begins that can be an object, or -1: a bracket before a
// quotation mark or its own end.
func nextObject(text string, from int) int {
	for from < len(text) {
		at := strings.IndexByte(text[from:], '{')
		if at < 0 {
			return -1
		}
		at += from
		next := at + 1
		for next < len(text) && isSpace(text[next]) {
			next++
		}
		if next < len(text) && (text[next] == '"' || text[next] == '}') {
			return at
		}
		from = next // no bracket stands between: only white space does
	}
	return -1
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// closing returns the end of the object that begins at start and how deep it is, or -1 where it
// does not end.
func closing(text string, start int) (end, depth int) {
	open := 0
	for i := start; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			open++
			depth = max(depth, open)
		case '}', ']':
			if open--; open == 0 {
				return i + 1, depth
			}
		}
	}
	return -1, depth
}

// repair writes an object anew with the mistakes mended that models make often and that can mean
// only one thing: commas before a closing bracket go, control characters inside strings are
// escaped.
func repair(object string) []byte {
	out := make([]byte, 0, len(object)+16)
	inString := false
	for i := 0; i < len(object); i++ {
		c := object[i]
		switch {
		case inString && c == '\\' && i+1 < len(object):
			// with the next byte: the decoder refuses an invalid escape
			out = append(out, c, object[i+1])
			i++
			continue
		case inString && c < 0x20:
			out = appendControl(out, c)
			continue
		case c == '"':
			inString = !inString
		case c == ',' && !inString:
			next := i + 1
			for next < len(object) && isSpace(object[next]) {
				next++
			}
			if next < len(object) && (object[next] == '}' || object[next] == ']') {
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

func appendControl(b []byte, c byte) []byte {
	switch c {
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	default:
		const digits = "0123456789abcdef"
		return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
	}
}

// hasField looks for a field's name anywhere: it is cheap and rules most objects of other kinds
// out.
func hasField(text string) bool {
	for _, field := range fields {
		if strings.Contains(text, `"`+field+`"`) {
			return true
		}
	}
	return false
}

// topField reports whether an object has a field of ours itself, and not only something inside it.
// Of an object that cannot be read only its beginning is known, and the benefit of the doubt tells
// the model what is wrong with it.
func topField(object []byte) bool {
	decoder := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true))
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '{' {
		return true
	}
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			return true
		}
		for _, field := range fields {
			if name.String() == field {
				return true
			}
		}
		if decoder.SkipValue() != nil {
			return true
		}
	}
	return decoder.PeekKind() != '}'
}
