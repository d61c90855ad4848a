package posting

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// The constants of BM25, those of FTS5: how soon a term that is repeated weighs no more, and how
// much a long chunk is held against it.
const (
	saturation = 1.2
	byLength   = 0.75
	// common is the weight of a term that more than half of all chunks have: it orders what nothing
	// else does.
	common = 1e-6
)

// Search returns the chunks that rank best for some terms by BM25, at most limit of them, the best
// first and of two that rank the same the one with the smaller id. allowed may be nil; what it
// refuses by its path is passed over, and counts all the same for how rare a term is. It returns
// ErrDamaged, the error of fetch, and that of the context.
//
// The lists of all terms are read, the rarest first; no more chunks are taken up when the lists
// that are left cannot lift a new one over the limit-th best. Then they are only looked up for
// those that still can be among the best. So the order is exact.
func (v *View) Search(ctx context.Context, terms []string, limit int, allowed func(path string) bool,
	fetch Fetch,
) ([]Found, error) {
	if limit <= 0 || v.chunks == 0 {
		return nil, nil
	}
	asked, err := v.lists(terms, fetch)
	if err != nil {
		return nil, err
	}
	s := &search{View: v, limit: limit, sums: v.borrow()}
	defer s.giveBack()
	s.sieve(allowed)
	for i := range s.norms {
		s.norms[i] = saturation * (1 - byLength + byLength*float64(i)*float64(v.chunks)/float64(v.length))
	}
	rest, ahead := 0.0, int64(0) // what is left of the lists: how much it adds at most, and how long it is
	for i := range asked {
		if err := asked[i].weigh(v); err != nil {
			return nil, err
		}
		rest += asked[i].weight * (saturation + 1)
		ahead += asked[i].chunks
	}
	slices.SortStableFunc(asked, func(a, b term) int { return cmp.Compare(b.weight, a.weight) })
	for i := range asked {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if i == 0 {
			s.retry = rest / 2
		}
		if rest <= s.retry && ahead > int64(len(s.candidates())) { // else it cannot succeed, or is not worth while
			s.close(rest)
		}
		if err := s.add(&asked[i]); err != nil {
			return nil, err
		}
		rest -= asked[i].weight * (saturation + 1)
		ahead -= asked[i].chunks
	}
	return s.best(), nil
}

// term is one of a question.
type term struct {
	lists  [][]byte // by the part of the view; nil where it has none
	chunks int64    // that have it and are alive
	weight float64
}

// lists finds the lists of terms.
func (v *View) lists(terms []string, fetch Fetch) ([]term, error) {
	type want struct{ part, term int }
	wanted := map[Page][]want{}
	var order []Page
	for i := range v.parts {
		p := &v.parts[i]
		for j, t := range terms {
			number, ok := p.pages.page(t)
			if !ok {
				continue
			}
			page := Page{p.ID, number}
			if wanted[page] == nil {
				order = append(order, page)
			}
			wanted[page] = append(wanted[page], want{i, j})
		}
	}
	out := make([]term, len(terms))
	for i := range out {
		out[i].lists = make([][]byte, len(v.parts))
	}
	if len(order) == 0 {
		return out, nil
	}
	err := fetch(order, func(page Page, body []byte) error {
		for _, w := range wanted[page] {
			list, err := find(body, terms[w.term])
			if err != nil {
				return err
			}
			if list != nil {
				out[w.term].lists[w.part] = slices.Clone(list)
			}
		}
		delete(wanted, page)
		return nil
	})
	if err == nil && len(wanted) > 0 {
		err = ErrDamaged
	}
	return out, err
}

// weigh finds out how many chunks have a term, and what it is worth by that.
func (t *term) weigh(v *View) error {
	var b block
	for i, list := range t.lists {
		if list == nil {
			continue
		}
		p := &v.parts[i]
		c, err := read(list, uint32(len(p.of)))
		if err != nil {
			return err
		}
		if p.dead == nil {
			t.chunks += int64(c.n)
			continue
		}
		for c.block(&b, 0) {
			for _, n := range b.chunks[:b.n] {
				if !p.dead[p.of[n]] {
					t.chunks++
				}
			}
		}
		if c.bad {
			return ErrDamaged
		}
	}
	if t.chunks > 0 {
		if t.weight = math.Log((float64(v.chunks-t.chunks) + 0.5) / (float64(t.chunks) + 0.5)); t.weight <= 0 {
			t.weight = common
		}
	}
	return nil
}

// search is one under way.
type search struct {
	*View
	limit  int
	norms  [256]float64 // by the length of a chunk
	hidden [][]bool     // by part and file: what has gone, or is not allowed; nil where nothing is
	*sums
	retry  float64  // how little has to be left for close to be of use
	closed bool     // nothing comes to what was found
	left   []uint32 // then: what can still be among the best, in order
}

// sums are what the chunks of a view have so far, each at its place among all.
type sums struct {
	of    []float64
	found []uint32 // those that have something
}

func (v *View) borrow() *sums {
	if s, ok := v.sums.Get().(*sums); ok {
		return s
	}
	return &sums{of: make([]float64, v.all)}
}

func (s *search) giveBack() {
	for _, at := range s.found {
		s.of[at] = 0
	}
	s.found = s.found[:0]
	s.View.sums.Put(s.sums)
}

