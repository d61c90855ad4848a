package dialect

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// Stream finds the text of a reply while the reply streams in: what people read of it. It is a
// preview, as lenient as the reader; where it is misled, the stored message has the text. The zero
// value is ready, and its cost is linear in what it is given.
type Stream struct {
	begun    bool   // the reply does not begin with a block of thinking, or that is over
	thinking bool   // inside that block
	pending  string // the beginning that may be one, or a tail that may be half its end

	mode    mode
	depth   int    // brackets that are open
	escaped bool   // inside a string, behind a backslash
	key     bool   // the string is a name of the reply's own
	expects bool   // a name of the reply's own comes next
	ours    bool   // the name was pre_text: its value comes next
	name    []byte // of the string that is a name
	escape  []byte // behind a backslash of the text
	high    rune   // the first half of a pair of the text
}

type mode int

const (
	seeking  mode = iota
	opened        // behind a bracket that may begin an object
	inObject      // between the strings of one
	inString      // inside a string that is not the text
	inText        // inside the text
	ended
)

const (
	thinkOpen, thinkClose = "<think>", "</think>"
	maxName               = 16 // bytes: no field has a longer name
)

// Add takes the next piece of the reply and returns what it adds to the text.
func (s *Stream) Add(piece string) string {
	if s.mode == ended || piece == "" {
		return ""
	}
	if !s.begun {
		piece = s.begin(piece)
	}
	var out strings.Builder
	for i := 0; i < len(piece) && s.mode != ended; i++ {
		if s.mode == inText {
			s.text(piece[i], &out)
		} else {
			s.outside(piece[i])
		}
	}
	return out.String()
}

// begin holds back what may be a block of thinking, and returns what follows it.
func (s *Stream) begin(piece string) string {
	s.pending += piece
	if !s.thinking {
		start := strings.TrimLeft(s.pending, "\uFEFF \t\r\n")
		switch {
		case strings.HasPrefix(start, thinkOpen):
			s.thinking, s.pending = true, start[len(thinkOpen):]
		case strings.HasPrefix(thinkOpen, start):
			s.pending = start
			return ""
		default:
			s.begun, s.pending = true, ""
			return start
		}
	}
	_, rest, closed := strings.Cut(s.pending, thinkClose)
	if !closed {
		s.pending = s.pending[max(0, len(s.pending)-len(thinkClose)):]
		return ""
	}
	s.begun, s.pending = true, ""
	return rest
}

// outside reads a byte that is not of the text.
func (s *Stream) outside(c byte) {
	switch s.mode {
	case seeking, opened:
		switch {
		case c == '{':
			s.mode = opened
		case s.mode == opened && c == '"':
			s.mode, s.depth, s.key, s.ours, s.name = inString, 1, true, false, s.name[:0]
		case s.mode == opened && !isSpace(c):
			s.mode = seeking
		}
	case inString:
		s.within(c)
	default:
		s.between(c)
	}
}

func (s *Stream) within(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.mode, s.ours = inObject, s.key && string(s.name) == "pre_text"
		s.key, s.expects = false, false
		return
	}
	if s.key && len(s.name) < maxName {
		s.name = append(s.name, c)
	}
}

func (s *Stream) between(c byte) {
	switch c {
	case '"':
		if s.ours {
			s.mode = inText
			return
		}
		s.mode, s.key, s.name = inString, s.expects && s.depth == 1, s.name[:0]
	case '{', '[':
		s.depth++
		s.ours = false
	case '}', ']':
		if s.depth--; s.depth == 0 {
			s.mode = seeking
		}
	case ',':
		s.expects, s.ours = s.depth == 1, false
	case ':', ' ', '\t', '\r', '\n':
	default: // a value that is no string
		s.ours = false
	}
}

// text reads a byte of the text.
func (s *Stream) text(c byte, out *strings.Builder) {
	switch {
	case len(s.escape) > 0:
		s.escape = append(s.escape, c)
		if s.escape[1] != 'u' || len(s.escape) == 6 {
			s.unescape(out)
			s.escape = s.escape[:0]
		}
	case c == '\\':
		s.escape = append(s.escape, c)
	case c == '"':
		s.flush(out)
		s.mode = ended
	case c == 0: // what the reader makes of it
		s.flush(out)
		out.WriteRune('\uFFFD')
	default:
		s.flush(out)
		out.WriteByte(c)
	}
}

// flush writes the mark for the first half of a pair that has no second.
func (s *Stream) flush(out *strings.Builder) {
	if s.high != 0 {
		out.WriteRune('\uFFFD')
		s.high = 0
	}
}

func (s *Stream) unescape(out *strings.Builder) {
	c := s.escape[1]
	if c != 'u' {
		s.flush(out)
		if at := strings.IndexByte(`bfnrt`, c); at >= 0 {
			c = "\b\f\n\r\t"[at]
		}
		out.WriteByte(c)
		return
	}
	n, err := strconv.ParseUint(string(s.escape[2:]), 16, 32)
	r := rune(n)
	switch {
	case err != nil:
		s.flush(out)
	case s.high != 0 && utf16.DecodeRune(s.high, r) != '\uFFFD':
		out.WriteRune(utf16.DecodeRune(s.high, r))
		s.high = 0
	case utf16.IsSurrogate(r):
		s.flush(out)
		s.high = r
	case r == 0:
		s.flush(out)
		out.WriteRune('\uFFFD')
	default:
		s.flush(out)
		out.WriteRune(r)
	}
}
