package index

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Marker finds the words of a text that a query asks for, as a search by words finds them: by their
// stems, in parts of names, and whole. It never changes.
type Marker struct{ asked map[string]int } // by term, the number of its word in the query

// NewMarker reads a query.
func NewMarker(query string) *Marker {
	m := &Marker{asked: map[string]int{}}
	for at, n := 0, 0; at < len(query) && n < maxAsked; n++ {
		word, next := nextWord(query, at)
		if at = next; word == "" || len(word) > maxWord {
			continue
		}
		for _, term := range append(termsOf(word), frenchStems(word)...) {
			if _, had := m.asked[term]; !had && !stopWords[term] {
				m.asked[term] = n
			}
		}
	}
	return m
}

// Marks are the places of a text at which asked words stand, from byte to byte, rising and apart
// from each other, and which words of the query they are.
func (m *Marker) Marks(text string) (places [][2]int, words []int) {
	add := func(from, to int, found []string) bool {
		hit := false
		for _, term := range found {
			word, ok := m.asked[term]
			if !ok {
				continue
			}
			if hit = true; !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
		if n := len(places); hit && n > 0 && places[n-1][1] == from {
			places[n-1][1] = to
		} else if hit {
			places = append(places, [2]int{from, to})
		}
		return hit
	}
	for at := 0; at < len(text); {
		word, next := nextWord(text, at)
		from := next - len(word)
		at = next
		if word == "" || len(word) > maxWord {
			continue
		}
		if isNumber(word) || !norm.NFC.IsNormalString(word) {
			add(from, next, append(termsOf(word), frenchStems(word)...))
			continue
		}
		parts := splitName(word)
		if len(parts) > 1 && add(from, next, []string{fold(strings.ToLower(strings.Join(parts, "")))}) {
			continue
		}
		for end, i := 0, 0; i < len(parts); i++ {
			begin := strings.Index(word[end:], parts[i])
			if begin < 0 { // a pair of characters that the one before has begun
				continue
			}
			begin += end
			end = begin + len(parts[i])
			if len(parts) == 1 || len(parts[i]) > 1 {
				add(from+begin, from+end, append(termsOf(parts[i]), frenchStems(parts[i])...))
			}
		}
	}
	return places, words
}
