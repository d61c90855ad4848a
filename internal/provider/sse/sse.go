// Package sse reads server-sent events as model servers really send them (spec 12.6): comments,
// keep-alives, CRLF, a byte order mark, very long lines.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// ErrTooLong says that an event is longer than the reader's bound.
var ErrTooLong = errors.New("an event of the stream is too long")

// Event is one event. Its fields are valid until the next call of Next.
type Event struct {
	Name []byte // the event field; usually empty
	Data []byte // the data lines, joined by line breaks
}

// Reader reads events from a stream.
type Reader struct {
	in      *bufio.Reader
	max     int
	line    []byte
	name    []byte
	data    []byte
	started bool
}

// buffers keeps the buffers of readers that were released: one for each model call would be a
// quarter of all that a run allocates.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// NewReader returns a reader that refuses events longer than limit bytes. Release gives its buffer
// back.
func NewReader(in io.Reader, limit int) *Reader {
	buffer, _ := buffers.Get().(*bufio.Reader)
	buffer.Reset(in)
	return &Reader{in: buffer, max: limit}
}

// Release ends the reader: neither it nor an event of it may be used afterwards.
func (r *Reader) Release() {
	if r.in == nil {
		return
	}
	r.in.Reset(nil)
	buffers.Put(r.in)
	r.in = nil
}

// Next returns the next event that has data. It returns io.EOF at the end of the stream, also where
// the stream ends inside an event: such an event is not complete and is not returned (spec 12.6,
// trap 1).
func (r *Reader) Next() (Event, error) {
	r.name, r.data = r.name[:0], r.data[:0]
	hasData := false
	for {
		line, err := r.readLine()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if hasData {
				return Event{Name: r.name, Data: r.data}, nil
			}
			r.name = r.name[:0]
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
		switch string(field) {
		case "data":
			if hasData {
				r.data = append(r.data, '\n')
			}
			if len(r.data)+len(value) > r.max {
				return Event{}, ErrTooLong
			}
			r.data = append(r.data, value...)
			hasData = true
		case "event":
			r.name = append(r.name[:0], value...)
		}
	}
}

// readLine returns a line without its end; a last line without an end is dropped.
func (r *Reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		chunk, err := r.in.ReadSlice('\n')
		if err == nil && len(r.line) == 0 {
			return r.trim(chunk), nil
		}
		if len(r.line)+len(chunk) > r.max+16 {
			return nil, ErrTooLong
		}
		r.line = append(r.line, chunk...)
		switch {
		case err == nil:
			return r.trim(r.line), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (r *Reader) trim(line []byte) []byte {
	if !r.started {
		r.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	line = bytes.TrimSuffix(line, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'})
}
