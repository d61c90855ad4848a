package workspace

import (
	"path"
	"strings"
)

// glob is a pattern of an ignore file: of each name of a path what package path compares it with.
// It compares bytes, as git does, so patterns and names are in Latin-1. Matching costs at most the
// product of the lengths, whatever the pattern is (spec 12.5).
type glob []globPart

type globPart struct {
	any     bool   // **: any number of names
	literal string // where there is nothing but letters
	pattern string // else; what git takes for malformed matches nothing, as an empty pattern does
}

// globClasses are the ranges of the named classes, as the C locale has them.
var globClasses = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09", "graph": "!~",
	"lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ", "xdigit": "09AFaf",
}

// compileGlob reads a pattern. A class without an end takes the rest of it with it.
func compileGlob(text string) (out glob) {
	var pattern, literal strings.Builder
	wild, broken, start := false, false, 0
	end := func(at int) {
		part := globPart{any: at-start > 1 && strings.Trim(text[start:at], "*") == ""}
		switch {
		case broken:
		case wild:
			part.pattern = pattern.String()
		default:
			part.literal = literal.String()
		}
		out, wild = append(out, part), false
		pattern.Reset()
		literal.Reset()
	}
	for i := 0; i < len(text) && !broken; i++ {
		c, from := text[i], i
		if c == '\\' {
			if i++; i == len(text) {
				broken = true
				break
			}
			if c = text[i]; c != '/' { // an escaped slash separates like any other
				pattern.WriteString(`\` + latin1(text[i:i+1]))
				literal.WriteRune(rune(c))
				continue
			}
		}
		switch c {
		case '/':
			end(from)
			start = i + 1
		case '*', '?':
			pattern.WriteByte(c)
			wild = true
		case '[':
			length, class := globClass(text[i:])
			pattern.WriteString(class)
			wild, broken, i = true, class == "", i+length-1
		default:
			pattern.WriteRune(rune(c))
			literal.WriteRune(rune(c))
		}
	}
	end(len(text))
	return out
}

// globClass reads a class such as [a-z], [!.] or [[:digit:]] with which a text begins, and returns
// its length and what package path has for it; nothing where it has no end.
func globClass(text string) (length int, class string) {
	var b strings.Builder
	add := func(from, to byte) {
		b.WriteString(`\` + latin1(string([]byte{from})) + `-\` + latin1(string([]byte{to})))
	}
	b.WriteByte('[')
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		b.WriteByte('^')
		i++
	}
	previous := -1 // what a range can begin with
	for first := i; i < len(text); i++ {
		c := text[i]
		switch {
		case c == ']' && i > first:
			return i + 1, b.String() + "]"
		case c == '-' && previous >= 0 && i+1 < len(text) && text[i+1] != ']':
			if i++; text[i] == '\\' {
				i++
			}
			if i < len(text) {
				add(byte(previous), text[i])
			}
			previous = -1
			continue
		case strings.HasPrefix(text[i:], "[:"):
			inside, _, closed := strings.Cut(text[i+2:], "]")
			if !closed {
				return 0, ""
			}
			if name, named := strings.CutSuffix(inside, ":"); named {
				ranges := globClasses[name]
				if ranges == "" {
					return 0, ""
				}
				for ; ranges != ""; ranges = ranges[2:] {
					add(ranges[0], ranges[1])
				}
				i += len("[:") + len(inside)
				previous = -1
				continue
			}
		case c == '\\':
			if i++; i == len(text) {
				return 0, ""
			}
			c = text[i]
		}
		add(c, c)
		previous = int(c)
	}
	return 0, ""
}

// latin1 has a character for each byte of a text.
func latin1(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0 { // as in most names
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(rune(text[i]))
	}
	return b.String()
}

// matches compares the pattern with a path, of which names are given. A ** at the end stands for at
// least one name.
func (g glob) matches(names []string) bool {
	part, name := 0, 0
	retryPart, retryName := -1, 0
	for {
		switch {
		case part < len(g) && g[part].any:
			if part == len(g)-1 {
				return name < len(names)
			}
			retryPart, retryName = part, name
			part++
			continue
		case part < len(g) && name < len(names) && g[part].matches(names[name]):
			part++
			name++
			continue
		case part == len(g) && name == len(names):
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
func (p *globPart) matches(name string) bool {
	if p.pattern == "" {
		return p.literal == name
	}
	matched, _ := path.Match(p.pattern, name) // what is malformed is empty
	return matched
}
