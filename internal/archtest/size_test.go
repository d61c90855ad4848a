package archtest

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// Code lines, without blanks and comments, and the methods of an interface. They go down, but for
// what a feature needs.
const (
	maxProductLines = 93678
	maxSupportLines = 14202
	maxTestLines    = 74525
	maxInterface    = 15
)

// supportDir matches the packages that serve tests and measurements alone.
var supportDir = regexp.MustCompile(`(^|/)(storetest|providertest|wiretest|keyringtest|bench|crash|sim|invariant|` +
	`fault|archtest)(/|$)`)

// TestSize holds the code to the lines that it has now, and its interfaces to the widest one.
func TestSize(t *testing.T) {
	src := load(t)
	lines := map[string]int{}
	for _, f := range src.files {
		if ast.IsGenerated(f.syntax) {
			continue
		}
		kind := "product"
		switch {
		case f.test:
			kind = "tests"
		case supportDir.MatchString(f.pkg):
			kind = "support"
		}
		lines[kind] += codeLines(src, f)
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if in, ok := node.(*ast.InterfaceType); ok && !f.test && in.Methods.NumFields() > maxInterface {
				t.Errorf("%s: the interface has %d methods, at most %d are allowed", src.set.Position(in.Pos()),
					in.Methods.NumFields(), maxInterface)
			}
			return true
		})
	}
	for kind, most := range map[string]int{
		"product": maxProductLines, "support": maxSupportLines, "tests": maxTestLines,
	} {
		if lines[kind] > most {
			t.Errorf("%s has %d lines of code, at most %d are allowed", kind, lines[kind], most)
		}
	}
}

// codeLines counts the lines of a file that are neither blank nor in a comment of their own.
func codeLines(src *source, f *file) (count int) {
	comment := map[int]bool{}
	for _, group := range f.syntax.Comments {
		for line := src.set.Position(group.Pos()).Line; line <= src.set.Position(group.End()).Line; line++ {
			comment[line] = true
		}
	}
	number := 0
	for line := range strings.Lines(f.text) {
		number++
		text := strings.TrimSpace(line)
		isComment := comment[number] && (strings.HasPrefix(text, "//") || strings.HasPrefix(text, "/*"))
		if text != "" && !isComment {
			count++
		}
	}
	return count
}
