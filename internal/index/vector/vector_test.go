package vector_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/regie-run/regie/internal/index/vector"
)

// topics makes vectors as embedding models do: those of one topic lie together, the topics are
// many, and all lean to one side.
type topics struct {
	dice    *rand.Rand
	centres [][]float32
	lean    []float32
}

func newTopics(seed uint64, count, dimensions int) *topics {
	t := &topics{dice: rand.New(rand.NewPCG(seed, 7))}
	t.lean = t.noise(dimensions)
	for range count {
		t.centres = append(t.centres, t.noise(dimensions))
	}
	return t
}

func (t *topics) noise(dimensions int) []float32 {
	out := make([]float32, dimensions)
	for i := range out {
		out[i] = float32(t.dice.NormFloat64())
	}
	return out
}

func (t *topics) next() []float32 {
	centre, out := t.centres[t.dice.IntN(len(t.centres))], t.noise(len(t.lean))
	sum := 0.0
	for i := range out {
		out[i] = 0.5*t.lean[i] + centre[i] + out[i]
		sum += float64(out[i]) * float64(out[i])
	}
	for i := range out {
		out[i] /= float32(math.Sqrt(sum))
	}
	return out
}

// kept is a set beside the whole vectors.
type kept struct {
	set  *vector.Set
	rows map[int64][]float32
}

func (k *kept) put(id int64, v []float32) {
	k.rows[id] = v
	k.set.Add(id, vector.Signs(v))
}

func (k *kept) fetch(ids []int64, each func(int64, []byte)) error {
	for _, id := range slices.Backward(ids) {
		if v, ok := k.rows[id]; ok {
			each(id, vector.Encode(v))
		}
	}
	return nil
}

// nearest is brute force.
func (k *kept) nearest(query []float32, n int) (out []vector.Near) {
	for id, v := range k.rows {
		score := 0.0
		for i := range v {
			score += float64(v[i]) * float64(query[i])
		}
		out = append(out, vector.Near{ID: id, Score: score})
	}
	slices.SortFunc(out, func(a, b vector.Near) int {
		if a.Score != b.Score {
			if a.Score > b.Score {
				return -1
			}
			return 1
		}
		return int(a.ID - b.ID)
	})
	return out[:min(n, len(out))]
}

// TestRecall compares with brute force, on vectors of topics and, which is the worst case, on
// vectors without any order.
func TestRecall(t *testing.T) {
	for _, c := range []struct {
		name       string
		dimensions int
		topics     int
		least      float64
	}{{"topics, 384", 384, 400, 0.97}, {"topics, 768", 768, 400, 0.97}, {"topics, 100", 100, 400, 0.90}, {"crowds, 384", 384, 9, 0.90}, {"no order, 384", 384, 0, 0.75}} {
		t.Run(c.name, func(t *testing.T) {
			source := newTopics(1, max(c.topics, 1), c.dimensions)
			next := source.next
			if c.topics == 0 {
				next = func() []float32 { return source.noise(c.dimensions) }
			}
			k := &kept{vector.New(c.dimensions), map[int64][]float32{}}
			for id := range int64(6_000) {
				k.put(id, next())
			}
			hits, asked := 0, 30
			for range asked {
				query := next()
				found, err := k.set.Search(query, 10, nil, k.fetch)
				if err != nil || len(found) != 10 {
					t.Fatalf("%d found, %v", len(found), err)
				}
				want := k.nearest(query, 10)
				for _, w := range want {
					if slices.ContainsFunc(found, func(f vector.Near) bool { return f.ID == w.ID }) {
						hits++
					}
				}
				if !slices.IsSortedFunc(found, func(a, b vector.Near) int { return int(math.Copysign(1, b.Score-a.Score)) }) {
					t.Fatalf("not in order: %v", found)
				}
			}
			recall := float64(hits) / float64(10*asked)
			t.Logf("recall@10 %.3f", recall)
			if recall < c.least {
				t.Errorf("recall@10 is %.3f, at least %.2f is asked for", recall, c.least)
			}
		})
	}
}

// TestSet compares the exact scores and the order with brute force, where all vectors are compared.
func TestSet(t *testing.T) {
	for seed := range uint64(10) {
		source := newTopics(seed, 5, 70)
		k := &kept{vector.New(70), map[int64][]float32{}}
		for id := range int64(120) {
			k.put(id, source.next())
		}
		delete(k.rows, 7) // it went
		query := source.next()
		found, err := k.set.Search(query, 20, nil, k.fetch)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range k.nearest(query, 20) {
			if found[i].ID != want.ID || math.Abs(found[i].Score-want.Score) > 1e-6 {
				t.Fatalf("seed %d: hit %d is %v, want %v", seed, i, found[i], want)
			}
		}
		odd := func(id int64) bool { return id%2 == 1 }
		found, err = k.set.Search(query, 50, odd, k.fetch)
		if err != nil || len(found) != 50 || slices.ContainsFunc(found, func(n vector.Near) bool { return !odd(n.ID) }) {
			t.Fatalf("seed %d: %v, %v", seed, found, err)
		}
	}
}

// TestGuess holds the order of candidates, by signs and the query's numbers, against the plain sum,
// also where the last eight signs are not all there.
func TestGuess(t *testing.T) {
	for _, dimensions := range []int{1, 7, 8, 9, 63, 64, 65, 384, 1000} {
		source := newTopics(uint64(dimensions), 3, dimensions)
		k := &kept{vector.New(dimensions), map[int64][]float32{}}
		for id := range int64(40) {
			k.put(id, source.next())
		}
		query := source.next()
		guess := func(id int64) (sum float64) {
			for i, x := range k.rows[id] {
				sum += math.Copysign(1, float64(x)) * float64(query[i])
			}
			return sum
		}
		var got []int64
		if _, err := k.set.Search(query, 40, nil, func(ids []int64, _ func(int64, []byte)) error {
			got = ids
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(got); i++ {
			if before, now := guess(got[i-1]), guess(got[i]); before < now-1e-4 {
				t.Fatalf("%d dimensions: %d with %f comes before %d with %f", dimensions, got[i-1], before, got[i], now)
			}
		}
		if len(got) != 40 {
			t.Errorf("%d dimensions: %d candidates", dimensions, len(got))
		}
	}
}

// TestTies: of vectors that are as near as each other the ones with the smaller ids are found, in
// their order.
func TestTies(t *testing.T) {
	k := &kept{vector.New(64), map[int64][]float32{}}
	v := newTopics(3, 1, 64).next()
	for id := int64(500); id > 0; id-- {
		k.put(id, v)
	}
	found, err := k.set.Search(v, 3, nil, k.fetch)
	if err != nil || len(found) != 3 || found[0].ID != 1 || found[1].ID != 2 || found[2].ID != 3 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestOdd is what a set makes of what does not fit.
func TestOdd(t *testing.T) {
	k := &kept{vector.New(10), map[int64][]float32{}}
	v := make([]float32, 10)
	v[3] = 1
	if found, err := k.set.Search(v, 5, nil, k.fetch); len(found) != 0 || err != nil {
		t.Errorf("an empty set finds %v, %v", found, err)
	}
	if k.set.Add(1, make([]byte, 3)); k.set.Len() != 0 {
		t.Error("signs of other dimensions are taken")
	}
	k.put(1, v)
	if found, _ := k.set.Search(make([]float32, 11), 5, nil, k.fetch); len(found) != 0 {
		t.Errorf("a query of other dimensions finds %v", found)
	}
	failure := errors.New("the disk")
	if _, err := k.set.Search(v, 5, nil, func([]int64, func(int64, []byte)) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}
