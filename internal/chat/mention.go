package chat

import (
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

// Look finds a path of the workspace that a person mentions with @, as a block without a type;
// false if nothing exists there.
type Look func(path string) (regie.EnrichmentBlock, bool)

// Mentions cuts a typed text into segments at the files and directories that it names: @path or
// @"path with spaces" at the beginning of a word (spec 7.3, 10.1). A name without a file stays
// text, as in addresses and names of people. A file named twice is read once. Mentions returns nil
// for a text without mentions, which is sent unchanged.
func Mentions(typed string, look Look) (out []regie.Segment) {
	seen, rest := map[string]bool{}, 0
	for i := 0; look != nil && i < len(typed); i++ {
		if typed[i] != '@' || !startsWord(typed[:i]) {
			continue
		}
		block, end, ok := look.findMention(typed, i+1)
		switch {
		case !ok:
		case seen[block.Path]:
			i = end - 1
		default:
			if i > rest {
				out = append(out, regie.Segment{Text: typed[rest:i]})
			}
			out = append(out, regie.Segment{Enrichment: &block})
			seen[block.Path], rest, i = true, end, end-1
		}
	}
	if rest > 0 && rest < len(typed) {
		out = append(out, regie.Segment{Text: typed[rest:]})
	}
	return out
}

// startsWord reports whether a word begins behind a text.
func startsWord(before string) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || unicode.IsSpace(r) || strings.ContainsRune("([{<\"'`«“‘„,;:", r)
}

// trailing characters may end a sentence or close a bracket: they belong to a mention only if a
// file has that name.
const trailing = ".,;:!?)]}>'`»”’…"

// findMention finds the mention at a place of a text, and its end. The longest existing name wins.
func (look Look) findMention(text string, from int) (block regie.EnrichmentBlock, end int, ok bool) {
	if name, quoted := strings.CutPrefix(text[from:], `"`); quoted {
		name, _, closed := strings.Cut(name, `"`)
		block, ok = look.resolveName(name)
		return block, from + len(name) + 2, ok && closed && !strings.ContainsAny(name, "\r\n")
	}
	name := text[from:]
	if i := strings.IndexFunc(name, func(r rune) bool { return unicode.IsSpace(r) || r == '"' }); i >= 0 {
		name = name[:i]
	}
	for first := true; name != ""; first = false {
		if block, ok = look.resolveName(name); ok && (first || block.Path != ".") {
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

func (look Look) resolveName(name string) (regie.EnrichmentBlock, bool) {
	block, ok := look(name)
	block.Type = regie.EnrichmentPointer
	return block, name != "" && ok && (block.Validate() == nil || filepath.IsAbs(name) && block.NamesImage())
}
