package engine

import "strings"

// maxStreamed bounds what is kept of a reply that is cut off, in bytes.
const maxStreamed = 64 << 10

// partial is the beginning of a reply as people saw it, in a text that every store takes.
type partial struct {
	text strings.Builder // as it came: a character may come in two pieces
}

// add takes the next piece, or what fits of it.
func (p *partial) add(s string) { p.text.WriteString(s[:min(len(s), maxStreamed-p.text.Len())]) }

// String is what is stored.
func (p *partial) String() string {
	text := sanitizeText(p.text.String())
	if p.text.Len() < maxStreamed {
		return text
	}
	return strings.ToValidUTF8(text[:min(len(text), maxStreamed)], "") + "…"
}

// sanitizeText makes text that every store takes: valid UTF-8 without NUL.
func sanitizeText(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}
