package workspace

import (
	"bytes"
	"io"
	"path"
)

// maxSearched is how many bytes of a file are searched.
const maxSearched = 16 << 20

// scanner searches files, one after the other. It is used by one goroutine.
type scanner struct {
	*search
	*pattern
	buffer bytes.Buffer
	text   []byte
	folded []byte // the text with small letters for ASCII's capitals, where the needle is folded
}

func (s *scanner) scanBatch(b *batch) {
	for _, name := range b.names {
		if s.ctx.Err() != nil || len(b.found) >= s.most {
			return
		}
		in, info, err := b.in.openFile(name)
		if err != nil {
			b.seen.Unreadable++
			continue
		}
		s.buffer.Reset()
		s.buffer.Grow(int(min(info.Size(), maxSearched)) + bytes.MinRead)
		_, err = s.buffer.ReadFrom(io.LimitReader(in, maxSearched))
		_ = in.Close() // it was only read
		if err != nil {
			b.seen.Unreadable++
			continue
		}
		s.searchFile(b, path.Join(b.in.path, name), info.Size())
	}
}

// searchFile searches the buffered part of a file of a size.
func (s *scanner) searchFile(b *batch, name string, size int64) {
	text := s.buffer.Bytes()
	if bytes.IndexByte(text, 0) >= 0 {
		b.seen.Binary++
		return
	}
	b.seen.Files++
	b.seen.Bytes += int64(len(text))
	if size > maxSearched {
		b.seen.Clipped++
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	s.setText(text)
	number, from, counted := 1, 0, 0
	for len(b.found) < s.most {
		line, at, found := s.nextMatch(from)
		if !found {
			return
		}
		number += bytes.Count(text[counted:line[0]], []byte("\n"))
		counted, from = line[0], line[1]+1
		b.found = append(b.found, s.clipLine(Match{Path: name, Line: number}, text[line[0]:line[1]], at-line[0]))
	}
}
