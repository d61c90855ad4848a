package demo

import (
	"maps"
	"slices"
	"sync"

	"github.com/regie-run/regie/internal/spell"
)

// vocabulary are the words that say what to do, sorted, so that of two that are as near the same
// one is always taken.
var vocabulary = sync.OnceValue(func() []string {
	all := words("summarise summarize summary résume résumer résumé undo annule annuler help aide")
	for _, s := range []set{listing, reading, writing, appending, overwriting, editing, deleting, searching, counting} {
		maps.Copy(all, s)
	}
	var out []string
	for word := range all {
		if len(word) >= 4 && !common[word] {
			out = append(out, word)
		}
	}
	slices.Sort(out)
	return out
})

// common are words that say what to do in one place and something else in another, so nothing is
// taken for them.
var common = words("note notes make many look turn that this")

// mend finds the word that was probably meant where a person's finger slipped, or "".
func mend(word string) string {
	runes := []rune(word)
	most := 1
	if len(runes) >= 7 {
		most = 2
	}
	if len(runes) < 4 || len(runes) > 16 || english[word] || french[word] || joining[word] ||
		fillers[word] || nowhere[word] {
		return ""
	}
	best := ""
	for _, known := range vocabulary() {
		if d := spell.Distance(word, known); d > 0 && d <= most {
			best, most = known, d-1
		}
	}
	return best
}
