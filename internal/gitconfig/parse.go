package gitconfig

import (
	"bytes"
	"strings"
)

// parse reads a file of git's configuration and calls each for every variable with a value. A key
// is section.key or section.subsection.key, with section and key in small letters. It reads what it
// can of a file that git would refuse.
func parse(data []byte, each func(key, value string)) {
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	p := parser{rest: string(data)}
	section := ""
	for p.rest != "" {
		switch c := p.rest[0]; {
		case c == '[':
			section = p.section()
		case c == '#' || c == ';':
			p.line()
		case isName(c):
			name := strings.ToLower(p.name())
			if value, ok := p.assigned(); ok && section != "" {
				value, _, _ = strings.Cut(value, "\x00") // git uses it as a string of C
				each(section+"."+name, value)
			}
		default:
			p.rest = p.rest[1:]
		}
	}
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
}

// parser is what of a file is still to be read.
type parser struct{ rest string }

// line drops the rest of a line.
func (p *parser) line() { _, p.rest, _ = strings.Cut(p.rest, "\n") }

// name is that of a variable.
func (p *parser) name() string {
	n := 0
	for n < len(p.rest) && isName(p.rest[n]) {
		n++
	}
	name := p.rest[:n]
	p.rest = p.rest[n:]
	return name
}

// section is a heading: [core], [filter "x"], or [filter.x].
func (p *parser) section() string {
	p.rest = p.rest[1:]
	n := strings.IndexAny(p.rest, "] \t\n")
	if n < 0 {
		p.rest = ""
		return ""
	}
	name := strings.ToLower(p.rest[:n])
	p.rest = strings.TrimLeft(p.rest[n:], " \t")
	if strings.HasPrefix(p.rest, `"`) {
		var below strings.Builder
		p.rest = p.rest[1:]
		for p.rest != "" && p.rest[0] != '"' && p.rest[0] != '\n' {
			if p.rest[0] == '\\' && len(p.rest) > 1 {
				p.rest = p.rest[1:]
			}
			below.WriteByte(p.rest[0])
			p.rest = p.rest[1:]
		}
		p.rest = strings.TrimPrefix(p.rest, `"`)
		name += "." + below.String()
	}
	p.rest = strings.TrimPrefix(p.rest, "]")
	return name
}

// assigned returns the value of a variable; false if it has none.
func (p *parser) assigned() (string, bool) {
	p.rest = strings.TrimLeft(p.rest, " \t")
	if !strings.HasPrefix(p.rest, "=") {
		p.line()
		return "", false
	}
	p.rest = strings.TrimLeft(p.rest[1:], " \t")
	var out strings.Builder
	quoted, kept := false, 0 // kept is how much of it does not end in spaces that mean nothing
	for p.rest != "" {
		c := p.rest[0]
		p.rest = p.rest[1:]
		switch {
		case c == '\n':
			return out.String()[:kept], true
		case c == '"':
			quoted = !quoted
			kept = out.Len()
			continue
		case (c == '#' || c == ';') && !quoted:
			p.line()
			return out.String()[:kept], true
		case c == '\\' && p.rest != "":
			c = p.rest[0]
			p.rest = p.rest[1:]
			if c == '\n' { // it goes on in the next line
				continue
			}
			out.WriteByte(escaped(c))
			kept = out.Len()
			continue
		}
		out.WriteByte(c)
		if quoted || c != ' ' && c != '\t' {
			kept = out.Len()
		}
	}
	return out.String()[:kept], true
}

// escaped returns the character of a letter behind a backslash.
func escaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	default:
		return c
	}
}
