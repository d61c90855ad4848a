package posting

import (
	"slices"
	"sort"
	"sync"
)

// Part is a segment with what has gone of it.
type Part struct {
	*Segment
	dead []bool // by file; nil where all of them live
}

// isDead reports whether a file has gone.
func (p *Part) isDead(file uint32) bool { return len(p.dead) > 0 && p.dead[file] }

// Range is ids, the last one included.
type Range struct{ First, Last int64 }

// PartOf takes the chunks of some ranges, which are in order, out of a segment.
func PartOf(s *Segment, gone []Range) Part {
	p := Part{Segment: s}
	for i := range s.files {
		id := s.files[i].id
		at := sort.Search(len(gone), func(i int) bool { return gone[i].Last >= id })
		if at == len(gone) || gone[at].First > id {
			continue
		}
		if p.dead == nil {
			p.dead = make([]bool, len(s.files))
		}
		p.dead[i] = true
	}
	return p
}

// View is all that is alive at one moment. It never changes.
type View struct {
	parts  []Part
	base   []uint32 // the place of each part's first chunk among all
	all    int      // chunks, those that have gone too
	chunks int64    // that are alive
	length int64    // of those, in terms
	sums   sync.Pool
}

// NewView is a view of segments that are given in the order of their chunks' ids. Two of them may
// hold chunks of one file, and none the same chunk.
func NewView(parts []Part) *View {
	v := &View{parts: slices.Clone(parts)}
	for i := range v.parts {
		p := &v.parts[i]
		v.base = append(v.base, uint32(v.all))
		v.all += len(p.of)
		for n, length := range p.lengths {
			if !p.isDead(p.of[n]) {
				v.chunks++
				v.length += int64(length)
			}
		}
	}
	return v
}

// Chunks is how many are alive.
func (v *View) Chunks() int64 { return v.chunks }

// Each calls fn with each chunk that is alive, in the order of ids: its id, its file's path and how
// long it is, in terms.
func (v *View) Each(fn func(id int64, path string, length int)) {
	for i := range v.parts {
		p := &v.parts[i]
		for n, of := range p.of {
			if !p.isDead(of) {
				fn(p.chunk(uint32(n)), p.files[of].path, int(p.lengths[n]))
			}
		}
	}
}

// EachTerm calls fn with each term of each chunk that is alive, and its weight there. It returns
// ErrDamaged and the error of fetch.
func (v *View) EachTerm(fetch Fetch, fn func(id int64, term string, weight int)) error {
	for i := range v.parts {
		p := &v.parts[i]
		for page := range p.Pages() {
			err := fetch([]Page{{p.ID, page}}, func(_ Page, body []byte) error {
				return each(body, func(term, list []byte) error {
					var b block
					c, err := read(list, uint32(len(p.of)))
					for err == nil && c.block(&b, 0) {
						for j := range b.n {
							if n := b.chunks[j]; !p.isDead(p.of[n]) {
								fn(p.chunk(n), string(term), int(b.weights[j]))
							}
						}
					}
					if err == nil {
						err = c.err()
					}
					return err
				})
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Page names one by its segment.
type Page struct {
	Segment int64
	Number  int
}

// Fetch gives pages, in any order, each of them once. What each gets is good until it returns; its
// error is Fetch's.
type Fetch func(pages []Page, each func(Page, []byte) error) error

// Found is a chunk that has a term that was asked for.
type Found struct {
	ID    int64
	Path  string
	Score float64
}
