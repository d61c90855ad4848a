package vector

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// A search narrows down in three steps: the vectors whose signs differ least from the query's, of
// those the ones that signs and the query's own numbers say are nearest, and of those the nearest
// by all their numbers, which alone are read from outside. Of 278,240 vectors in groups of 556 that
// are as near as each other the ten nearest are held by the signs' first 200 to 85 of 100, by 200
// of the second step to 97, by 300 to 99.
const (
	exactly     = 200
	exactlyMany = 300 // where there are many vectors
	many        = 100_000
	wider       = 3 // times as many come into the second step
)

// Encode writes a vector as little-endian 32-bit numbers.
func Encode(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// Signs writes the signs of a vector, eight in a byte; what is not below zero is 1.
func Signs(v []float32) []byte {
	out := make([]byte, (len(v)+7)/8)
	for i, x := range v {
		if x >= 0 {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

// Near is a vector that a search found.
type Near struct {
	ID int64
	// Score is the product with what was asked: the cosine of their angle, where both have length
	// 1.
	Score float64
}

// Set are the signs of vectors of one number of dimensions. It may be searched from many
// goroutines, and changed by one alone.
type Set struct {
	dimensions int
	words      int      // of 64 signs, of each vector
	signs      []uint64 // one vector behind the other, in the order of ids
	ids        []int64
	at         map[int64]int32
}

// New returns an empty set for vectors of so many dimensions, which is at least 1.
func New(dimensions int) *Set {
	return &Set{dimensions: dimensions, words: (dimensions + 63) / 64, at: map[int64]int32{}}
}

// Dimensions are those of the vectors.
func (s *Set) Dimensions() int { return s.dimensions }

// Len is how many vectors there are.
func (s *Set) Len() int { return len(s.ids) }

// Has reports whether a vector is in the set.
func (s *Set) Has(id int64) bool {
	_, ok := s.at[id]
	return ok
}

// Put adds the signs of a vector as Signs writes them, or replaces those that its id has. It
// reports whether they are of as many dimensions as the set; others are left out.
func (s *Set) Put(id int64, signs []byte) bool {
	if len(signs) != (s.dimensions+7)/8 {
		return false
	}
	slot, ok := s.at[id]
	if !ok {
		slot = int32(len(s.ids))
		s.at[id] = slot
		s.ids = append(s.ids, id)
		s.signs = append(s.signs, make([]uint64, s.words)...)
	}
	pack(s.signs[int(slot)*s.words:][:s.words], signs)
	return true
}

func pack(into []uint64, signs []byte) {
	clear(into)
	for i, b := range signs {
		into[i/8] |= uint64(b) << (8 * (i % 8))
	}
}

// Remove takes a vector out; one that is not there changes nothing.
func (s *Set) Remove(id int64) {
	slot, ok := s.at[id]
	if !ok {
		return
	}
	last := len(s.ids) - 1
	if int(slot) != last {
		copy(s.signs[int(slot)*s.words:][:s.words], s.signs[last*s.words:])
		s.ids[slot] = s.ids[last]
		s.at[s.ids[slot]] = slot
	}
	delete(s.at, id)
	s.ids, s.signs = s.ids[:last], s.signs[:last*s.words]
}

// Candidates are the vectors, at most n, that seem nearest to a query, the nearest first, and of
// two that seem as near the one with the smaller id: which they are depends on what is in the set
// alone, not on how it came there. keep may be nil; what it does not keep is passed over. A query
// of other dimensions has none.
func (s *Set) Candidates(query []float32, n int, keep func(id int64) bool) []int64 {
	if len(query) != s.dimensions || n <= 0 || len(s.ids) == 0 {
		return nil
	}
	found := s.closest(query, wider*n, keep)
	guess := newGuesser(query)
	for i := range found {
		found[i].guess = guess.of(s.signs[found[i].slot*s.words:][:s.words])
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.guess, a.guess), cmp.Compare(a.id, b.id))
	})
	out := make([]int64, min(n, len(found)))
	for i := range out {
		out[i] = found[i].id
	}
	return out
}

// closest are the vectors, at most n, whose signs differ least from those of a query, in no order;
// of those that differ as much the ones with the smallest ids.
func (s *Set) closest(query []float32, n int, keep func(id int64) bool) []candidate {
	asked := make([]uint64, s.words)
	pack(asked, Signs(query))
	far := s.distances(asked)
	beyond := s.dimensions + 1 // farther than any vector is
	if keep != nil {
		for slot, id := range s.ids {
			if !keep(id) {
				far[slot] = uint16(beyond)
			}
		}
	}
	// How many lie how far tells up to where the best n reach.
	counts := make([]int, beyond+1)
	for _, distance := range far {
		counts[distance]++
	}
	reach, have := 0, 0
	for reach < s.dimensions && have+counts[reach] < n {
		have += counts[reach]
		reach++
	}
	found, edge := make([]candidate, 0, n), []candidate(nil)
	for slot, distance := range far {
		switch {
		case int(distance) < reach:
			found = append(found, candidate{id: s.ids[slot], slot: slot})
		case int(distance) == reach:
			edge = append(edge, candidate{id: s.ids[slot], slot: slot})
		}
	}
	if len(found)+len(edge) > n {
		slices.SortFunc(edge, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
		edge = edge[:n-len(found)]
	}
	return append(found, edge...)
}

type candidate struct {
	id    int64
	slot  int
	guess float32
}

// guesser is the product of a query with vectors of which the signs alone are known, each of their
// numbers taken for 1 or −1: for eight signs at once, by what they are.
type guesser [][256]float32

func newGuesser(query []float32) guesser {
	out := make(guesser, (len(query)+7)/8)
	for i := range out {
		part := query[8*i : min(8*i+8, len(query))]
		for _, x := range part {
			out[i][0] -= x
		}
		for b := 1; b < 256; b++ {
			lowest := bits.TrailingZeros8(uint8(b))
			out[i][b] = out[i][b&(b-1)]
			if lowest < len(part) {
				out[i][b] += 2 * part[lowest]
			}
		}
	}
	return out
}

func (g guesser) of(signs []uint64) (sum float32) {
	for i := range g {
		sum += g[i][byte(signs[i/8]>>(8*(i%8)))]
	}
	return sum
}

// distances is in how many signs each vector differs from what is asked.
func (s *Set) distances(asked []uint64) []uint16 {
	out := make([]uint16, len(s.ids))
	signs := s.signs
	switch s.words {
	case 6: // 384 dimensions
		q := [6]uint64(asked)
		for i := range out {
			out[i] = uint16(six((*[6]uint64)(signs[6*i:]), &q))
		}
	case 12: // 768
		q, r := [6]uint64(asked), [6]uint64(asked[6:])
		for i := range out {
			v := signs[12*i:][:12]
			out[i] = uint16(six((*[6]uint64)(v), &q) + six((*[6]uint64)(v[6:]), &r))
		}
	default:
		for i := range out {
			v := signs[i*s.words:][:len(asked)]
			n, j := 0, 0
			for ; j+4 <= len(v); j += 4 {
				a, q := (*[4]uint64)(v[j:]), (*[4]uint64)(asked[j:])
				n += bits.OnesCount64(a[0]^q[0]) + bits.OnesCount64(a[1]^q[1]) +
					bits.OnesCount64(a[2]^q[2]) + bits.OnesCount64(a[3]^q[3])
			}
			for ; j < len(v); j++ {
				n += bits.OnesCount64(v[j] ^ asked[j])
			}
			out[i] = uint16(n)
		}
	}
	return out
}

func six(v, q *[6]uint64) int {
	return bits.OnesCount64(v[0]^q[0]) + bits.OnesCount64(v[1]^q[1]) + bits.OnesCount64(v[2]^q[2]) +
		bits.OnesCount64(v[3]^q[3]) + bits.OnesCount64(v[4]^q[4]) + bits.OnesCount64(v[5]^q[5])
}

// Fetch gives the vectors of some ids, as Encode writes them, in any order; those that are no
// longer there are left out. What each gets is good until it returns.
type Fetch func(ids []int64, each func(id int64, vector []byte)) error

// Search returns the vectors that are nearest to a query, at most n of them, the nearest first and
// of two that are as near the one with the smaller id: those among Candidates whose product with
// the query is largest. Whoever of them fetch did not give is returned as gone. It returns fetch's
// error.
func (s *Set) Search(query []float32, n int, keep func(id int64) bool,
	fetch Fetch,
) (found []Near, gone []int64, err error) {
	compared := exactly
	if len(s.ids) >= many {
		compared = exactlyMany
	}
	ids := s.Candidates(query, max(n, compared), keep)
	if len(ids) == 0 {
		return nil, nil, nil
	}
	given := make(map[int64]bool, len(ids))
	err = fetch(ids, func(id int64, vector []byte) {
		if given[id] || len(vector) != 4*len(query) {
			return
		}
		given[id] = true
		found = append(found, Near{id, product(query, vector)})
	})
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if !given[id] {
			gone = append(gone, id)
		}
	}
	slices.SortFunc(found, func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return found[:min(n, len(found))], gone, nil
}

// product is the scalar product of a vector with one as Encode writes it. Four sums run side by
// side: one would wait for itself.
func product(query []float32, vector []byte) float64 {
	var a, b, c, d float64
	i := 0
	for ; i+4 <= len(query); i += 4 {
		v := vector[4*i:][:16]
		a += float64(query[i]) * float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))
		b += float64(query[i+1]) * float64(math.Float32frombits(binary.LittleEndian.Uint32(v[4:])))
		c += float64(query[i+2]) * float64(math.Float32frombits(binary.LittleEndian.Uint32(v[8:])))
		d += float64(query[i+3]) * float64(math.Float32frombits(binary.LittleEndian.Uint32(v[12:])))
	}
	for ; i < len(query); i++ {
		a += float64(query[i]) * float64(math.Float32frombits(binary.LittleEndian.Uint32(vector[4*i:])))
	}
	return a + b + c + d
}
