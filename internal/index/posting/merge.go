package posting

import (
	"bytes"
	"math/bits"
)

// Source is a segment that is merged with others.
type Source struct {
	Part
	// Page reads a page. What it returns is good until the next call for this segment.
	Page func(page int) ([]byte, error)
}

// reader goes through the terms of a source.
type reader struct {
	*Source
	page    int
	s       scanner
	term    []byte
	list    []byte
	ended   bool
	numbers []uint32 // of each chunk in the new segment; gone where it has gone
}

const gone = ^uint32(0)

func (r *reader) next() error {
	for len(r.s.data) == 0 {
		if r.page == r.Pages() {
			r.ended = true
			return nil
		}
		body, err := r.Page(r.page)
		if err != nil {
			return err
		}
		r.page++
		r.s, r.term = scanner{data: body}, r.term[:0]
	}
	r.term = r.s.shared(r.term)
	r.list = r.s.bytes(r.s.number())
	if r.s.bad {
		return ErrDamaged
	}
	return nil
}

// Merge makes one segment of several, given in the order of their chunks' ids, without what has
// gone. Its pages go to put, as in Build. Without a chunk that is alive there is none: Chunks is 0.
// It returns ErrDamaged and the errors of put and of the sources' pages.
func Merge(sources []Source, put func(page int, body []byte) error) (Built, error) {
	var files fileList
	chunks := uint32(0)
	readers := make([]*reader, len(sources))
	for i := range sources {
		r := &reader{Source: &sources[i], numbers: make([]uint32, len(sources[i].of))}
		for n, of := range r.of {
			if r.isDead(of) {
				r.numbers[n] = gone
				continue
			}
			files.add(r.files[of].path, r.chunk(uint32(n)), int(r.lengths[n]))
			r.numbers[n] = chunks
			chunks++
		}
		if err := r.next(); err != nil {
			return Built{}, err
		}
		readers[i] = r
	}
	if chunks == 0 {
		return Built{}, nil
	}
	p := &pages{put: put}
	var term, encoded []byte
	var l list
	for {
		var least *reader
		for _, r := range readers {
			if !r.ended && (least == nil || bytes.Compare(r.term, least.term) < 0) {
				least = r
			}
		}
		if least == nil {
			return files.end(p, int(chunks))
		}
		term = append(term[:0], least.term...)
		l.reset()
		for _, r := range readers {
			if r.ended || !bytes.Equal(r.term, term) {
				continue
			}
			if err := r.copy(&l); err != nil {
				return Built{}, err
			}
			if err := r.next(); err != nil {
				return Built{}, err
			}
		}
		if l.n == 0 {
			continue
		}
		encoded = l.bytes(encoded[:0])
		if err := p.add(term, encoded); err != nil {
			return Built{}, err
		}
	}
}

// copy adds the list at hand to another one.
func (r *reader) copy(l *list) error {
	var b block
	c, err := read(r.list, uint32(len(r.numbers)))
	for err == nil && c.block(&b, 0) {
		for i := range b.n {
			if number := r.numbers[b.chunks[i]]; number != gone {
				l.add(number, b.weights[i])
			}
		}
	}
	if err == nil {
		err = c.err()
	}
	return err
}

const (
	// together is how many segments of about one size are left side by side.
	together = 6
	// deadShare is the part of a segment's chunks that may have gone before it is made anew, of
	// such as have deadLeast of them.
	deadShare = 4
	deadLeast = 64
)

// Size is what a plan has to know of a segment.
type Size struct{ Chunks, Gone int }

// tier is the class of a segment by its size: each has eight times as many chunks as the one below.
func tier(chunks int) int { return bits.Len(uint(chunks)/64) / 3 }

// Plan says which segments, given in the order of their chunks, are to be merged: those from some
// place to before another one, or none. What is merged is always one or more beside each other, so
// that the chunks of each have the ids of a stretch of their own. Who merges until there is no plan
// has as many segments as a logarithm of the chunks, and has written each chunk as often.
func Plan(sizes []Size) (from, to int) {
	for i, s := range sizes {
		if s.Gone == s.Chunks || s.Gone >= deadLeast && s.Gone > s.Chunks/deadShare {
			return i, i + 1
		}
	}
	run := 0 // where the segments of the tier at hand begin
	for i := 1; i < len(sizes); i++ {
		now, before := tier(sizes[i].Chunks), tier(sizes[i-1].Chunks)
		switch {
		case now > before: // smaller ones before it would never come to be merged
			for run > 0 && tier(sizes[run-1].Chunks) < now {
				run--
			}
			return run, i + 1
		case now < before:
			run = i
		case i-run+1 == together:
			return run, i + 1
		}
	}
	return 0, 0
}