// sieve finds out what is passed over.
func (s *search) sieve(allowed func(string) bool) {
	for i := range s.parts {
		p := &s.parts[i]
		hidden := p.dead
		if allowed != nil {
			hidden = make([]bool, len(p.files))
			for j := range p.files {
				hidden[j] = p.isDead(uint32(j)) || !allowed(p.files[j].path)
			}
		}
		s.hidden = append(s.hidden, hidden)
	}
}

func (s *search) norm(length uint32) float64 {
	if int(length) < len(s.norms) {
		return s.norms[length]
	}
	return saturation * (1 - byLength + byLength*float64(length)*float64(s.chunks)/float64(s.length))
}

// add adds what a term is worth to the chunks that have it.
func (s *search) add(t *term) error {
	left := s.left
	for i, list := range t.lists {
		p, base := &s.parts[i], s.base[i]
		here := left
		if s.closed {
			end := len(left)
			if i+1 < len(s.base) {
				end, _ = slices.BinarySearch(left, s.base[i+1])
			}
			here, left = left[:end], left[end:]
		}
		if list == nil || s.closed && len(here) == 0 {
			continue
		}
		c, err := read(list, uint32(len(p.of)))
		if err != nil {
			return err
		}
		if s.closed {
			s.lookUp(t, p, base, &c, here)
		} else {
			s.takeUp(t, p, base, &c, s.hidden[i])
		}
		if c.bad {
			return ErrDamaged
		}
	}
	return nil
}

// takeUp adds to all chunks of a list.
func (s *search) takeUp(t *term, p *Part, base uint32, c *cursor, hidden []bool) {
	var b block
	weight := t.weight * (saturation + 1)
	for c.block(&b, 0) {
		for i, n := range b.chunks[:b.n] {
			if len(hidden) > 0 && hidden[p.of[n]] {
				continue
			}
			at, times := base+n, float64(b.weights[i])
			if s.of[at] == 0 {
				s.found = append(s.found, at)
			}
			s.of[at] += weight * times / (times + s.norm(p.lengths[n]))
		}
	}
}

// lookUp adds to those chunks of a list that are left.
func (s *search) lookUp(t *term, p *Part, base uint32, c *cursor, left []uint32) {
	var b block
	weight := t.weight * (saturation + 1)
	for len(left) > 0 && c.block(&b, left[0]-base) {
		i := 0
		for len(left) > 0 && i < b.n {
			n := left[0] - base
			switch {
			case b.chunks[i] < n:
				i++
				continue
			case b.chunks[i] == n:
				times := float64(b.weights[i])
				s.of[left[0]] += weight * times / (times + s.norm(p.lengths[n]))
			}
			left = left[1:]
		}
	}
}

// candidates are the chunks of which some may be among the best.
func (s *search) candidates() []uint32 {
	if s.closed {
		return s.left
	}
	return s.found
}

// least is the limit-th best sum of some chunks.
func (s *search) least(candidates []uint32) float64 {
	values := make([]float64, len(candidates))
	for i, at := range candidates {
		values[i] = s.of[at]
	}
	return largest(values, s.limit)
}

// close takes up no more chunks where those that have nothing so far cannot be among the best: rest
// is what they can still get.
func (s *search) close(rest float64) {
	candidates := s.candidates()
	if len(candidates) < s.limit {
		return
	}
	least := s.least(candidates)
	rest *= 1 + 1e-9 // sums are rounded
	if !s.closed && rest >= least {
		s.retry = (rest + least) / 2 // whatever a list adds to the least it takes from the rest
		return
	}
	s.retry = rest / 2
	left := make([]uint32, 0, s.limit)
	for _, at := range candidates {
		if s.of[at]+rest >= least*(1-1e-9) {
			left = append(left, at)
		}
	}
	if !s.closed {
		slices.Sort(left)
	}
	s.closed, s.left = true, left
}

// largest is the n-th largest of some numbers, which it puts into another order.
func largest(values []float64, n int) float64 {
	low, high := 0, len(values)-1
	for low < high {
		pivot := values[low+(high-low)/2]
		i, j := low, high
		for i <= j {
			for values[i] > pivot {
				i++
			}
			for values[j] < pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i++
				j--
			}
		}
		switch {
		case n-1 <= j:
			high = j
		case n-1 >= i:
			low = i
		default:
			return values[n-1]
		}
	}
	return values[low]
}

// best is the answer.
func (s *search) best() []Found {
	var in, even []uint32
	if candidates := s.candidates(); len(candidates) > s.limit {
		least := s.least(candidates)
		for _, at := range candidates {
			switch of := s.of[at]; {
			case of > least:
				in = append(in, at)
			case of == least:
				even = append(even, at)
			}
		}
		slices.Sort(even)
		in = append(in, even[:s.limit-len(in)]...)
	} else {
		in = slices.Clone(candidates)
	}
	slices.SortFunc(in, func(a, b uint32) int { return cmp.Or(cmp.Compare(s.of[b], s.of[a]), cmp.Compare(a, b)) })
	out := make([]Found, len(in))
	for i, at := range in {
		part, exact := slices.BinarySearch(s.base, at)
		if !exact {
			part--
		}
		p, n := &s.parts[part], at-s.base[part]
		out[i] = Found{ID: p.chunk(n), Path: p.files[p.of[n]].path, Score: s.of[at]}
	}
	return out
}
