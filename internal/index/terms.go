package index

import (
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"github.com/kljensen/snowball/french"
	"golang.org/x/text/unicode/norm"
)

const (
	maxWord  = 64      // bytes of a word; what is longer is data
	maxStem  = 32      // bytes of a word that is stemmed
	maxKnown = 1 << 16 // words whose terms a splitter remembers
	maxTerms = 4096    // different terms of one text

	// A text with so many words that are French alone is taken for French.
	frenchWords = 3
)

// splitter makes the terms of texts, by which the index finds them. A term is letters and digits,
// small and without accents. The splitter remembers the terms of words, because a workspace has few
// different ones. It belongs to one goroutine.
type splitter struct {
	known map[string]*word // as they stand in texts

	// Of the text at hand.
	order []string
	times map[string]int
}

// word holds the terms of a word: of its parts, with English stems, and of the whole.
type word struct {
	terms    []string
	french   []string // others, with French stems
	isFrench bool     // no other language has it
}

func newSplitter() *splitter {
	return &splitter{known: map[string]*word{}, times: map[string]int{}}
}

// spellTerms returns the terms of a text for FTS5, each followed by a space. It repeats a term with
// n occurrences log2(n)+1 times: BM25 would hardly weigh more of them.
func (s *splitter) spellTerms(text string) string {
	s.splitTerms(text, false)
	var out strings.Builder
	for _, term := range s.order {
		for range bits.Len(uint(s.times[term])) {
			out.WriteString(term)
			out.WriteByte(' ')
		}
	}
	return out.String()
}

// splitTerms leaves the different terms of a text in order. French stems are among them where the
// text looks French, or where both is true.
func (s *splitter) splitTerms(text string, both bool) {
	s.order = s.order[:0]
	clear(s.times)
	var words []*word
	french := 0
	for at := 0; at < len(text); {
		name, next := nextWord(text, at)
		if at = next; name == "" || len(name) > maxWord {
			continue
		}
		w := s.lookUp(name)
		if w.isFrench {
			french++
		}
		words = append(words, w)
		s.countTerms(w.terms)
	}
	if !both && french < frenchWords {
		return
	}
	for _, w := range words {
		s.countTerms(w.french)
	}
}

func (s *splitter) countTerms(terms []string) {
	for _, term := range terms {
		n := s.times[term]
		if n == 0 && len(s.order) == maxTerms {
			continue
		}
		if s.times[term] = n + 1; n == 0 {
			s.order = append(s.order, term)
		}
	}
}

func (s *splitter) lookUp(name string) *word {
	if w := s.known[name]; w != nil {
		return w
	}
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	w := &word{terms: termsOf(name), isFrench: isFrench(name)}
	w.french = slices.DeleteFunc(frenchStems(name), func(term string) bool { return slices.Contains(w.terms, term) })
	s.known[strings.Clone(name)] = w // the text goes
	return w
}

// nextWord returns the word at some place or after it, and where to go on: letters, digits and what
// joins them in a name. The end of the text has none.
func nextWord(text string, at int) (word string, next int) {
	for at < len(text) {
		size, in := wordRune(text, at)
		if in {
			break
		}
		at += size
	}
	start := at
	for at < len(text) {
		size, in := wordRune(text, at)
		if !in {
			break
		}
		at += size
	}
	return text[start:at], at
}

// wordRune returns the size of the character at some place, and whether it belongs to words.
func wordRune(text string, at int) (size int, in bool) {
	b := text[at]
	if b < utf8.RuneSelf {
		return 1, b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || b == '_'
	}
	r, size := utf8.DecodeRuneInString(text[at:])
	return size, r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// termsOf returns the terms of a word in a text: for a name the English stems of its parts, and the
// whole name.
func termsOf(word string) []string {
	if isNumber(word) {
		return []string{foldAccents(strings.ToLower(strings.ReplaceAll(word, "_", "")))}
	}
	parts := splitName(norm.NFC.String(word))
	out := make([]string, 0, len(parts)+1)
	for _, part := range parts {
		if len(part) == 1 && len(parts) > 1 { // it says nothing without the rest
			continue
		}
		plain := foldAccents(strings.ToLower(part))
		if hasStem(plain) {
			plain = english.Stem(plain, true)
		}
		out = appendNew(out, plain)
	}
	if len(parts) > 1 && strings.IndexFunc(word, isUnspaced) < 0 {
		out = appendNew(out, foldAccents(strings.ToLower(strings.Join(parts, ""))))
	}
	return out
}

// frenchStems returns the French stems of a word's parts, of such as have accents also the stems
// that they have without: people leave them out.
func frenchStems(word string) []string {
	var out []string
	if isNumber(word) {
		return out
	}
	for _, part := range splitName(norm.NFC.String(word)) {
		part = strings.ToLower(part)
		if plain := foldAccents(part); hasStem(plain) {
			out = appendNew(appendNew(out, foldAccents(french.Stem(part, true))), french.Stem(plain, true))
		}
	}
	return out
}

func appendNew(to []string, term string) []string {
	if term == "" || slices.Contains(to, term) {
		return to
	}
	return append(to, term)
}

// isNumber reports whether a word is a number, or data.
func isNumber(word string) bool { return word[0] >= '0' && word[0] <= '9' }

// hasStem reports whether a word, small and without accents, has a stem.
func hasStem(plain string) bool {
	if len(plain) < 3 || len(plain) > maxStem {
		return false
	}
	for i := range len(plain) {
		if plain[i] < 'a' || plain[i] > 'z' {
			return false
		}
	}
	return true
}

// splitName takes a name apart: at _, between a small letter and a capital, before the last of
// several capitals (HTTPServer), and between letters and digits. Writing without spaces is cut into
// pairs of characters.
func splitName(name string) []string {
	var out []string
	runes := []rune(name)
	start := 0
	flush := func(end int) {
		if end > start {
			out = append(out, string(runes[start:end]))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case r == '_':
			flush(i)
			start = i + 1
			continue
		case isUnspaced(r):
			flush(i)
			if i+1 < len(runes) && isUnspaced(runes[i+1]) {
				out = append(out, string(runes[i:i+2]))
			} else if i == 0 || !isUnspaced(runes[i-1]) {
				out = append(out, string(r))
			}
			start = i + 1
			continue
		}
		if i == start {
			continue
		}
		before := runes[i-1]
		switch {
		case isDigit(r) != isDigit(before):
			flush(i)
		case unicode.IsUpper(r) && !unicode.IsUpper(before):
			flush(i)
		case unicode.IsLower(r) && unicode.IsUpper(before) && i-1 > start:
			flush(i - 1)
		}
	}
	flush(len(runes))
	return out
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' || r >= utf8.RuneSelf && unicode.IsDigit(r) }

// isUnspaced reports whether a character belongs to a writing that puts no spaces between words.
func isUnspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar)
}

// foldAccents takes the accents off Latin letters.
func foldAccents(word string) string {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			return foldLetters(word)
		}
	}
	return word
}

var ligatures = strings.NewReplacer("œ", "oe", "æ", "ae", "ß", "ss", "ø", "o", "ł", "l", "đ", "d", "ı", "i")

func foldLetters(word string) string {
	return ligatures.Replace(strings.Map(func(r rune) rune {
		if r >= 0x0300 && r < 0x0370 { // what NFKD takes off a letter
			return -1
		}
		return r
	}, norm.NFKD.String(word)))
}
