package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxMethods bounds the methods of a type.
const maxMethods = 40

// Ratchets of names and prose, in thousandths. They only go down.
const (
	maxOneWord  = 180 // private functions with a name of one word, of all private functions
	maxIndirect = 3   // indirect words, for 1,000 lines of comments
)

var (
	oneWord  = regexp.MustCompile(`^[a-z0-9]+$`)
	indirect = regexp.MustCompile(`(?i)\b(whoever|whatever|whose|of which|in which|that which|nobody|somebody|` +
		`anybody|is told|are told|is said|is asked|has it that|beside|in place of|of before|stands|is none|` +
		`it is that|by itself)\b`)
)

// measureStyle counts the types' methods, the names and the words of all code that is no test.
func measureStyle(src *source) (methods map[string]int, oneWords, indirects int) {
	methods = map[string]int{}
	private, short, lines, words := 0, 0, 0, 0
	for _, f := range src.files {
		if f.test || ast.IsGenerated(f.syntax) {
			continue
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if name := fn.Name.Name; !fn.Name.IsExported() && name != "main" && name != "init" {
				private++
				if oneWord.MatchString(name) {
					short++
				}
			}
			if fn.Recv != nil {
				methods[f.pkg+"."+receiver(fn)]++
			}
		}
		for line := range strings.Lines(f.text) {
			if text := strings.TrimSpace(line); strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "//go:") {
				lines++
				words += len(indirect.FindAllString(text, -1))
			}
		}
	}
	return methods, 1000 * short / max(private, 1), 1000 * words / max(lines, 1)
}

// findWideTypes returns the types with more methods than a type may have.
func findWideTypes(methods map[string]int) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if count := methods[name]; count > maxMethods {
			problems = append(problems, fmt.Sprintf("%s has %d methods, at most %d are allowed", name, count, maxMethods))
		}
	}
	return problems
}

// TestRatchets holds what is too wide, too short or too vague to what it is now.
func TestRatchets(t *testing.T) {
	methods, oneWords, indirects := measureStyle(load(t))
	for _, problem := range findWideTypes(methods) {
		t.Error(problem)
	}
	if oneWords > maxOneWord {
		t.Errorf("%d of 1,000 private functions have a name of one word, at most %d may", oneWords, maxOneWord)
	}
	if indirects > maxIndirect {
		t.Errorf("1,000 lines of comments have %d indirect words, at most %d may be", indirects, maxIndirect)
	}
}

// TestRatchetsCanFail shows the ratchets what they must catch.
func TestRatchetsCanFail(t *testing.T) {
	wide := "package tool\ntype T int\n"
	for i := range maxMethods + 1 {
		wide += fmt.Sprintf("func (t *T) doThing%d() {}\n", i)
	}
	methods, oneWords, indirects := measureStyle(parse(t, map[string]string{
		"internal/tool/x.go": wide + "// take is told.\nfunc take() {}\n",
	}))
	if oneWords != 1000/(maxMethods+2) || indirects != 1000 {
		t.Errorf("counted %d and %d", oneWords, indirects)
	}
	want := "internal/tool.T has 41 methods, at most 40 are allowed"
	if got := strings.Join(findWideTypes(methods), "\n"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
