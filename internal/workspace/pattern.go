package workspace

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

// Bounds of what is looked for (spec 12.5). Expressions are those of RE2: they cost at most their
// size for each byte.
const (
	maxQuery   = 1000 // bytes
	maxProgram = 2000 // instructions of an expression
	maxNeedles = 16   // texts of which one must stand in what an expression matches
)

// pattern is what is looked for, read once and shared.
type pattern struct {
	needles    []needle       // one of them stands in each match; none where nothing is known
	exact      bool           // the one needle is the match
	foreign    bool           // a k or an s is looked for in either case: each has a form that is no ASCII
	expression *regexp.Regexp // for one line; nil for a text whose case counts
}

// needle is a text that a match needs.
type needle struct {
	text []byte
	fold bool // text is in small letters, and capitals are the same in ASCII
}

// compilePattern reads a query. It returns CodeBadPattern for one that does not parse, is too
// costly, or speaks of several lines.
func compilePattern(text string, isRegex, caseSensitive bool) (*pattern, error) {
	switch {
	case text == "":
		return nil, regie.Errorf(regie.CodeBadPattern, "there is nothing to look for: the query is empty")
	case len(text) > maxQuery:
		return nil, regie.Errorf(regie.CodeBadPattern, "the query has %d bytes, at most %d are allowed", len(text),
			maxQuery)
	case !utf8.ValidString(text):
		return nil, regie.Errorf(regie.CodeBadPattern, "the query is not text")
	case strings.ContainsAny(text, "\r\n\x00"):
		return nil, regie.Errorf(regie.CodeBadPattern,
			"the query holds a line feed or NUL: lines are searched one by one, so look for one of its lines")
	case !isRegex && caseSensitive:
		return &pattern{needles: []needle{{text: []byte(text)}}, exact: true}, nil
	case !isRegex:
		p := &pattern{expression: regexp.MustCompile("(?i:" + regexp.QuoteMeta(text) + ")")}
		whole := p.require([]literal{{[]rune(text), true}})
		p.exact = whole && len(p.needles) == 1
		return p, nil
	}
	flags := "m"
	if !caseSensitive {
		flags = "mi"
	}
	// alone: its errors name what was written, and it closes no group of ours
	_, err := syntax.Parse(text, syntax.Perl)
	var p pattern
	if err == nil {
		p.expression, err = regexp.Compile("(?" + flags + ":" + text + ")")
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
		return nil, regie.Errorf(regie.CodeBadPattern, "the expression is too costly: use smaller repetitions")
	}
	p.require(required(tree))
	return &p, nil
}

// literal is a text of an expression.
type literal struct {
	runes []rune
	fold  bool
}

// required returns texts of which at least one stands in whatever the expression matches; nothing
// where there are none.
func required(tree *syntax.Regexp) []literal {
	switch tree.Op {
	case syntax.OpLiteral:
		return []literal{{tree.Rune, tree.Flags&syntax.FoldCase != 0}}
	case syntax.OpCapture, syntax.OpPlus:
		return required(tree.Sub[0])
	case syntax.OpConcat: // long texts are rarer than short ones, few than many
		var best []literal
		for _, sub := range tree.Sub {
			if set := required(sub); len(set) > 0 && (best == nil || rarity(set) > rarity(best)) {
				best = set
			}
		}
		return best
	case syntax.OpAlternate:
		var all []literal
		for _, sub := range tree.Sub {
			set := required(sub)
			if len(set) == 0 || len(all)+len(set) > maxNeedles {
				return nil
			}
			all = append(all, set...)
		}
		return all
	default:
		return nil
	}
}

func rarity(set []literal) int {
	shortest := maxQuery
	for _, l := range set {
		shortest = min(shortest, len(string(l.runes)))
	}
	return 4*shortest - len(set)
}

