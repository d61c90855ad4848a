package workspace

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

// Bounds of what is looked for (spec 12.5). Expressions are those of RE2: they cost at most their
// size for each byte.
const (
	maxQuery     = 1000     // bytes
	maxProgram   = 10_000   // instructions of an expression
	maxLiterals  = 16       // texts of which one must stand in what an expression matches
	stepsAtOnce  = 10 << 20 // instructions times bytes between two looks at the clock
	leastAtOnce  = 4 << 10
	mostAtOnce   = 256 << 10
	longestPiece = 1 << 20 // bytes of a line that are looked at together
)

// pattern is what is looked for, read once and shared.
type pattern struct {
	literals []*literal     // one of them stands in each match
	exact    bool           // the one literal is the match
	line     *regexp.Regexp // for one line
	block    *regexp.Regexp // for several lines; nil where lines must be looked at one by one
	ends     bool           // it speaks of the end of a line
	lines    *automaton     // which lines match; nil where it would be too large
	atOnce   int            // bytes that are looked at between two looks at the clock
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
	case !isRegex:
		return &pattern{literals: []*literal{newLiteral(text, !caseSensitive)}, exact: true, atOnce: mostAtOnce}, nil
	}
	flags := ""
	if !caseSensitive {
		flags = "i"
	}
	// alone: its errors name what was written, and it closes no group of ours
	if _, err := syntax.Parse(text, syntax.Perl); err != nil {
		return nil, regie.Errorf(regie.CodeBadPattern,
			"the expression does not parse: %v (the syntax is RE2's: without look-around and back references)", err)
	}
	tree, err := syntax.Parse("(?m"+flags+":"+text+")", syntax.Perl&^syntax.OneLine)
	if err != nil {
		return nil, regie.Errorf(regie.CodeBadPattern,
			"the expression does not parse: %v (the syntax is RE2's: without look-around and back references)", err)
	}
	tree = tree.Simplify()
	program, err := syntax.Compile(tree)
	if err != nil || len(program.Inst) > maxProgram {
		return nil, regie.Errorf(regie.CodeBadPattern, "the expression is too costly: use smaller repetitions")
	}
	p := &pattern{
		atOnce: min(max(stepsAtOnce/len(program.Inst), leastAtOnce), mostAtOnce),
		lines:  newAutomaton(program),
	}
	if p.line, err = regexp.Compile("(?m" + flags + ":" + text + ")"); err != nil {
		return nil, regie.Errorf(regie.CodeBadPattern, "the expression does not parse: %v", err)
	}
	if !speaksOf(tree, syntax.OpBeginText, syntax.OpEndText) {
		p.block, p.ends = p.line, speaksOf(tree, syntax.OpEndLine)
	}
	if set := required(tree); len(set) > 0 && worth(set) {
		for _, text := range set {
			p.literals = append(p.literals, newLiteral(text.text, text.fold))
		}
	}
	return p, nil
}

func speaksOf(tree *syntax.Regexp, ops ...syntax.Op) bool {
	if slices.Contains(ops, tree.Op) {
		return true
	}
	for _, sub := range tree.Sub {
		if speaksOf(sub, ops...) {
			return true
		}
	}
	return false
}

// needed is a text that a match needs.
type needed struct {
	text string
	fold bool
}

// worth reports whether looking for texts first is faster than running the expression everywhere.
func worth(set []needed) bool {
	for _, n := range set {
		if len(n.text) < 2 && rarity(n.text[0]) < len(frequent)/2 {
			return false
		}
	}
	return true
}

