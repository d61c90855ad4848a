package workspace

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

// Limits of a query (spec 12.5). RE2 expressions cost at most their size for each byte.
const (
	maxQuery   = 1000 // bytes
	maxProgram = 2000 // instructions of an expression
)

// pattern is a compiled query, shared by the searches.
type pattern struct {
	expression *regexp.Regexp // for one line
	needle     []byte         // text in every match; empty if unknown
	fold       bool           // the needle is in small letters, and capitals are the same
	exact      bool           // the needle is the match
}

// compilePattern reads a query. It returns CodeBadPattern for one that does not parse, is too
// costly, or speaks of several lines.
func compilePattern(text string, isRegex, caseSensitive bool) (*pattern, error) {
	switch {
	case text == "":
		return nil, regie.Errorf(regie.CodeBadPattern, "the query is empty")
	case len(text) > maxQuery:
		return nil, regie.Errorf(regie.CodeBadPattern, "the query has %d bytes, at most %d are allowed", len(text),
			maxQuery)
	case !utf8.ValidString(text):
		return nil, regie.Errorf(regie.CodeBadPattern, "the query is not text")
	case strings.ContainsAny(text, "\r\n\x00"):
		return nil, regie.Errorf(regie.CodeBadPattern,
			"the query contains a line feed or NUL: lines are searched one by one, so search for one of its lines")
	}
	expression, flags := text, "m"
	if !isRegex {
		expression = regexp.QuoteMeta(text)
	}
	if !caseSensitive {
		flags = "mi"
	}
	// alone: its errors name what was written, and it closes no group of ours
	_, err := syntax.Parse(expression, syntax.Perl)
	var p pattern
	if err == nil {
		p.expression, err = regexp.Compile("(?" + flags + ":" + expression + ")")
	}
	if err != nil {
		return nil, regie.Errorf(regie.CodeBadPattern,
			"the expression does not parse: %v (the syntax is RE2's: without look-around and back references)", err)
	}
	tree, err := syntax.Parse(p.expression.String(), syntax.Perl)
	var program *syntax.Prog
	if err == nil {
		tree = tree.Simplify()
		program, err = syntax.Compile(tree)
	}
	if err != nil || len(program.Inst) > maxProgram {
		return nil, regie.Errorf(regie.CodeBadPattern, "the expression is too expensive: use smaller repetitions")
	}
	p.needle, p.fold = requiredText(tree)
	p.exact = !isRegex && len(p.needle) == len(text)
	return &p, nil
}

// requiredText returns the longest text found that every match of an expression contains. It is in
// small letters if fold is true.
func requiredText(tree *syntax.Regexp) (longest []byte, fold bool) {
	switch tree.Op {
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase != 0 {
			return foldableRun(tree.Rune), true
		}
		return []byte(string(tree.Rune)), false
	case syntax.OpCapture, syntax.OpPlus:
		return requiredText(tree.Sub[0])
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			if text, folds := requiredText(sub); len(text) > len(longest) {
				longest, fold = text, folds
			}
		}
	}
	return longest, fold
}

// foldableRun returns the longest run of characters, in small letters, that have no other cases
// than ASCII's. A k and an s have one each.
func foldableRun(text []rune) (longest []byte) {
	var run []byte
	for _, r := range text {
		small := unicode.ToLower(r)
		if small >= utf8.RuneSelf || small == 'k' || small == 's' {
			run = nil
			continue
		}
		if run = append(run, byte(small)); len(run) > len(longest) {
			longest = bytes.Clone(run)
		}
	}
	return longest
}

// maxPiece is how many bytes of a line an expression is matched with at once: the costliest takes
// about a second for so many.
const maxPiece = 64 << 10

// setText takes another text of whole lines.
func (s *scanner) setText(text []byte) {
	s.text, s.folded = text, s.folded[:0]
	if !s.fold {
		return
	}
	for _, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		s.folded = append(s.folded, c)
	}
}

// nextMatch returns the first line at or after from that holds a match, and where that begins; from
// is the beginning of a line. Without one, found is false.
func (s *scanner) nextMatch(from int) (line [2]int, match int, found bool) {
	in := s.text
	if s.fold {
		in = s.folded
	}
	for from < len(in) && s.ctx.Err() == nil {
		at := bytes.Index(in[from:], s.needle)
		if at < 0 {
			break
		}
		at += from
		line = lineAround(s.text, at)
		if s.exact {
			return line, at, true
		}
		first, last := max(line[0], at-maxPiece/4), min(line[1], at+maxPiece)
		content := bytes.TrimSuffix(s.text[first:last], []byte("\r"))
		if m := s.expression.FindIndex(content); m != nil {
			return line, first + m[0], true
		}
		if from = last; last == line[1] {
			from++
		}
	}
	return line, 0, false
}

// lineAround returns the line that a place lies in, without its line feed.
func lineAround(text []byte, at int) [2]int {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	if end := bytes.IndexByte(text[at:], '\n'); end >= 0 {
		return [2]int{start, at + end}
	}
	return [2]int{start, len(text)}
}
