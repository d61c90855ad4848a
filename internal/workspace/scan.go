package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"slices"
	"unicode/utf16"
)

const (
	firstBuffer = 256 << 10
	decoded     = 8 << 20 // bytes of a file in UTF-16 that are searched
)

// scanner searches files, one after the other. It belongs to one worker.
type scanner struct {
	*search
	seeker *seeker
	buffer []byte

	// Of the file at hand.
	out   *batch
	path  string
	line  int  // of the first byte of the text at hand
	inner bool // that byte lies in the middle of a line, of which a match was given already if given is set
	given bool
}

func (s *scanner) batch(b *batch) {
	s.out = b
	for _, name := range b.names {
		if s.ctx.Err() != nil || len(b.found) >= s.most {
			return
		}
		in, size, err := b.in.open(name)
		if err != nil {
			s.seen.unreadable.Add(1)
			continue
		}
		s.path, s.line, s.inner, s.given = path.Join(b.in.path, name), 1, false, false
		err = s.file(in, size)
		_ = in.Close() // it was only read
		if err != nil {
			s.seen.unreadable.Add(1)
		}
	}
}

// file searches one file, a buffer at a time.
func (s *scanner) file(in io.Reader, size int64) error {
	most := s.query.MaxFile
	if most <= 0 {
		most = size
	}
	if size > most {
		s.seen.clipped.Add(1)
	}
	held, total := 0, int64(0)
	for first := true; ; first = false {
		n, end, err := readFull(in, s.buffer[held:min(int64(len(s.buffer)), int64(held)+most-total)], size-total)
		if err != nil {
			return err
		}
		total += int64(n)
		if !end && total >= most {
			if end = true; size < most { // it has grown since it was opened
				s.seen.clipped.Add(1)
			}
		}
		text := s.buffer[:held+n]
		if first {
			if whole, wide := fromUTF16(text, size); wide {
				if !end && size > int64(len(text)) {
					if size > decoded && size <= most {
						s.seen.clipped.Add(1)
					}
					return s.wide(in, text, min(size, decoded))
				}
				s.count(total)
				s.text(whole, true)
				return nil
			}
			if bytes.IndexByte(text, 0) >= 0 {
				s.seen.binary.Add(1)
				return nil
			}
			s.seen.files.Add(1)
		}
		cut := len(text)
		if !end {
			cut = bytes.LastIndexByte(text, '\n') + 1
			if cut == 0 && len(text) == len(s.buffer) && len(s.buffer) < longestPiece {
				s.buffer = append(s.buffer, make([]byte, len(s.buffer))...)
				held = len(text)
				continue
			}
			if cut == 0 {
				// a piece of a line; what the next piece begins with may belong to a match
				cut = max(1, len(text)-maxQuery)
			}
		}
		s.text(text[:cut], end)
		if end || s.stopped() || len(s.out.found) >= s.most {
			s.seen.bytes.Add(total)
			return nil
		}
		held = copy(s.buffer, text[cut:])
	}
}

// stopped reports whether the search is to end.
func (s *scanner) stopped() bool { return s.ctx.Err() != nil }

func (s *scanner) count(bytes int64) {
	s.seen.files.Add(1)
	s.seen.bytes.Add(bytes)
}

// readFull fills a buffer, or reaches the end of the file. A file of which all is there by its size
// is not asked once more.
func readFull(in io.Reader, buffer []byte, left int64) (n int, end bool, err error) {
	for n < len(buffer) {
		m, err := in.Read(buffer[n:])
		n += m
		switch {
		case errors.Is(err, io.EOF):
			return n, true, nil
		case err != nil:
			return n, false, err
		case int64(n) == left:
			return n, true, nil
		}
	}
	return n, false, nil
}

// text searches whole lines, or a piece of one, in portions between which the clock is looked at.
// The last text of a file need not be counted. A line that would take a costly expression too long
// is searched in pieces; what stands across two of them is not found.
func (s *scanner) text(text []byte, last bool) {
	if s.line == 1 && !s.inner {
		text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	}
	for len(text) > 0 && s.ctx.Err() == nil {
		portion := text
		if len(text) > s.pattern.atOnce {
			portion = text[:s.pattern.atOnce]
			if end := bytes.LastIndexByte(portion, '\n'); end >= 0 {
				portion = portion[:end+1]
			} else if end := bytes.IndexByte(text, '\n'); end >= 0 && end < min(longestPiece, 4*s.pattern.atOnce) {
				portion = text[:end+1]
			}
		}
		if !s.portion(portion) {
			return
		}
		if text = text[len(portion):]; len(text) > 0 || !last {
			s.line += bytes.Count(portion, []byte("\n"))
		}
		if s.inner = portion[len(portion)-1] != '\n'; !s.inner {
			s.given = false
		}
	}
}

// portion searches a text that begins at the scanner's line. It reports whether more is wanted.
func (s *scanner) portion(text []byte) bool {
	s.seeker.reset(text)
	number, from, counted := s.line, 0, 0
	if s.inner && s.given {
		if from = bytes.IndexByte(text, '\n') + 1; from == 0 {
			return true
		}
	}
	for {
		line, match, found := s.seeker.seek(from)
		if !found {
			return true
		}
		number += bytes.Count(text[counted:line[0]], []byte("\n"))
		counted = line[0]
		s.out.found = append(s.out.found, s.clip(Match{Path: s.path, Line: number},
			text[line[0]:line[1]], match[0]-line[0]))
		if len(s.out.found) >= s.most {
			return false
		}
		s.given = line[1] == len(text)
		from = line[1] + 1
	}
}

// wide searches a file in UTF-16 that did not fit into the buffer.
func (s *scanner) wide(in io.Reader, head []byte, size int64) error {
	rest, err := io.ReadAll(io.LimitReader(in, size-int64(len(head))))
	if err != nil {
		return err
	}
	whole, _ := fromUTF16(slices.Concat(head, rest), size)
	s.count(int64(len(head) + len(rest)))
	s.text(whole, true)
	return nil
}

// fromUTF16 makes UTF-8 of a text in UTF-16 that says so by its byte order mark; size is that of
// the whole file.
func fromUTF16(data []byte, size int64) (text []byte, wide bool) {
	order, ok := WideOrder(data)
	if !ok || size%2 != 0 {
		return nil, false
	}
	data = data[2 : len(data)-len(data)%2]
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return []byte(string(utf16.Decode(units))), true
}

// WideOrder returns the byte order of a text in UTF-16 by its byte order mark.
func WideOrder(data []byte) (order binary.ByteOrder, wide bool) {
	switch {
	case len(data) < 2, len(data) >= 4 && data[0] == 0xFF && data[1] == 0xFE && data[2] == 0 && data[3] == 0:
		// that of UTF-32
		return nil, false
	case data[0] == 0xFF && data[1] == 0xFE:
		return binary.LittleEndian, true
	case data[0] == 0xFE && data[1] == 0xFF:
		return binary.BigEndian, true
	default:
		return nil, false
	}
}
