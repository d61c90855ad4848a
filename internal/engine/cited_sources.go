package engine

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// sourceList returns the sources of an answer from a web search, under their numbers in the text
// and without words, so that it is the same in every language. It is empty without sources.
func sourceList(sources []provider.Source) string {
	var b strings.Builder
	for i, source := range sources {
		if source.Title == "" && source.URL == "" {
			continue
		}
		b.WriteString("\n[" + strconv.Itoa(i+1) + "]")
		for _, said := range []string{source.Title, source.URL} {
			if said != "" {
				b.WriteString(" " + said)
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

// cites finds the number of a source.
var cites = regexp.MustCompile(`\[\d{1,2}\]`)

// withSources appends the list to the turn's last text, which has already streamed: it is stored
// with the turn, and later readers see it, the model too.
func withSources(parts []provider.Part, sources []provider.Source) []provider.Part {
	list := sourceList(sources)
	calls := slices.ContainsFunc(parts, func(p provider.Part) bool { return p.Type == regie.PartCall })
	// it searches at each step: of one on the way only what it names
	if list == "" || calls && !cites.MatchString(provider.JoinText(parts)) {
		return parts
	}
	parts = slices.Clone(parts)
	for i := range slices.Backward(parts) {
		if parts[i].Type == regie.PartText {
			parts[i].Text += list
			return parts
		}
	}
	return parts // calls without a word: there is nothing that the numbers stand in
}
