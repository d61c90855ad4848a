package workspace

import (
	"bytes"
	"errors"
	"io"
	"path"
)

const (
	firstBuffer = 256 << 10
	decoded     = 8 << 20 // bytes of a file in UTF-16 that are searched
)

// scanner searches files, one after the other. It is used by one goroutine.
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
		in, info, err := b.in.open(name)
		if err != nil {
			b.seen.Unreadable++
			continue
		}
		s.path, s.line, s.inner, s.given = path.Join(b.in.path, name), 1, false, false
		err = s.file(in, info.Size())
		_ = in.Close() // it was only read
		if err != nil {
			b.seen.Unreadable++
		}
	}
}

// file searches one file, a buffer at a time.
func (s *scanner) file(in io.Reader, size int64) error {
	seen, most := &s.out.seen, s.query.MaxFile
	if most <= 0 {
		most = size
	}
	clipped := size > most
	defer func() {
		if clipped {
			seen.Clipped++
		}
	}()
	held, total := 0, int64(0)
	for first := true; ; first = false {
		n, end, err := readFull(in, s.buffer[held:min(int64(len(s.buffer)), int64(held)+most-total)], size-total)
		if err != nil {
			return err
		}
		total += int64(n)
		if !end && total >= most { // a file of less has grown since it was opened
			end, clipped = true, clipped || size < most
		}
		text := s.buffer[:held+n]
		if first {
			if order, wide := WideOrder(text); wide && size%2 == 0 {
				whole := io.MultiReader(bytes.NewReader(text), in)
				all, err := io.ReadAll(io.LimitReader(whole, min(size, most, decoded)))
				if err != nil {
					return err
				}
				clipped = size > int64(len(all))
				seen.Files++
				seen.Bytes += int64(len(all))
				s.text(DecodeWide(all, order), true)
				return nil
			}
			if bytes.IndexByte(text, 0) >= 0 {
				seen.Binary++
				return nil
			}
			seen.Files++
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
		if end || s.ctx.Err() != nil || len(s.out.found) >= s.most {
			seen.Bytes += total
			return nil
		}
		held = copy(s.buffer, text[cut:])
	}
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
