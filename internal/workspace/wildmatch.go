package workspace

import (
	"slices"
	"strings"
)

// wildmatch is a pattern of an ignore file, read once: names separated by slashes, of which each is
// compared with one name of a path. It compares bytes, as git does. Matching costs at most the
// product of the lengths, whatever the pattern is (spec 12.5).
type wildmatch struct {
	parts []wildPart
}

// wildPart is what one name of a path is compared with.
type wildPart struct {
	any     bool   // **: any number of names
	literal string // where there is nothing but letters
	tokens  []wildToken
}

// wildToken is one step of a comparison. The zero token is never matched.
type wildToken struct {
	kind  wildKind
	char  byte
	chars *[256]bool // of a class
}

type wildKind int

const (
	wildNever wildKind = iota
	wildChar
	wildOne  // ?
	wildMany // *
	wildClass
)

// compileWild reads a pattern. What git takes for malformed, such as a class without an end,
// matches nothing.
func compileWild(pattern string) wildmatch {
	var w wildmatch
	var tokens []wildToken
	start := 0
	flush := func(end int) {
		raw := pattern[start:end]
		part := wildPart{tokens: tokens, any: len(raw) > 1 && strings.Trim(raw, "*") == ""}
		if !slices.ContainsFunc(tokens, func(t wildToken) bool { return t.kind != wildChar }) {
			var b strings.Builder
			for _, t := range tokens {
				b.WriteByte(t.char)
			}
			part.literal, part.tokens = b.String(), nil
		}
		w.parts, tokens = append(w.parts, part), nil
	}
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; c {
		case '/':
			flush(i)
			i++
			start = i
			continue
		case '?':
			tokens = append(tokens, wildToken{kind: wildOne})
		case '*':
			if len(tokens) == 0 || tokens[len(tokens)-1].kind != wildMany {
				tokens = append(tokens, wildToken{kind: wildMany})
			}
		case '[':
			class, end := readClass(pattern, i)
			tokens = append(tokens, class)
			i = end
			continue
		case '\\':
			if i++; i == len(pattern) {
				tokens = append(tokens, wildToken{})
				continue
			}
			if pattern[i] == '/' { // an escaped slash separates like any other
				flush(i - 1)
				i++
				start = i
				continue
			}
			tokens = append(tokens, wildToken{kind: wildChar, char: pattern[i]})
		default:
			tokens = append(tokens, wildToken{kind: wildChar, char: c})
		}
		i++
	}
	flush(len(pattern))
	return w
}

// readClass reads a class such as [a-z], [!.] or [[:digit:]] that begins at start, and returns
// where the pattern goes on. One without an end is never matched and takes the rest of the pattern
// with it.
func readClass(pattern string, start int) (wildToken, int) {
	never := wildToken{}
	i, negated := start+1, false
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		negated = true
		i++
	}
	chars := new([256]bool)
	previous, ranged := byte(0), false // ranged: previous can begin a range
	for first := true; ; first = false {
		if i >= len(pattern) {
			return never, len(pattern)
		}
		c := pattern[i]
		switch {
		case c == ']' && !first:
			if negated {
				for n := range chars {
					chars[n] = !chars[n]
				}
			}
			chars['/'] = false
			return wildToken{kind: wildClass, chars: chars}, i + 1
		case c == '\\':
			if i++; i >= len(pattern) {
				return never, len(pattern)
			}
			chars[pattern[i]] = true
			previous, ranged = pattern[i], true
		case c == '-' && ranged && i+1 < len(pattern) && pattern[i+1] != ']':
			i++
			if pattern[i] == '\\' {
				if i++; i >= len(pattern) {
					return never, len(pattern)
				}
			}
			for n := int(previous); n <= int(pattern[i]); n++ {
				chars[n] = true
			}
			ranged = false
		case c == '[' && i+1 < len(pattern) && pattern[i+1] == ':':
			end := strings.IndexByte(pattern[i+2:], ']')
			if end < 0 {
				return never, len(pattern)
			}
			name, named := strings.CutSuffix(pattern[i+2:i+2+end], ":")
			if !named { // an ordinary bracket
				chars['['] = true
				previous, ranged = '[', true
				break
			}
			if !addNamed(chars, name) {
				return never, len(pattern)
			}
			i += 2 + end
			ranged = false
		default:
			chars[c] = true
			previous, ranged = c, true
		}
		i++
	}
}

// addNamed adds the characters of a class such as alpha, as the C locale has them.
func addNamed(chars *[256]bool, name string) bool {
	upper := func(c int) bool { return c >= 'A' && c <= 'Z' }
	lower := func(c int) bool { return c >= 'a' && c <= 'z' }
	digit := func(c int) bool { return c >= '0' && c <= '9' }
	graph := func(c int) bool { return c > ' ' && c < 0x7f }
	of := map[string]func(int) bool{
		"alnum": func(c int) bool { return upper(c) || lower(c) || digit(c) },
		"alpha": func(c int) bool { return upper(c) || lower(c) },
		"blank": func(c int) bool { return c == ' ' || c == '\t' },
		"cntrl": func(c int) bool { return c < ' ' || c == 0x7f },
		"digit": digit, "graph": graph, "lower": lower, "upper": upper,
		"print":  func(c int) bool { return graph(c) || c == ' ' },
		"punct":  func(c int) bool { return graph(c) && !upper(c) && !lower(c) && !digit(c) },
		"space":  func(c int) bool { return c == ' ' || c >= '\t' && c <= '\r' },
		"xdigit": func(c int) bool { return digit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' },
	}[name]
	if of == nil {
		return false
	}
	for c := range 128 {
		chars[c] = chars[c] || of(c)
	}
	return true
}

// matches compares the pattern with a path, of which names are given. A ** at the end stands for at
// least one name.
func (w wildmatch) matches(names []string) bool {
	part, name := 0, 0
	retryPart, retryName := -1, 0
	for {
		switch {
		case part < len(w.parts) && w.parts[part].any:
			if part == len(w.parts)-1 {
				return name < len(names)
			}
			retryPart, retryName = part, name
			part++
			continue
		case part < len(w.parts) && name < len(names) && w.parts[part].matches(names[name]):
			part++
			name++
			continue
		case part == len(w.parts) && name == len(names):
			return true
		}
		if retryPart < 0 || retryName >= len(names) {
			return false
		}
		retryName++ // the ** takes one name more
		part, name = retryPart+1, retryName
	}
}

// matches compares one name.
func (p *wildPart) matches(name string) bool {
	if p.tokens == nil {
		return p.literal == name
	}
	token, at := 0, 0
	retryToken, retryAt := -1, 0
	for {
		switch {
		case token < len(p.tokens) && p.tokens[token].kind == wildMany:
			retryToken, retryAt = token, at
			token++
			continue
		case token < len(p.tokens) && at < len(name) && p.tokens[token].matches(name[at]):
			token++
			at++
			continue
		case token == len(p.tokens) && at == len(name):
			return true
		}
		if retryToken < 0 || retryAt >= len(name) {
			return false
		}
		retryAt++
		token, at = retryToken+1, retryAt
	}
}

func (t *wildToken) matches(c byte) bool {
	switch t.kind {
	case wildChar:
		return t.char == c
	case wildOne:
		return true
	case wildClass:
		return t.chars[c]
	default:
		return false
	}
}
