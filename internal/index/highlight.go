package index

import (
	"slices"
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

// Marks are the places of a text at which asked words stand, or names that have one as a part, from
// byte to byte, rising and apart from each other, and which words of the query they are.
func (m *Marker) Marks(text string) (places [][2]int, words []int) {
	for at := 0; at < len(text); {
		word, next := nextWord(text, at)
		if at = next; word == "" || len(word) > maxWord {
			continue
		}
		hit := false
		for _, term := range append(termsOf(word), frenchStems(word)...) {
			number, asked := m.asked[term]
			if hit = hit || asked; asked && !slices.Contains(words, number) {
				words = append(words, number)
			}
		}
		if hit {
			places = append(places, [2]int{next - len(word), next})
		}
	}
	return places, words
}
