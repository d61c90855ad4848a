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

	"github.com/regie-run/regie/internal/index/posting"
)

const (
	maxWord  = 64      // bytes of a word; what is longer is data
	maxStem  = 32      // bytes of a word that is stemmed
	memory   = 1 << 15 // words whose terms a splitter remembers, and as many again that it met before
	maxTerms = 4096    // different terms of one text

	// A text with so many words that are French alone is taken for French.
	frenchWords = 3
)

// splitter makes the terms of texts: what is looked up in the index. A term is letters and digits,
// small and without accents. The splitter remembers what it made of words, because a workspace has
// few of them. It belongs to one goroutine.
type splitter struct {
	// by the word as it stands in texts: those that were met since the map was made, and those
	// before them
	lately, before map[string]*word
	interned       map[string]*term

	// Of the text at hand.
	turn  int // its number
	words []*word
	order []*term

	// Of the chunk at hand.
	part       int // its number
	chunkTerms []posting.Term
}

// word is what is known of one.
type word struct {
	name   string
	terms  []*term // of its parts, with English stems, and of the whole
	more   []*term // with French stems; made when they are first asked for
	french bool    // it is French, and nothing else
	turn   int     // of the text that it was met in last
}

// term is one, how often it stands in the text at hand, and where in the terms of the chunk.
type term struct {
	text     string
	turn     int
	times    int
	part, at int
}

func newSplitter() *splitter {
	return &splitter{lately: map[string]*word{}, interned: map[string]*term{}}
}

// The weights of BM25: a term in a path or in a name says more than one in the text.
const (
	pathWeight   = 2
	symbolWeight = 4
	textWeight   = 1
)

// chunk is the terms of a chunk, each of them once, and how many they are. A term that occurs often
// in one place counts less often: BM25 would not weigh it more for long either. What it returns is
// good until the next call.
func (s *splitter) chunk(path, symbol, text string) (terms []posting.Term, length int) {
	s.age()
	s.part++
	s.chunkTerms = s.chunkTerms[:0]
	for _, field := range []struct {
		text   string
		weight int
	}{{path, pathWeight}, {symbol, symbolWeight}, {text, textWeight}} {
		s.gather(field.text, false)
		for _, t := range s.order {
			times := bits.Len(uint(t.times))
			length += times
			if t.part != s.part {
				t.part, t.at = s.part, len(s.chunkTerms)
				s.chunkTerms = append(s.chunkTerms, posting.Term{Text: t.text})
			}
			s.chunkTerms[t.at].Weight += field.weight * times
		}
	}
	return s.chunkTerms, length
}

// gather leaves the different terms of a text in order. French stems are among them where the text
// looks French, or for both.
func (s *splitter) gather(text string, both bool) {
	s.turn++
	s.order, s.words = s.order[:0], s.words[:0]
	french := 0
	for at := 0; at < len(text); {
		name, next := nextWord(text, at)
		if at = next; name == "" || len(name) > maxWord {
			continue
		}
		w := s.word(name)
		if w.french {
			french++
		}
		if w.turn != s.turn {
			w.turn = s.turn
			s.words = append(s.words, w)
		}
		s.add(w.terms)
	}
	if !both && french < frenchWords {
		return
	}
	for _, w := range s.words {
		if w.more == nil {
			w.more = slices.DeleteFunc(s.intern(frenchStems(w.name)),
				func(t *term) bool { return slices.Contains(w.terms, t) })
		}
		s.add(w.more)
	}
}

func (s *splitter) add(terms []*term) {
	for _, t := range terms {
		if t.turn != s.turn {
			if len(s.order) == maxTerms {
				continue
			}
			t.turn, t.times = s.turn, 0
			s.order = append(s.order, t)
		}
		t.times++
	}
}

// word is what is known of a word, as it stands in a text.
func (s *splitter) word(name string) *word {
	if w := s.lately[name]; w != nil {
		return w
	}
	w := s.before[name]
	if w == nil {
		name = strings.Clone(name) // the text goes
		w = &word{name: name, terms: s.intern(termsOf(name)), french: isFrench(name)}
	} else {
		s.renew(w.terms)
		s.renew(w.more)
	}
	s.lately[name] = w
	return w
}

// age forgets words that have not been met for long.
func (s *splitter) age() {
	if len(s.lately) >= memory {
		s.before, s.lately = s.lately, make(map[string]*word, memory)
		s.interned = make(map[string]*term, memory)
	}
}

// renew has a word that was met before again share its terms with all others.
func (s *splitter) renew(terms []*term) {
	for i, t := range terms {
		if one := s.interned[t.text]; one != nil {
			terms[i] = one
		} else {
			s.interned[t.text] = t
		}
	}
}

func (s *splitter) intern(texts []string) []*term {
	out := make([]*term, 0, len(texts))
	for _, text := range texts {
		t := s.interned[text]
		if t == nil {
			t = &term{text: text}
			s.interned[text] = t
		}
		out = append(out, t)
	}
	return out
}

// nextWord is the word at some place or after it, and where to go on: letters, digits and what
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

// wordRune is the size of the character at some place, and whether it belongs to words.
func wordRune(text string, at int) (size int, in bool) {
	b := text[at]
	if b < utf8.RuneSelf {
		return 1, b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || b == '_'
	}
	r, size := utf8.DecodeRuneInString(text[at:])
	return size, r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// termsOf are the terms of a word as it stands in a text: of a name its parts, each by its English
// stem, and the whole of it.
func termsOf(word string) []string {
	if isNumber(word) {
		return []string{fold(strings.ToLower(strings.ReplaceAll(word, "_", "")))}
	}
	parts := splitName(norm.NFC.String(word))
	out := make([]string, 0, len(parts)+1)
	for _, part := range parts {
		if len(part) == 1 && len(parts) > 1 { // it says nothing without the rest
			continue
		}
		plain := fold(strings.ToLower(part))
		if stemmed(plain) {
			plain = english.Stem(plain, true)
		}
		out = appendNew(out, plain)
	}
	if len(parts) > 1 && strings.IndexFunc(word, unspaced) < 0 {
		out = appendNew(out, fold(strings.ToLower(strings.Join(parts, ""))))
	}
	return out
}

// frenchStems are the French stems of a word's parts, of such as have accents also the stems that
// they have without: people leave them out.
func frenchStems(word string) []string {
	var out []string
	if isNumber(word) {
		return out
	}
	for _, part := range splitName(norm.NFC.String(word)) {
		part = strings.ToLower(part)
		if plain := fold(part); stemmed(plain) {
			out = appendNew(appendNew(out, fold(french.Stem(part, true))), french.Stem(plain, true))
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

// stemmed reports whether a word, small and without accents, has a stem.
func stemmed(plain string) bool {
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

// unspaced reports whether a character belongs to a writing that puts no spaces between words.
func unspaced(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar)
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

var ligatures = strings.NewReplacer("œ", "oe", "æ", "ae", "ß", "ss", "ø", "o", "ł", "l", "đ", "d", "ı", "i")

func foldAccents(word string) string {
	return ligatures.Replace(strings.Map(func(r rune) rune {
		if r >= 0x0300 && r < 0x0370 { // what NFKD takes off a letter
			return -1
		}
		return r
	}, norm.NFKD.String(word)))
}
