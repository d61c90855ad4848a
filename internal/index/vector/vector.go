package vector

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// A search narrows down in three steps: first the vectors with the fewest signs that differ from
// the query's. The second step keeps the nearest of those by their signs and the query's own
// numbers. The third step ranks these by all their numbers, the only ones read from outside. For
// 278,240 vectors in groups of 556 equally near ones, the second step keeps 99 of the 100 nearest,
// the first one alone 85.
const (
	exactly = 300
	wider   = 3 // times as many come into the second step
)

// Encode writes a vector as little-endian 32-bit numbers.
func Encode(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// Signs writes the signs of a vector, eight in a byte; 1 is not below zero.
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
	// Score is the product with the query: the cosine of their angle, where both have length 1.
	Score float64
}

// Set holds the signs of vectors of one number of dimensions. It may be searched from many
// goroutines, unless one adds to it.
type Set struct {
	dimensions int
	words      int      // of 64 signs, of each vector
	signs      []uint64 // one vector behind the other
	ids        []int64
}

// New returns an empty set for vectors of so many dimensions, at least 1.
func New(dimensions int) *Set {
	return &Set{dimensions: dimensions, words: (dimensions + 63) / 64}
}

// Dimensions returns those of the vectors.
func (s *Set) Dimensions() int { return s.dimensions }

// Len returns how many vectors there are.
func (s *Set) Len() int { return len(s.ids) }

// Add adds the signs of a vector as Signs writes them, under an id that the set does not have. It
// leaves out signs of other dimensions.
func (s *Set) Add(id int64, signs []byte) {
	if len(signs) == (s.dimensions+7)/8 {
		s.ids, s.signs = append(s.ids, id), append(s.signs, pack(signs)...)
	}
}

func pack(signs []byte) []uint64 {
	out := make([]uint64, (len(signs)+7)/8)
	for i, b := range signs {
		out[i/8] |= uint64(b) << (8 * (i % 8))
	}
	return out
}

// Fetch gives the vectors of some ids, as Encode writes them, in any order; it leaves out those
// that are no longer there. each keeps nothing of what it is given.
type Fetch func(ids []int64, each func(id int64, vector []byte)) error

// Search returns the vectors that are nearest to a query, at most n of them, the nearest first and
// of two that are as near the one with the smaller id. keep may be nil; a vector that it does not
// keep is passed over. A query of other dimensions finds nothing. Search returns fetch's error.
func (s *Set) Search(query []float32, n int, keep func(id int64) bool, fetch Fetch) ([]Near, error) {
	if len(query) != s.dimensions || len(s.ids) == 0 {
		return nil, nil
	}
	candidates := s.candidates(query, max(n, exactly), keep)
	ids := make([]int64, len(candidates))
	for i, c := range candidates {
		ids[i] = c.ID
	}
	var found []Near
	err := fetch(ids, func(id int64, vector []byte) {
		if len(vector) == 4*len(query) {
			found = append(found, Near{id, product(query, vector)})
		}
	})
	if err != nil {
		return nil, err
	}
	return best(found, n), nil
}

func best(found []Near, n int) []Near {
	slices.SortFunc(found, func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return found[:min(n, len(found))]
}

// candidates returns at most n vectors that seem nearest to a query.
func (s *Set) candidates(query []float32, n int, keep func(id int64) bool) []Near {
	asked := pack(Signs(query))
	far := make([]uint16, len(s.ids))
	counts := make([]int, s.dimensions+2)
	for i, id := range s.ids {
		distance := s.dimensions + 1 // farther than any vector is
		if keep == nil || keep(id) {
			distance = 0
			for j, word := range s.signs[i*s.words:][:len(asked)] {
				distance += bits.OnesCount64(word ^ asked[j])
			}
		}
		far[i] = uint16(distance)
		counts[distance]++
	}
	// How many lie how far tells up to where the nearest reach.
	reach := 0
	for have := counts[0]; reach < s.dimensions && have < wider*n; have += counts[reach] {
		reach++
	}
	table := guesses(query)
	var found []Near
	for i, distance := range far {
		if int(distance) <= reach {
			found = append(found, Near{s.ids[i], guess(table, s.signs[i*s.words:])})
		}
	}
	return best(found, n)
}

// guesses are the products of the query with signs alone, each number of a vector taken for 1 or
// −1. Each table holds the products of eight signs at once, by their byte.
func guesses(query []float32) [][256]float32 {
	out := make([][256]float32, (len(query)+7)/8)
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

func guess(table [][256]float32, signs []uint64) float64 {
	var sum float32
	for i := range table {
		sum += table[i][byte(signs[i/8]>>(8*(i%8)))]
	}
	return float64(sum)
}

// product is the scalar product of a vector with one as Encode writes it.
func product(query []float32, vector []byte) (sum float64) {
	for i, x := range query {
		sum += float64(x) * float64(math.Float32frombits(binary.LittleEndian.Uint32(vector[4*i:])))
	}
	return sum
}
