package workspace

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// maxSplits bounds the kinds of characters of an automaton, times its instructions that tell them
// apart. What is beyond is left to package regexp.
const maxSplits = 1 << 18

// automaton is an expression for machines: the characters that its program does not tell apart are
// one kind. It is made once and shared.
type automaton struct {
	program *syntax.Prog
	reads   syntax.EmptyOp       // the assertions that the program makes
	kinds   int                  // of characters
	ascii   [utf8.RuneSelf]uint8 // the kind of a byte
	firsts  []rune               // where characters begin to be of another kind, rising
	kindOf  []uint8              // from there on
	word    []bool               // by kind: whether they make words, for \b
	end     uint8                // the kind of the line feed, which is all alone in it
	// by instruction: which characters it takes, as a place in takes; -1 where it is no such
	// instruction
	set   []int
	takes [][]bool // by kind
}

// newAutomaton makes the automaton of a program, or nil where it would be too large.
func newAutomaton(program *syntax.Prog) *automaton {
	a := &automaton{program: program, set: make([]int, len(program.Inst))}
	var sets []*syntax.Inst
	known := map[string]int{}
	for i := range program.Inst {
		inst := &program.Inst[i]
		a.set[i] = -1
		switch inst.Op {
		case syntax.InstEmptyWidth:
			a.reads |= syntax.EmptyOp(inst.Arg)
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			name := fmt.Sprint(inst.Op, inst.Arg, inst.Rune)
			if _, ok := known[name]; !ok {
				known[name] = len(sets)
				sets = append(sets, inst)
			}
			a.set[i] = known[name]
		}
	}
	a.takes = make([][]bool, len(sets))
	if firsts := splits(sets); len(firsts)*len(sets) > maxSplits || !a.sort(firsts, sets) {
		return nil
	}
	for b := range a.ascii {
		a.ascii[b] = a.kind(rune(b))
	}
	return a
}

// splits are the characters at which any set of them begins or ends, rising; also those that matter
// to a line and to words.
func splits(sets []*syntax.Inst) []rune {
	out := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1}
	for _, set := range sets {
		if len(set.Rune) == 1 { // one character, perhaps in each of its cases
			r := set.Rune[0]
			out = append(out, r, r+1)
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				out = append(out, f, f+1)
			}
			continue
		}
		for i := 0; i+1 < len(set.Rune); i += 2 {
			out = append(out, set.Rune[i], set.Rune[i+1]+1)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sort makes kinds of what lies between the splits. It reports whether they are few enough.
func (a *automaton) sort(firsts []rune, sets []*syntax.Inst) bool {
	known := map[string]uint8{}
	sign := make([]byte, len(sets)+1)
	for _, first := range firsts {
		for i, set := range sets {
			sign[i] = 0
			if set.MatchRune(first) {
				sign[i] = 1
			}
		}
		sign[len(sets)] = 0
		if first == '\n' {
			sign[len(sets)] = 2
		} else if syntax.IsWordChar(first) && a.reads&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0 {
			sign[len(sets)] = 1
		}
		kind, ok := known[string(sign)]
		if !ok {
			if len(known) > 255 {
				return false
			}
			kind = uint8(len(known))
			known[string(sign)] = kind
			for i := range sets {
				a.takes[i] = append(a.takes[i], sign[i] == 1)
			}
			a.word = append(a.word, sign[len(sets)] == 1)
		}
		if first == '\n' {
			a.end = kind
		}
		a.firsts, a.kindOf = append(a.firsts, first), append(a.kindOf, kind)
	}
	a.kinds = len(known)
	return true
}

// kind is that of a character.
func (a *automaton) kind(r rune) uint8 {
	return a.kindOf[sort.Search(len(a.firsts), func(i int) bool { return a.firsts[i] > r })-1]
}
