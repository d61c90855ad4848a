package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

// Look says what a person may name with @: what stands at a path of the workspace, as a block
// without a type, or false where nothing does.
type Look func(path string) (regie.EnrichmentBlock, bool)

// Mentions cuts what a person typed into segments where it names files or directories: @path or
// @"path with spaces" at the beginning of a word (spec 7.3, 10.1). What nothing stands at stays
// text, so addresses and names of people do; \@ is an @ that names nothing. What is named twice is
// read once. It returns nil for a text that names nothing, which is sent as it is.
func Mentions(typed string, look Look) []regie.Segment {
	if look == nil || !strings.ContainsRune(typed, '@') {
		return nil
	}
	m := mentions{look: look, seen: map[string]bool{}}
	rest := 0
	for i := 0; i < len(typed); i++ {
		if typed[i] != '@' {
			continue
		}
		from := i
		escaped := i > rest && typed[i-1] == '\\'
		if escaped {
			from--
		}
		if !begins(typed[:from]) {
			continue
		}
		block, end, ok := m.at(typed, i+1)
		switch {
		case !ok:
		case escaped: // without the mark that it is none
			m.text(typed[rest:from])
			m.text(typed[i:end])
			rest, i = end, end-1
			m.escaped = true
		case m.seen[block.Path]:
			i = end - 1
		default:
			m.text(typed[rest:i])
			m.seen[block.Path] = true
			m.out, m.found = append(m.out, regie.Segment{Enrichment: &block}), true
			rest, i = end, end-1
		}
	}
	if !m.found && !m.escaped {
		return nil
	}
	m.text(typed[rest:])
	return m.out
}

// mentions are the segments of a text on their way.
type mentions struct {
	look           Look
	out            []regie.Segment
	seen           map[string]bool
	found, escaped bool
}

// text adds a piece of text.
func (m *mentions) text(s string) {
	if s == "" {
		return
	}
	if n := len(m.out); n > 0 && m.out[n-1].Enrichment == nil {
		m.out[n-1].Text += s
		return
	}
	m.out = append(m.out, regie.Segment{Text: s})
}

// begins reports whether a word begins behind a text.
func begins(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || unicode.IsSpace(r) || strings.ContainsRune("([{<\"'`«“‘„,;:", r)
}

// trailing may end a sentence, or close what a mention stands in: it belongs to a mention only
// where a file is called so.
const trailing = ".,;:!?)]}>'`»”’…"

// at finds what is named at a place of a text, and where that ends. The longest name that there is
// counts.
func (m *mentions) at(text string, from int) (block regie.EnrichmentBlock, end int, ok bool) {
	if name, quoted := strings.CutPrefix(text[from:], `"`); quoted {
		name, _, closed := strings.Cut(name, `"`)
		if !closed || strings.ContainsAny(name, "\r\n") {
			return block, 0, false
		}
		block, ok = m.named(name)
		return block, from + len(name) + 2, ok
	}
	name := text[from:]
	if i := strings.IndexFunc(name, func(r rune) bool { return unicode.IsSpace(r) || r == '"' }); i >= 0 {
		name = name[:i]
	}
	for first := true; name != ""; first = false {
		if block, ok = m.named(name); ok && (first || block.Path != ".") {
			return block, from + len(name), true
		}
		r, size := utf8.DecodeLastRuneInString(name)
		if !strings.ContainsRune(trailing, r) {
			break
		}
		name = name[:len(name)-size]
	}
	return block, 0, false
}

func (m *mentions) named(name string) (regie.EnrichmentBlock, bool) {
	if name == "" {
		return regie.EnrichmentBlock{}, false
	}
	block, ok := m.look(name)
	block.Type = regie.EnrichmentPointer
	return block, ok && block.Validate() == nil
}
