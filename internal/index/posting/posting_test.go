package posting

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// shelf keeps segments as a database would, and beside them every chunk, so that what a search
// should find can be computed from nothing.
type shelf struct {
	tb       testing.TB
	segments []*kept // in the order of their chunks
	gone     []Range
	made     int64 // segments so far
	next     int64 // id of a chunk
	chunks   map[int64]chunk
}

type kept struct {
	id    int64
	built Built
	pages [][]byte
}

type chunk struct {
	path   string
	terms  map[string]int
	length int
}

func newShelf(tb testing.TB) *shelf {
	tb.Helper()
	return &shelf{tb: tb, next: 1, chunks: map[int64]chunk{}}
}

// put adds files, each with its chunks, in one segment.
func (s *shelf) put(files map[string][]chunk) {
	b := NewBuilder()
	for _, path := range slices.Sorted(func(yield func(string) bool) {
		for path := range files {
			if !yield(path) {
				return
			}
		}
	}) {
		for _, c := range files[path] {
			c.path = path
			b.Add(path, s.next, termsOf(c), c.length)
			s.chunks[s.next] = c
			s.next++
		}
		s.next += int64(len(path) % 3) // as if others had been there
	}
	k := &kept{}
	k.build(s, b.Build)
	s.segments = append(s.segments, k)
}

func termsOf(c chunk) (out []Term) {
	for text, weight := range c.terms {
		out = append(out, Term{text, weight})
	}
	return out
}

func (k *kept) build(s *shelf, build func(func(int, []byte) error) (Built, error)) {
	s.made++
	k.id = s.made
	built, err := build(func(page int, body []byte) error {
		if page != len(k.pages) {
			s.tb.Errorf("page %d comes after %d", page, len(k.pages))
		}
		k.pages = append(k.pages, bytes.Clone(body))
		return nil
	})
	if err != nil {
		s.tb.Fatal(err)
	}
	k.built = built
}

