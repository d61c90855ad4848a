package dialect

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Stream finds the text of a reply while the reply streams in: what people read of it. It is a
// preview: where it is misled, the stored message has the text. The zero value is ready, and its
// cost is linear in what it is given.
type Stream struct {
	thinking bool   // inside a block of thinking
	inText   bool   // behind the quotation mark that begins the text
	ended    bool   // behind the one that ends it
	pending  string // what is not decided on yet
}

const (
	thinkOpen, thinkClose = "<think>", "</think>"
	maxPending            = 64 // bytes that are kept while the text has not begun
)

// textBegins matches the beginning of the text.
var textBegins = regexp.MustCompile(`"pre_text"\s*:\s*"`)

// Add takes the next piece of the reply and returns what it adds to the text.
func (s *Stream) Add(piece string) string {
	if s.ended {
		return ""
	}
	s.pending += piece
	if !s.inText && !s.findText() {
		s.pending = s.pending[max(0, len(s.pending)-maxPending):]
		return ""
	}
	end := 0
	for end < len(s.pending) && s.pending[end] != '"' {
		size := characterSize(s.pending[end:])
		if size == 0 {
			break
		}
		end += size
	}
	whole := s.pending[:end]
	s.ended, s.pending = strings.HasPrefix(s.pending[end:], `"`), s.pending[end:]
	text, _ := jsontext.AppendUnquote(nil, repair(`"`+whole+`"`)) // of half a pair it makes U+FFFD
	return storable(string(text))
}

// findText reports whether the text begins in the pending input, and drops what precedes it.
func (s *Stream) findText() bool {
	if !s.thinking {
		s.thinking = strings.HasPrefix(strings.TrimLeft(s.pending, "\uFEFF \t\r\n"), thinkOpen)
	}
	if s.thinking {
		_, rest, closed := strings.Cut(s.pending, thinkClose)
		if !closed {
			return false
		}
		s.thinking, s.pending = false, rest
	}
	if at := textBegins.FindStringIndex(s.pending); at != nil {
		s.inText, s.pending = true, s.pending[at[1]:]
	}
	return s.inText
}

// characterSize returns how many bytes the next character has as it is written, 0 where that cannot
// be said yet.
func characterSize(text string) int {
	var size int
	switch {
	case text[0] != '\\':
		if !utf8.FullRuneInString(text) {
			return 0
		}
		_, size = utf8.DecodeRuneInString(text)
	case len(text) < 2:
		return 0
	case text[1] != 'u':
		size = 2
	case len(text) >= 4 && strings.ContainsRune("dD", rune(text[2])) && strings.ContainsRune("89abAB", rune(text[3])):
		if size = 6; len(text) < 8 || text[6:8] == `\u` { // the second half of a pair may follow
			size = 12
		}
	default:
		size = 6
	}
	if size > len(text) {
		return 0
	}
	return size
}
