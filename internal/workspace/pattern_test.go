package workspace_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/workspace"
)

// Expressions of many states and texts that one of many parts needs.
func TestSearchManyStates(t *testing.T) {
	p := newPlace(t)
	random := rand.New(rand.NewPCG(7, 7))
	word := func(letters string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(letters[random.IntN(len(letters))])
		}
		return b.String()
	}
	var often, never strings.Builder
	for range 200 {
		often.WriteString(strings.Repeat(word("ab", 16)+"é\n", 40))
	}
	for range 100 {
		never.WriteString(word("ab", 60) + "é\n")
	}
	kinds := "é" // so many that a table holds few states
	for c := 'c'; c <= 'z'; c++ {
		kinds += "|" + string(c) + string(c)
	}
	for _, expression := range []string{`a[ab]{14}(?:` + kinds + ")", `a[ab]{14}b?\bé$`, `(?:a[ab]{13}|b[ab]{15})a\w*é`} {
		for _, text := range []string{often.String(), never.String(), strings.TrimSuffix(never.String(), "\n"), often.String() + never.String()} {
			compareNaive(t, p, text, workspace.Query{Text: expression, Regex: true})
		}
	}
}

// What assertions there are, beside each other and beside letters of each kind.
func TestSearchAssertions(t *testing.T) {
	p := newPlace(t)
	random := rand.New(rand.NewPCG(8, 8))
	pieces := []string{`\b`, `\B`, `^`, `$`, `\A`, `\z`, `a`, `é`, `\w`, `\W`, `.`, `[^a]`, ` `, `a*`, `(?:a|é)+`, `\s?`, `[K]`, `\pL`, `-`}
	letters := []string{"a", "é", " ", "-", "\n", "\r\n", "\u212A", "K", "\xc3", "\xff", "\uFFFD"}
	for range 2000 {
		expression, text := "", ""
		for range 1 + random.IntN(5) {
			expression += pieces[random.IntN(len(pieces))]
		}
		for range random.IntN(12) {
			text += letters[random.IntN(len(letters))]
		}
		compareNaive(t, p, text, workspace.Query{Text: expression, Regex: true, CaseSensitive: random.IntN(2) == 0})
		if t.Failed() {
			return
		}
	}
}

// Ignore files below each other hold up to a bound together; an end of the search is obeyed between
// two entries.
func TestSearchHostileIgnores(t *testing.T) {
	p := newPlace(t)
	filler := strings.Repeat("#"+strings.Repeat("x", 999)+"\n", 1000) // a million bytes that say nothing
	dir := ""
	for i := range 6 {
		dir += fmt.Sprintf("d%d/", i)
		p.file(dir+".gitignore", filler+fmt.Sprintf("ignored%d\n", i))
		p.file(dir+fmt.Sprintf("ignored%d", i), "needle\n")
	}
	got, seen := p.lines(workspace.Query{Text: "needle"})
	if fmt.Sprint(got) != "[d0/d1/d2/d3/d4/ignored4:1 d0/d1/d2/d3/d4/d5/ignored5:1]" || seen.Ignored != 4 {
		t.Errorf("%v %+v", got, seen)
	}
	for i := range 50 {
		p.file(fmt.Sprintf("many/%d", i), "needle\n")
	}
	ctx, cancel := context.WithCancel(t.Context())
	looked := 0
	seen, err := p.root.Search(ctx, workspace.Query{Text: "needle", Path: "many", Most: 9, Wanted: func(string) bool { looked++; cancel(); return true }}, func(workspace.Match) bool { return true })
	if err != nil || looked != 1 || !seen.Stopped {
		t.Errorf("%d entries were looked at: %+v %v", looked, seen, err)
	}
}
