package openai

import (
	"bytes"
	"unicode/utf8"
)

// plainDelta reads the commonest chunk by hand: one choice, index 0, a delta with nothing but a role and a text without escapes,
// no finish reason and no usage. It is what an answer consists of, and reading it as general JSON costs ten times as much. Anything
// else, however slightly, is left to the decoder; a fuzz test compares the two.
func plainDelta(data []byte) (text string, ok bool) {
	before, rest, found := bytes.Cut(data, []byte(`"choices":[{"index":0,"delta":{`))
	if !found {
		return "", false
	}
	// What stands before may hold only strings and numbers of the envelope: no nesting, no escapes, no other key of ours.
	if len(before) == 0 || before[0] != '{' || bytes.IndexByte(before[1:], '{') >= 0 || bytes.IndexByte(before, '[') >= 0 ||
		bytes.IndexByte(before, '\\') >= 0 || bytes.Contains(before, []byte(`"usage"`)) || bytes.Contains(before, []byte(`"error"`)) ||
		bytes.Contains(before, []byte(`"choices"`)) || !plainMembers(before[1:]) {
		return "", false
	}
	rest = bytes.TrimPrefix(rest, []byte(`"role":"assistant",`))
	rest, found = bytes.CutPrefix(rest, []byte(`"content":"`))
	if !found {
		return "", false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || !plainText(rest[:end]) {
		return "", false
	}
	text = string(rest[:end])
	switch string(rest[end:]) {
	case `"},"finish_reason":null}]}`, `"},"logprobs":null,"finish_reason":null}]}`, `"}}]}`, `"},"finish_reason":null}],"usage":null}`:
		return text, true
	}
	return "", false
}

func plainText(s []byte) bool {
	ascii := true
	for _, c := range s {
		if c < 0x20 || c == '\\' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(s)
}

// plainMembers accepts a run of `"key":"string",` and `"key":123,`.
func plainMembers(s []byte) bool {
	for len(s) > 0 {
		rest, ok := skipString(s)
		if !ok || len(rest) == 0 || rest[0] != ':' {
			return false
		}
		rest = rest[1:]
		if len(rest) > 0 && rest[0] == '"' {
			if rest, ok = skipString(rest); !ok {
				return false
			}
		} else {
			digits := 0
			for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
				digits++
			}
			if digits == 0 || digits > 1 && rest[0] == '0' {
				return false
			}
			rest = rest[digits:]
		}
		if len(rest) == 0 || rest[0] != ',' {
			return false
		}
		s = rest[1:]
	}
	return true
}

func skipString(s []byte) (rest []byte, ok bool) {
	if len(s) < 2 || s[0] != '"' {
		return nil, false
	}
	end := bytes.IndexByte(s[1:], '"')
	if end < 0 || !plainText(s[1:1+end]) {
		return nil, false
	}
	return s[end+2:], true
}
