package posting

import "encoding/binary"

// pageSize is at how many bytes a page ends. A list that has more has a page of its own.
const pageSize = 4 << 10

// MaxPages is how many pages a segment has at most.
const MaxPages = 1 << 24

// A page is terms in order, each as how many bytes it shares with the one before, its other bytes,
// and its list, with the length of both before them.

// pages makes the pages of a segment, of terms that come in order.
type pages struct {
	put       func(page int, body []byte) error
	n         int
	body      []byte
	last      []byte // the term before
	directory []byte // the first term of each page, as in a page
	first     []byte // of the page before
}

func (p *pages) add(term, list []byte) error {
	if len(p.body) > 0 && len(p.body)+len(list) > pageSize {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if len(p.body) == 0 {
		p.directory = appendShared(p.directory, p.first, term)
		p.first, p.last = append(p.first[:0], term...), p.last[:0]
	}
	p.body = appendShared(p.body, p.last, term)
	p.body = binary.AppendUvarint(p.body, uint64(len(list)))
	p.body = append(p.body, list...)
	p.last = append(p.last[:0], term...)
	return nil
}

func (p *pages) flush() error {
	if len(p.body) == 0 {
		return nil
	}
	if p.n == MaxPages {
		return ErrDamaged
	}
	err := p.put(p.n, p.body)
	p.n++
	p.body = p.body[:0]
	return err
}

func appendShared(to, before, text []byte) []byte {
	shared := 0
	for shared < len(before) && shared < len(text) && before[shared] == text[shared] {
		shared++
	}
	to = binary.AppendUvarint(to, uint64(shared))
	to = binary.AppendUvarint(to, uint64(len(text)-shared))
	return append(to, text[shared:]...)
}

// scanner reads what was written one after the other; bad is set where that ends too soon.
type scanner struct {
	data []byte
	bad  bool
}

func (s *scanner) number() uint64 {
	if len(s.data) > 0 && s.data[0] < 0x80 {
		n := s.data[0]
		s.data = s.data[1:]
		return uint64(n)
	}
	n, size := binary.Uvarint(s.data)
	if size <= 0 {
		s.bad, s.data = true, nil
		return 0
	}
	s.data = s.data[size:]
	return n
}

func (s *scanner) bytes(n uint64) []byte {
	if n > uint64(len(s.data)) {
		s.bad, s.data = true, nil
		return nil
	}
	out := s.data[:n]
	s.data = s.data[n:]
	return out
}

// shared reads what appendShared has written, over what stood there before.
func (s *scanner) shared(text []byte) []byte {
	n := s.number()
	if n > uint64(len(text)) {
		s.bad, s.data = true, nil
		return text
	}
	return append(text[:n], s.bytes(s.number())...)
}

// find is the list of a term in a page; nil where it has none.
func find(page []byte, term string) ([]byte, error) {
	s := scanner{data: page}
	same := uint64(0) // bytes that the entry before has in common with the term, which is greater
	for len(s.data) > 0 {
		shared := s.number()
		rest := s.bytes(s.number())
		list := s.bytes(s.number())
		if s.bad {
			return nil, ErrDamaged
		}
		if shared > same { // it differs where the one before did
			continue
		}
		if shared < same {
			return nil, nil
		}
		for len(rest) > 0 && same < uint64(len(term)) && rest[0] == term[same] {
			rest = rest[1:]
			same++
		}
		switch {
		case len(rest) == 0 && same == uint64(len(term)):
			return list, nil
		case len(rest) > 0 && (same == uint64(len(term)) || rest[0] > term[same]):
			return nil, nil
		}
	}
	return nil, nil
}

// each calls fn with the terms of a page and their lists, which are good until it returns.
func each(page []byte, fn func(term, list []byte) error) error {
	s := scanner{data: page}
	var term []byte
	for len(s.data) > 0 {
		term = s.shared(term)
		list := s.bytes(s.number())
		if s.bad {
			return ErrDamaged
		}
		if err := fn(term, list); err != nil {
			return err
		}
	}
	return nil
}
