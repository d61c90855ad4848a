package posting

import (
	"encoding/binary"
	"math"
	"slices"
	"sort"
)

// Term is one of a chunk: letters and digits, and how much it weighs there, which is at least 1.
type Term struct {
	Text   string
	Weight int
}

// Built is a segment as it is kept. Its pages have gone to whoever had it built.
type Built struct {
	First, Last int64 // the ids of its chunks
	Chunks      int
	Files       []byte
	Directory   []byte
}

// Segment is what has to be known of one to search it; its pages are read when they are needed.
type Segment struct {
	ID      int64
	files   []file
	of      []uint32 // the file of each chunk
	lengths []uint32
	pages   directory
}

// file is some chunks of one file, whose ids are consecutive.
type file struct {
	path  string
	id    int64  // of the first chunk
	first uint32 // its number
}

// directory is the first term of each page.
type directory struct {
	text string
	ends []uint32
}

func (d *directory) at(i int) string {
	from := uint32(0)
	if i > 0 {
		from = d.ends[i-1]
	}
	return d.text[from:d.ends[i]]
}

// page is where a term stands, if anywhere.
func (d *directory) page(term string) (int, bool) {
	i := sort.Search(len(d.ends), func(i int) bool { return d.at(i) > term })
	return i - 1, i > 0
}

// Read makes a segment of what was kept. It returns ErrDamaged.
func Read(id int64, files, pages []byte) (*Segment, error) {
	out := &Segment{ID: id}
	s := scanner{data: files}
	var path []byte
	for next := int64(0); len(s.data) > 0; {
		path = s.shared(path)
		gap, n := s.number(), s.number()
		if s.bad || gap > math.MaxInt64/2 || n > uint64(len(s.data)) || next > math.MaxInt64/2 ||
			len(out.of)+int(n) > math.MaxInt32 {
			return nil, ErrDamaged
		}
		next += int64(gap)
		out.files = append(out.files, file{path: string(path), id: next, first: uint32(len(out.of))})
		for range n {
			out.of = append(out.of, uint32(len(out.files)-1))
			out.lengths = append(out.lengths, uint32(s.number()))
		}
		next += int64(n)
	}
	var text []byte
	var last []byte
	d := scanner{data: pages}
	for len(d.data) > 0 {
		last = d.shared(last)
		text = append(text, last...)
		out.pages.ends = append(out.pages.ends, uint32(len(text)))
	}
	if s.bad || d.bad || len(out.of) == 0 || len(text) > math.MaxInt32 {
		return nil, ErrDamaged
	}
	out.pages.text = string(text)
	return out, nil
}

// Pages is how many pages a segment has.
func (s *Segment) Pages() int { return len(s.pages.ends) }

// chunk is the id of a chunk.
func (s *Segment) chunk(number uint32) int64 {
	f := &s.files[s.of[number]]
	return f.id + int64(number-f.first)
}

// Builder gathers chunks for a segment.
type Builder struct {
	files  fileList
	chunks uint32
	lists  map[string]*list
}

// fileList writes the files of a segment.
type fileList struct {
	done      []byte
	path      string
	lengths   []byte // of the chunks of the file under way
	n         int
	id        int64 // of its first chunk
	next      int64 // behind the last chunk of the file before
	first     int64
	behind    int64
	last, key []byte
}

// add notes a chunk, whose id is larger than those before.
func (f *fileList) add(path string, id int64, length int) {
	if f.n == 0 || path != f.path || id != f.id+int64(f.n) {
		f.flush()
		if f.first == 0 {
			f.first = id
		}
		f.path, f.id = path, id
	}
	f.lengths = binary.AppendUvarint(f.lengths, uint64(length))
	f.n++
	f.behind = id + 1
}

func (f *fileList) flush() {
	if f.n == 0 {
		return
	}
	f.key = append(f.key[:0], f.path...)
	f.done = appendShared(f.done, f.last, f.key)
	f.last = append(f.last[:0], f.key...)
	f.done = binary.AppendUvarint(f.done, uint64(f.id-f.next))
	f.done = binary.AppendUvarint(f.done, uint64(f.n))
	f.done = append(f.done, f.lengths...)
	f.next = f.id + int64(f.n)
	f.lengths, f.n = f.lengths[:0], 0
}

// NewBuilder returns an empty one.
func NewBuilder() *Builder { return &Builder{lists: map[string]*list{}} }

// Len is how many chunks were added.
func (b *Builder) Len() int { return int(b.chunks) }

// Add adds a chunk, with its terms, each of them once, and how long it is, in terms. Its id is
// larger than those before, from 1. The file of each chunk is named by its path; what it holds of
// the terms' texts the builder keeps.
func (b *Builder) Add(path string, id int64, terms []Term, length int) {
	b.files.add(path, id, length)
	for i := range terms {
		t := &terms[i]
		l := b.lists[t.Text]
		if l == nil {
			l = &list{}
			b.lists[t.Text] = l
		}
		l.add(b.chunks, uint32(min(max(t.Weight, 1), maxWeight)))
	}
	b.chunks++
}

// Build ends the segment. Its pages go to put, in order; what that is given is good until it
// returns, and its error ends the building.
func (b *Builder) Build(put func(page int, body []byte) error) (Built, error) {
	terms := make([]string, 0, len(b.lists))
	for term := range b.lists {
		terms = append(terms, term)
	}
	slices.Sort(terms)
	p := &pages{put: put}
	var key, encoded []byte
	for _, term := range terms {
		key, encoded = append(key[:0], term...), b.lists[term].bytes(encoded[:0])
		if err := p.add(key, encoded); err != nil {
			return Built{}, err
		}
	}
	return b.files.end(p, int(b.chunks))
}

func (f *fileList) end(p *pages, chunks int) (Built, error) {
	f.flush()
	err := p.flush()
	return Built{First: f.first, Last: f.behind - 1, Chunks: chunks, Files: f.done, Directory: p.directory}, err
}
