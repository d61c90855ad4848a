package index

import (
	"math/bits"
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
	memory   = 1 << 15 // words whose terms a splitter remembers
	maxTerms = 4096    // different terms of one text
)

// splitter makes the terms of texts: what is looked up in the index. It belongs to one goroutine.
type splitter struct {
	known map[string][]string // the terms of words
	count map[string]int
	order []string
	out   strings.Builder
}

func newSplitter() *splitter {
	return &splitter{known: map[string][]string{}, count: map[string]int{}}
}

// terms are those of a text, with a space after each. A term that occurs often is repeated less often: BM25 would not weigh it more for long either.
func (s *splitter) terms(text string) string {
	s.gather(text)
	s.out.Reset()
	for _, term := range s.order {
		for range bits.Len(uint(s.count[term])) {
			s.out.WriteString(term)
			s.out.WriteByte(' ')
		}
	}
	return s.out.String()
}

// gather leaves the different terms of a text in order, and how often each occurs in count.
func (s *splitter) gather(text string) {
	clear(s.count)
	s.order = s.order[:0]
	for at := 0; at < len(text); {
		word, next := nextWord(text, at)
		at = next
		if word == "" {
			continue
		}
		for _, term := range s.of(word) {
			n := s.count[term]
			if n == 0 {
				if len(s.order) == maxTerms {
					continue
				}
				s.order = append(s.order, term)
			}
			s.count[term] = n + 1
		}
	}
}

// nextWord is the word at some place or after it, and where to go on: letters, digits and what joins them in a name. The end of the text has none.
func nextWord(text string, at int) (word string, next int) {
	for at < len(text) {
		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[at:])
		}
		if isWordRune(r) {
			break
		}
		at += size
	}
	start := at
	for at < len(text) {
		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[at:])
		}
		if !isWordRune(r) {
			break
		}
		at += size
	}
	return text[start:at], at
}

func isWordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// of are the terms of a word as it stands in a text: of a name its parts, the whole of it, and the stems of all that is a word.
func (s *splitter) of(word string) []string {
	if len(word) > maxWord {
		return nil
	}
	if terms, ok := s.known[word]; ok {
		return terms
	}
	terms := termsOf(word)
	if len(s.known) >= memory {
		clear(s.known)
	}
	s.known[strings.Clone(word)] = terms
	return terms
}

// termsOf splits one word.
func termsOf(word string) []string {
	var out []string
	add := func(term string) {
		for _, had := range out {
			if had == term {
				return
			}
		}
		if term != "" {
			out = append(out, term)
		}
	}
	parts := splitName(norm.NFC.String(word))
	for _, part := range parts {
		for _, term := range stems(part) {
			add(term)
		}
	}
	if len(parts) > 1 {
		add(fold(strings.ToLower(strings.Join(parts, ""))))
	}
	return out
}

// splitName takes a name apart: at _, between a small letter and a capital, before the last of several capitals (HTTPServer), and between letters and
// digits. Writing without spaces is cut into pairs of characters.
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
		case unspaced(r):
			flush(i)
			if i+1 < len(runes) && unspaced(runes[i+1]) {
				out = append(out, string(runes[i:i+2]))
			} else if i == 0 || !unspaced(runes[i-1]) {
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
		case unicode.IsDigit(r) != unicode.IsDigit(before):
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

// unspaced reports whether a character belongs to a writing that puts no spaces between words.
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// stems are the stems of one word in English and in French, without accents: nobody knows which of the two a word of a program is. Where a word has
// accents its stem without them is there too, because people leave them out.
func stems(word string) []string {
	word = strings.ToLower(word)
	plain := fold(word)
	if len(word) < 3 || len(word) > maxStem || !latin(plain) {
		return []string{plain}
	}
	out := []string{fold(english.Stem(plain, true))}
	for _, form := range []string{word, plain} {
		if term := fold(french.Stem(form, true)); term != out[0] && (len(out) < 2 || term != out[1]) {
			out = append(out, term)
		}
		if form == plain || word == plain {
			break
		}
	}
	return out
}

func latin(word string) bool {
	for i := range len(word) {
		if word[i] < 'a' || word[i] > 'z' {
			return false
		}
	}
	return true
}

// fold takes the accents off Latin letters.
func fold(word string) string {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			return foldAccents(word)
		}
	}
	return word
}

var ligatures = strings.NewReplacer("œ", "oe", "æ", "ae", "ß", "ss", "ø", "o", "ł", "l", "đ", "d", "ı", "i", "’", "")

func foldAccents(word string) string {
	return ligatures.Replace(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) && r < 0x0370 {
			return -1
		}
		return r
	}, norm.NFKD.String(word)))
}
