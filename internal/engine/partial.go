package engine

import (
	"strings"
	"unicode/utf8"
)

// maxStreamed bounds what is kept of a reply that is cut off, in bytes.
const maxStreamed = 64 << 10

// partial is the beginning of a reply as people saw it: whole up to where it ends, and a text that
// every store takes.
type partial struct {
	text strings.Builder // as it came: a character may come in two pieces
	full bool            // the rest is not kept, also what would fit
}

// add takes the next piece, or what fits of it.
func (p *partial) add(s string) {
	if p.full {
		return
	}
	if room := maxStreamed - p.text.Len(); len(s) > room {
		p.full = true
		for room > 0 && !utf8.RuneStart(s[room]) {
			room--
		}
		s = s[:room]
	}
	p.text.WriteString(s)
}

// reset is for the next reply.
func (p *partial) reset() {
	p.text.Reset()
	p.full = false
}

// String is what is stored.
func (p *partial) String() string {
	text := sanitizeText(p.text.String())
	if !p.full && len(text) <= maxStreamed {
		return text
	}
	return strings.ToValidUTF8(text[:min(len(text), maxStreamed)], "") + "…"
}

// sanitizeText makes text that every store takes: valid UTF-8 without NUL.
func sanitizeText(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}