// require takes texts, of which one stands in each match, for needles: a text whose case counts as
// a whole, of another one the longest part that has no other cases than ASCII's. whole reports
// whether that is all of each text.
func (p *pattern) require(set []literal) (whole bool) {
	whole = true
	for _, l := range set {
		if !l.fold {
			p.needles = append(p.needles, needle{text: []byte(string(l.runes))})
			continue
		}
		var part, longest []byte
		for _, r := range l.runes {
			small, ok := smallLetter(r)
			if part = utf8.AppendRune(part, small); !ok {
				part, whole = nil, false
			} else if len(part) > len(longest) {
				longest = bytes.Clone(part)
			}
		}
		if longest == nil { // the first character then, in each of its cases
			first := l.runes[0]
			p.needles = append(p.needles, needle{text: []byte(string(first))})
			for r := unicode.SimpleFold(first); r != first; r = unicode.SimpleFold(r) {
				p.needles = append(p.needles, needle{text: []byte(string(r))})
			}
			continue
		}
		p.needles = append(p.needles, needle{text: longest, fold: true})
		p.foreign = p.foreign || bytes.ContainsAny(longest, "ks")
	}
	return whole
}

// smallLetter is what a needle has for a character; false where that has other cases than ASCII's.
func smallLetter(r rune) (rune, bool) {
	small := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		small = min(small, f) // an ASCII capital comes before all its other forms
	}
	if 'A' <= small && small <= 'Z' {
		return small + 'a' - 'A', true
	}
	return r, unicode.SimpleFold(r) == r
}

// seeker looks for a pattern. It is used by one goroutine.
type seeker struct {
	*pattern
	text, folded []byte // folded is the text with small letters for ASCII's capitals
	next         []int  // where each needle stands next; -1 where that is not known
	sieved       bool   // no line without a needle matches
}

// reset takes another text: whole lines, or a piece of one.
func (s *seeker) reset(text []byte) {
	s.text, s.sieved, s.folded = text, len(s.needles) > 0, s.folded[:0]
	if s.foreign && (bytes.Contains(text, []byte("\u017F")) || bytes.Contains(text, []byte("\u212A"))) {
		s.sieved = false
	}
	s.next = s.next[:0]
	for range s.needles {
		s.next = append(s.next, -1)
	}
	if slices.ContainsFunc(s.needles, func(n needle) bool { return n.fold }) {
		for _, c := range text {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			s.folded = append(s.folded, c)
		}
	}
}

// seek returns the first line at or after from that holds a match, and where in it; from is the
// beginning of a line. Without one, found is false.
func (s *seeker) seek(from int) (line, match [2]int, found bool) {
	for from < len(s.text) {
		at := from
		if s.sieved {
			if at = s.candidate(from); at == len(s.text) {
				break
			}
		}
		line = lineAround(s.text, at)
		if s.sieved && s.exact {
			return line, [2]int{at, at + len(s.needles[0].text)}, true
		}
		content := bytes.TrimSuffix(s.text[line[0]:line[1]], []byte("\r"))
		if m := s.expression.FindIndex(content); m != nil {
			return line, [2]int{line[0] + m[0], line[0] + m[1]}, true
		}
		from = line[1] + 1
	}
	return line, match, false
}

// candidate is where a needle stands first at or after from, or the length of the text.
func (s *seeker) candidate(from int) int {
	first := len(s.text)
	for i, n := range s.needles {
		if s.next[i] < from {
			in := s.text
			if n.fold {
				in = s.folded
			}
			if s.next[i] = len(in); from < len(in) {
				if at := bytes.Index(in[from:], n.text); at >= 0 {
					s.next[i] = from + at
				}
			}
		}
		first = min(first, s.next[i])
	}
	return first
}

// lineAround is the line that a place lies in, without its line feed.
func lineAround(text []byte, at int) [2]int {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	if end := bytes.IndexByte(text[at:], '\n'); end >= 0 {
		return [2]int{start, at + end}
	}
	return [2]int{start, len(text)}
}