// required returns texts of which at least one stands in whatever the expression matches; nothing
// where there are none.
func required(tree *syntax.Regexp) []needed {
	switch tree.Op {
	case syntax.OpLiteral:
		return []needed{{string(tree.Rune), tree.Flags&syntax.FoldCase != 0}}
	case syntax.OpCapture, syntax.OpPlus:
		return required(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return required(tree.Sub[0])
		}
	case syntax.OpConcat:
		var best []needed
		for _, sub := range tree.Sub {
			if set := required(sub); len(set) > 0 && (best == nil || value(set) > value(best)) {
				best = set
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needed
		for _, sub := range tree.Sub {
			set := required(sub)
			if len(set) == 0 {
				return nil
			}
			if all = append(all, set...); len(all) > maxLiterals {
				return nil
			}
		}
		return all
	}
	return nil
}

// value tells which of two sets finds fewer places: long texts are rarer than short ones, few than
// many.
func value(set []needed) int {
	shortest := 1 << 10
	for _, n := range set {
		shortest = min(shortest, len(n.text))
	}
	return 4*shortest - len(set)
}

// seeker looks for a pattern. It is used by one goroutine.
type seeker struct {
	*pattern
	finders []*finder
	places  []int // where each literal stands next; -1 where that is not known
	machine *machine
	judging bool // the machine knows the lines of this text
	text    []byte
	single  bool // the lines of this text are looked at one by one
}

func newSeeker(p *pattern) *seeker {
	s := &seeker{pattern: p, places: make([]int, len(p.literals))}
	for _, l := range p.literals {
		s.finders = append(s.finders, &finder{literal: l})
	}
	if p.lines != nil {
		s.machine = newMachine(p.lines)
	}
	return s
}

// reset takes another text: whole lines, or a piece of one.
func (s *seeker) reset(text []byte) {
	s.text = text
	returns := s.lines != nil && s.lines.reads&(syntax.EmptyEndLine|syntax.EmptyEndText) != 0 || s.ends
	returns = returns && bytes.IndexByte(text, '\r') >= 0
	s.single = s.block == nil || s.ends && returns
	s.judging = s.machine != nil && !returns
	for i, f := range s.finders {
		f.reset(text)
		s.places[i] = -1
	}
}

// seek returns the first line at or after from that holds a match, and where in it; from is the
// beginning of a line. Without one, found is false.
func (s *seeker) seek(from int) (line, match [2]int, found bool) {
	for from < len(s.text) {
		start, end := s.candidate(from)
		if start < 0 {
			return line, match, false
		}
		line = lineAround(s.text, start)
		if s.exact {
			return line, [2]int{start, end}, true
		}
		content := s.text[line[0]:line[1]]
		if s.judging && len(s.finders) > 0 {
			if at, sure := s.machine.find(content, 0); sure && at < 0 {
				from = line[1] + 1
				continue
			}
		}
		if at := s.line.FindIndex(bytes.TrimSuffix(content, []byte("\r"))); at != nil {
			return line, [2]int{line[0] + at[0], line[0] + at[1]}, true
		}
		from = line[1] + 1
	}
	return line, match, false
}

// candidate is a place in a line that may hold a match; no line before it does.
func (s *seeker) candidate(from int) (start, end int) {
	switch {
	case s.exact:
		return s.finders[0].find(from)
	case len(s.finders) > 0:
		start = len(s.text)
		for i, f := range s.finders {
			if s.places[i] < from {
				if s.places[i], _ = f.find(from); s.places[i] < 0 {
					s.places[i] = len(s.text)
				}
			}
			start = min(start, s.places[i])
		}
		if start == len(s.text) {
			return -1, -1
		}
		return start, start
	case s.judging && !s.machine.off:
		at, sure := s.machine.find(s.text, from)
		if sure || at >= len(s.text) {
			return at, at
		}
		return s.candidate(at) // the machine has given up
	case s.single:
		return from, from // each line is looked at
	}
	if at := s.block.FindIndex(s.text[from:]); at != nil {
		return from + at[0], from + at[1]
	}
	return -1, -1
}

// lineAround is the line that a place lies in, without its line feed.
func lineAround(text []byte, at int) [2]int {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	if end := bytes.IndexByte(text[at:], '\n'); end >= 0 {
		return [2]int{start, at + end}
	}
	return [2]int{start, len(text)}
}