// drop takes the chunks of a file out.
func (s *shelf) drop(path string) {
	for id, c := range s.chunks {
		if c.path == path {
			delete(s.chunks, id)
			s.gone = append(s.gone, Range{id, id})
		}
	}
	slices.SortFunc(s.gone, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
}

// merge merges until there is no plan.
func (s *shelf) merge() {
	for {
		var sizes []Size
		for _, k := range s.segments {
			size := Size{Chunks: k.built.Chunks}
			for _, g := range s.gone {
				if k.built.First <= g.First && g.First <= k.built.Last {
					size.Gone++
				}
			}
			sizes = append(sizes, size)
		}
		from, to := Plan(sizes)
		if from == to {
			return
		}
		s.mergeThese(from, to)
	}
}

func (s *shelf) mergeThese(from, to int) {
	var sources []Source
	first, last := s.segments[from].built.First, s.segments[to-1].built.Last
	for _, k := range s.segments[from:to] {
		sources = append(sources, Source{Part: s.part(k), Page: func(page int) ([]byte, error) { return k.pages[page], nil }})
	}
	out := &kept{}
	out.build(s, func(put func(int, []byte) error) (Built, error) { return Merge(sources, put) })
	s.gone = slices.DeleteFunc(s.gone, func(g Range) bool { return first <= g.First && g.First <= last })
	fresh := NewBuilder()
	for id := first; id <= last; id++ {
		if c, ok := s.chunks[id]; ok {
			fresh.Add(c.path, id, termsOf(c), c.length)
		}
	}
	if fresh.Len() != out.built.Chunks {
		s.tb.Fatalf("%d chunks of %d were merged", out.built.Chunks, fresh.Len())
	}
	if out.built.Chunks == 0 {
		s.segments = slices.Delete(s.segments, from, to)
		return
	}
	// What was merged is what would have been written if all that lives had come at once.
	want := &kept{}
	want.build(s, fresh.Build)
	if !bytes.Equal(bytes.Join(want.pages, []byte("|")), bytes.Join(out.pages, []byte("|"))) || !bytes.Equal(want.built.Files, out.built.Files) ||
		!bytes.Equal(want.built.Directory, out.built.Directory) || want.built.First != out.built.First || want.built.Last != out.built.Last {
		s.tb.Fatal("merged segments are another than one that is written at once")
	}
	s.segments = slices.Replace(s.segments, from, to, out)
}

func (s *shelf) part(k *kept) Part {
	segment, err := Read(k.id, k.built.Files, k.built.Directory)
	if err != nil {
		s.tb.Fatal(err)
	}
	if segment.Pages() != len(k.pages) {
		s.tb.Fatalf("%d pages of %d", segment.Pages(), len(k.pages))
	}
	return PartOf(segment, s.gone)
}

func (s *shelf) view() *View {
	var parts []Part
	for _, k := range s.segments {
		parts = append(parts, s.part(k))
	}
	return NewView(parts)
}

func (s *shelf) fetch(pages []Page, each func(Page, []byte) error) error {
	for _, k := range s.segments {
		for _, p := range pages {
			if p.Segment == k.id {
				if err := each(p, k.pages[p.Number]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// oracle scores every chunk by the formula of BM25 as FTS5 has it.
func (s *shelf) oracle(terms []string, allowed func(string) bool) map[int64]float64 {
	total := 0.0
	for _, c := range s.chunks {
		total += float64(c.length)
	}
	n := float64(len(s.chunks))
	out := map[int64]float64{}
	for _, term := range terms {
		have := 0.0
		for _, c := range s.chunks {
			if c.terms[term] > 0 {
				have++
			}
		}
		idf := math.Log((n - have + 0.5) / (have + 0.5))
		if idf <= 0 {
			idf = 1e-6
		}
		for id, c := range s.chunks {
			if f := float64(c.terms[term]); f > 0 && (allowed == nil || allowed(c.path)) {
				out[id] += idf * (f * (1.2 + 1)) / (f + 1.2*(1-0.75+0.75*float64(c.length)/(total/n)))
			}
		}
	}
	return out
}

// holds compares a search with the oracle.
func (s *shelf) holds(v *View, terms []string, limit int, allowed func(string) bool) {
	s.tb.Helper()
	got, err := v.Search(context.Background(), terms, limit, allowed, s.fetch)
	if err != nil {
		s.tb.Fatal(err)
	}
	scores := s.oracle(terms, allowed)
	var best []float64
	for _, score := range scores {
		best = append(best, score)
	}
	slices.SortFunc(best, func(a, b float64) int { return cmp.Compare(b, a) })
	if len(got) != min(limit, len(best)) {
		s.tb.Fatalf("%d terms, limit %d: %d are found of %d", len(terms), limit, len(got), len(best))
	}
	even := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }
	for i, f := range got {
		if f.Path != s.chunks[f.ID].path || !even(f.Score, best[i]) || !even(f.Score, scores[f.ID]) {
			s.tb.Fatalf("%.100v, limit %d: place %d is %+v; its score is %v, and the place's %v", terms, limit, i, f, scores[f.ID], best[i])
		}
		if i > 0 && got[i-1].Score == f.Score && got[i-1].ID >= f.ID {
			s.tb.Fatalf("of two that rank the same %d comes before %d", got[i-1].ID, f.ID)
		}
	}
}

// word is one whose rank in frequency is about as in a language: few words are almost everywhere.
func word(dice *rand.Rand) string {
	n := int(math.Exp(dice.Float64() * 7))
	return fmt.Sprintf("w%s%d", strings.Repeat("x", n%4), n)
}

func randomFile(dice *rand.Rand) (out []chunk) {
	for range 1 + dice.IntN(6) {
		c := chunk{terms: map[string]int{"everywhere": 1 + dice.IntN(2)}, length: 1}
		for range dice.IntN(60) {
			c.terms[word(dice)] += 1 + dice.IntN(3)*dice.IntN(2)
			c.length++
		}
		if dice.IntN(200) == 0 {
			c.terms[strings.Repeat("ü", dice.IntN(90)+1)] = 300_000
			c.length = 5_000
		}
		out = append(out, c)
	}
	return out
}

// TestSearch puts, changes, removes and merges at random, and holds what is found against every
// chunk scored by the formula.
func TestSearch(t *testing.T) {
	for seed := range uint64(5) {
		dice := rand.New(rand.NewPCG(seed, 1))
		s := newShelf(t)
		s.holds(s.view(), []string{"everywhere"}, 5, nil)
		for step := range 25 {
			files := map[string][]chunk{}
			most := 6
			if step%8 == 0 {
				most = 400
			}
			for range 1 + dice.IntN(most) {
				path := fmt.Sprintf("d%d/f%d", dice.IntN(5), dice.IntN(400))
				s.drop(path)
				files[path] = randomFile(dice)
			}
			s.put(files)
			for range dice.IntN(8) {
				s.drop(fmt.Sprintf("d%d/f%d", dice.IntN(5), dice.IntN(400)))
			}
			if dice.IntN(3) > 0 {
				s.merge()
			}
			v := s.view()
			if v.Chunks() != int64(len(s.chunks)) {
				t.Fatalf("%d chunks live, and %d are there", v.Chunks(), len(s.chunks))
			}
			for range 6 {
				terms := []string{}
				for range 1 + dice.IntN(1+dice.IntN(40)) {
					if term := word(dice); !slices.Contains(terms, term) {
						terms = append(terms, term)
					}
				}
				if dice.IntN(3) == 0 {
					terms = append(terms, "everywhere")
				}
				s.holds(v, terms, 1+dice.IntN(1+dice.IntN(250)), nil)
				s.holds(v, terms, 10, func(path string) bool { return strings.HasPrefix(path, "d1/") })
			}
			s.holds(v, []string{"everywhere"}, 200, nil)
			s.holds(v, []string{"nowhere", "", "\x00", "zzz"}, 200, nil)
		}
	}
}

// TestCloses asks for many terms of which most are common: what cannot be among the best is not
// taken up, and the answer is exact all the same.
func TestCloses(t *testing.T) {
	dice := rand.New(rand.NewPCG(7, 7))
	s := newShelf(t)
	files := map[string][]chunk{}
	for i := range 3000 {
		c := chunk{terms: map[string]int{}, length: 20 + dice.IntN(9)}
		for term := range 30 {
			if dice.IntN(3) == 0 {
				c.terms[fmt.Sprintf("common%d", term)] = 1
			}
		}
		if i%100 == 0 {
			c.terms["rare"], c.terms["seldom"], c.terms["strange"] = 1, 2, 3
			if i%200 == 0 {
				c.terms["unique"] = 1
			}
		}
		files[fmt.Sprintf("f%d", i)] = []chunk{c}
	}
	s.put(files)
	s.put(map[string][]chunk{"later": {{terms: map[string]int{"rare": 1, "common3": 9}, length: 3}}})
	terms := []string{"rare", "seldom", "strange", "unique", "common1", "common2", "common3"}
	s.holds(s.view(), terms, 10, nil)
	v := s.view()
	asked, err := v.lists(terms, s.fetch)
	if err != nil {
		t.Fatal(err)
	}
	q := &search{View: v, limit: 10, sums: v.borrow()}
	q.sieve(nil)
	rest := 0.0
	for i := range asked {
		if err := asked[i].weigh(v); err != nil {
			t.Fatal(err)
		}
		rest += asked[i].weight * (saturation + 1)
	}
	slices.SortStableFunc(asked, func(a, b term) int { return cmp.Compare(b.weight, a.weight) })
	for i := range asked[:4] {
		if err := q.add(&asked[i]); err != nil {
			t.Fatal(err)
		}
		rest -= asked[i].weight * (saturation + 1)
	}
	if q.close(rest); !q.closed || len(q.left) > 100 {
		t.Errorf("chunks of common terms are taken up: closed %v, %d are left", q.closed, len(q.left))
	}
}

// TestPlan adds segments of all sizes in any order, and takes chunks out: there are never many, and
// merging comes to an end.
func TestPlan(t *testing.T) {
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 2))
		var sizes []Size
		written, added := 0, 0
		for range 3000 {
			n := 1 + int(math.Exp(dice.Float64()*dice.Float64()*12))
			if seed%4 == 0 {
				n = 1 + dice.IntN(20)
			}
			added += n
			sizes = append(sizes, Size{Chunks: n})
			if i := dice.IntN(len(sizes)); seed%4 > 1 {
				sizes[i].Gone = min(sizes[i].Chunks, sizes[i].Gone+dice.IntN(n+1))
			}
			for {
				from, to := Plan(sizes)
				if from == to {
					break
				}
				sum := 0
				for _, s := range sizes[from:to] {
					sum += s.Chunks - s.Gone
				}
				written += sum
				if sum == 0 {
					sizes = slices.Delete(sizes, from, to)
				} else {
					sizes = slices.Replace(sizes, from, to, Size{Chunks: sum})
				}
			}
			if len(sizes) > 40 {
				t.Fatalf("seed %d: %d segments: %v", seed, len(sizes), sizes)
			}
		}
		if written > 15*added {
			t.Errorf("seed %d: %d chunks were written for %d", seed, written, added)
		}
	}
}

// FuzzDamaged reads anything as what this package has written: it is refused, or read, and never
// more than that.
func FuzzDamaged(f *testing.F) {
	s := newShelf(f)
	dice := rand.New(rand.NewPCG(3, 3))
	files := map[string][]chunk{}
	for i := range 200 {
		files[fmt.Sprintf("f%d", i)] = randomFile(dice)
	}
	s.put(files)
	k := s.segments[0]
	f.Add(k.built.Files, k.built.Directory, k.pages[0], "w1")
	f.Add(k.built.Files, k.built.Directory, k.pages[len(k.pages)-1], "everywhere")
	f.Add(k.built.Files[:9], []byte{0, 1, 'a'}, []byte{0, 1, 'a', 2, 1, 0}, "a")
	f.Add([]byte{0, 0, 1, 1, 7}, []byte{0, 1, 'a'}, []byte{0, 1, 'a', 3, 1, 255, 255}, "a")
	f.Fuzz(func(t *testing.T, files, directory, page []byte, term string) {
		if len(files) > 1<<16 || len(page) > 1<<16 {
			t.Skip()
		}
		segment, err := Read(1, files, directory)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		part := PartOf(segment, []Range{{3, 5}})
		v := NewView([]Part{part})
		fetch := func(pages []Page, each func(Page, []byte) error) error {
			for _, p := range pages {
				if err := each(p, page); err != nil {
					return err
				}
			}
			return nil
		}
		for _, terms := range [][]string{{term}, {"everywhere", term, "w1", "w2"}} {
			if _, err := v.Search(t.Context(), terms, 3, nil, fetch); err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
		if segment.Pages() > 100 {
			return
		}
		if err := v.EachTerm(fetch, func(int64, string, int) {}); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		source := Source{Part: part, Page: func(int) ([]byte, error) { return page, nil }}
		if _, err := Merge([]Source{source}, func(int, []byte) error { return nil }); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
	})
}
