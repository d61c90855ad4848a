package workspace

import (
	"bytes"
	"errors"
	"io"
	"path"
)

const (
	bufferSize   = 1 << 20   // bytes; what stands across two pieces of a longer line is not found
	portionSize  = 128 << 10 // bytes that are searched between two looks at the clock
	longestPiece = 512 << 10 // bytes of a line that are searched together
)

// scanner searches files, one after the other. It is used by one goroutine.
type scanner struct {
	*search
	seeker *seeker
	buffer []byte

	// Of the file at hand.
	out  *batch
	path string
	line int // of the first byte of the text at hand
}

func (s *scanner) batch(b *batch) {
	s.out = b
	for _, name := range b.names {
		if s.ctx.Err() != nil || len(b.found) >= s.most {
			return
		}
		in, info, err := b.in.open(name)
		if err != nil {
			b.seen.Unreadable++
			continue
		}
		s.path, s.line = path.Join(b.in.path, name), 1
		err = s.file(in, info.Size())
		_ = in.Close() // it was only read
		if err != nil {
			b.seen.Unreadable++
		}
	}
}

// file searches one file, a buffer at a time. What a file has grown by since it was opened is left
// out.
func (s *scanner) file(in io.Reader, size int64) error {
	seen, most := &s.out.seen, size
	if s.query.MaxFile > 0 && size > s.query.MaxFile {
		most = s.query.MaxFile
	}
	in = io.LimitReader(in, most)
	for held, first := 0, true; ; first = false {
		n, err := io.ReadFull(in, s.buffer[held:])
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return err
		}
		text := s.buffer[:held+n]
		if first {
			if bytes.IndexByte(text, 0) >= 0 {
				seen.Binary++
				return nil
			}
			seen.Files++
			if most < size {
				seen.Clipped++
			}
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		}
		seen.Bytes += int64(n)
		cut := len(text)
		if last := bytes.LastIndexByte(text, '\n'); !end && last >= 0 {
			cut = last + 1
		}
		s.text(text[:cut])
		if end || s.ctx.Err() != nil || len(s.out.found) >= s.most {
			return nil //nolint:nilerr // the caller looks at the context
		}
		held = copy(s.buffer, text[cut:])
	}
}

// text searches whole lines, or a piece of one, in portions between which the clock is looked at.
func (s *scanner) text(text []byte) {
	for len(text) > 0 && s.ctx.Err() == nil {
		portion := text
		if len(text) > portionSize {
			portion = text[:portionSize]
			if end := bytes.LastIndexByte(portion, '\n'); end >= 0 {
				portion = portion[:end+1]
			} else if end := bytes.IndexByte(text, '\n'); end >= 0 && end < longestPiece {
				portion = text[:end+1]
			}
		}
		if !s.portion(portion) {
			return
		}
		s.line += bytes.Count(portion, []byte("\n"))
		text = text[len(portion):]
	}
}

// portion searches a text that begins at the scanner's line. It reports whether more is wanted.
func (s *scanner) portion(text []byte) bool {
	s.seeker.reset(text)
	number, from, counted := s.line, 0, 0
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
		from = line[1] + 1
	}
}
