package workspace

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// Bounds of a machine.
const (
	maxTable   = 1 << 16 // entries of its table, and
	maxHeld    = 1 << 18 // instructions in its states: what is beyond is forgotten and made again
	leastGains = 32      // characters looked at for each state that is made: below it package regexp is faster
)

// machine tells which lines an automaton's expression matches, not where in them: it looks at each
// character once, whatever the expression. Its states, each a set of instructions, are made when
// they are first met. It is used by one goroutine.
type machine struct {
	*automaton
	// table holds, by state and kind of the next character, the state that follows: unknown (0),
	// matched (1), or the place of its row. The first row is nobody's.
	table  []int32
	states []state          // by row
	rows   map[string]int32 // by what the state is
	start  int32

	looked, made int64 // bytes, and states that were made, since the table was empty
	held         int   // instructions in the states
	off          bool  // states are hardly ever met again: the machine is no gain

	// Of the step at hand.
	seen        []uint64 // by instruction: the step that came there last
	steps       uint64
	stack, next []uint32
	reached     []uint32 // the instructions that take a character
}

const (
	unknown = 0
	matched = 1
)

// state is where the program stands between two characters. Each line begins at its beginning anew,
// and so does each character in it, for a match may begin anywhere.
type state struct {
	insts []uint32 // rising
	begin bool     // nothing of the line stands before
	word  bool     // the character before makes words
}

func newMachine(a *automaton) *machine {
	m := &machine{automaton: a, seen: make([]uint64, len(a.program.Inst))}
	m.forget()
	return m
}

// forget empties the table.
func (m *machine) forget() {
	m.table = append(m.table[:0], make([]int32, m.kinds)...)
	m.states = append(m.states[:0], state{})
	m.rows = map[string]int32{}
	m.looked, m.made, m.held = 0, 0, 0
	m.start = m.row(state{begin: m.reads&(syntax.EmptyBeginText|syntax.EmptyBeginLine) != 0})
}

// row is the place of a state's row, which is made where it is new.
func (m *machine) row(s state) int32 {
	key := make([]byte, 1, 1+4*len(s.insts))
	if s.begin {
		key[0] = 1
	}
	if s.word {
		key[0] |= 2
	}
	for _, inst := range s.insts {
		key = binary.LittleEndian.AppendUint32(key, inst)
	}
	at, ok := m.rows[string(key)]
	if !ok {
		at = int32(len(m.table))
		m.rows[string(key)] = at
		s.insts = slices.Clone(s.insts)
		m.states = append(m.states, s)
		m.table = append(m.table, make([]int32, m.kinds)...)
		m.made++
		m.held += len(s.insts)
	}
	return at
}

// find returns a place in the first line at or after from that matches; from is the beginning of a
// line. Without one it is -1. Where sure is false the machine has given up: from the line on that
// at is the beginning of it says nothing.
func (m *machine) find(text []byte, from int) (at int, sure bool) {
	if m.off {
		return from, false
	}
	s, i, counted := m.start, from, from
	for i < len(text) {
		var kind uint8
		size := 1
		if c := text[i]; c < utf8.RuneSelf {
			kind = m.ascii[c]
		} else {
			var r rune
			r, size = utf8.DecodeRune(text[i:])
			kind = m.kind(r)
		}
		next := m.table[int(s)+int(kind)]
		if next == unknown {
			m.looked += int64(i - counted)
			counted = i
			if next = m.step(s, kind); next == unknown {
				return lineAround(text, i)[0], false
			}
		}
		if next == matched {
			m.looked += int64(i - counted)
			return i, true
		}
		s = next
		i += size
	}
	m.looked += int64(i - counted)
	if i > from && text[len(text)-1] != '\n' {
		switch m.step(s, m.end) {
		case unknown:
			return lineAround(text, len(text))[0], false
		case matched:
			return len(text), true
		}
	}
	return -1, true
}

// step is what follows a state with a character of a kind, and enters it into the table. It is
// unknown where the machine gives up.
func (m *machine) step(from int32, kind uint8) int32 {
	s := m.states[int(from)/m.kinds]
	if m.close(s, kind) {
		m.table[int(from)+int(kind)] = matched
		return matched
	}
	if kind == m.end {
		m.table[int(from)+int(kind)] = m.start
		return m.start
	}
	m.next = m.next[:0]
	for _, inst := range m.reached {
		if set := m.set[inst]; set >= 0 && m.takes[set][kind] {
			m.next = append(m.next, m.program.Inst[inst].Out)
		}
	}
	slices.Sort(m.next)
	full := len(m.table)+m.kinds > maxTable || m.held > maxHeld
	if (full || m.made%256 == 255) && m.looked < leastGains*m.made {
		m.off = true
		return unknown
	}
	if full {
		m.forget()
		return m.row(state{insts: slices.Compact(m.next), word: m.word[kind]})
	}
	next := m.row(state{insts: slices.Compact(m.next), word: m.word[kind]})
	m.table[int(from)+int(kind)] = next
	return next
}

// close follows the program from a state, and from its beginning, as far as it goes without taking
// a character, with a character of a kind ahead. It reports whether that is a match; else the
// instructions that take one are in reached.
func (m *machine) close(s state, kind uint8) bool {
	holds := syntax.EmptyOp(0)
	if s.begin {
		holds |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	if kind == m.end {
		holds |= syntax.EmptyEndText | syntax.EmptyEndLine
	}
	if s.word != m.word[kind] {
		holds |= syntax.EmptyWordBoundary
	} else {
		holds |= syntax.EmptyNoWordBoundary
	}
	m.steps++
	m.reached = m.reached[:0]
	m.stack = append(append(m.stack[:0], s.insts...), uint32(m.program.Start))
	for len(m.stack) > 0 {
		at := m.stack[len(m.stack)-1]
		m.stack = m.stack[:len(m.stack)-1]
		if m.seen[at] == m.steps {
			continue
		}
		m.seen[at] = m.steps
		switch inst := &m.program.Inst[at]; inst.Op {
		case syntax.InstMatch:
			return true
		case syntax.InstAlt, syntax.InstAltMatch:
			m.stack = append(m.stack, inst.Out, inst.Arg)
		case syntax.InstCapture, syntax.InstNop:
			m.stack = append(m.stack, inst.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^holds == 0 {
				m.stack = append(m.stack, inst.Out)
			}
		case syntax.InstFail:
		default:
			m.reached = append(m.reached, at)
		}
	}
	return false
}
