// Package sse reads streams as model servers really send them (spec 12.6): server-sent events with
// comments, keep-alives, CRLF, a byte order mark and very long lines, and lines of JSON.
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

// buffers keeps the buffers of readers that were released: one for each model call would be a
// quarter of all that a run allocates.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// Lines reads a stream of JSON lines. A last line without its end counts: whether it is whole, its
// JSON says.
type Lines struct {
	in      *bufio.Reader
	max     int
	line    []byte
	started bool
}

// NewLines returns a reader that refuses lines longer than limit bytes. Release gives its buffer
// back.
func NewLines(in io.Reader, limit int) *Lines {
	buffer, _ := buffers.Get().(*bufio.Reader)
	buffer.Reset(in)
	return &Lines{in: buffer, max: limit}
}

// Release ends the reader: the reader and its results may not be used afterwards.
func (l *Lines) Release() {
	if l.in == nil {
		return
	}
	l.in.Reset(nil)
	buffers.Put(l.in)
	l.in = nil
}

// Next returns the next line that is not blank; it is valid until the next call. It returns io.EOF
// at the end of the stream.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.read()
		if line = bytes.TrimSpace(line); len(line) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// read returns the next line without its end. A last line without an end comes with io.EOF.
func (l *Lines) read() ([]byte, error) {
	line, err := l.readSlices()
	if !l.started {
		l.started = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'}), err
}

func (l *Lines) readSlices() ([]byte, error) {
	l.line = l.line[:0]
	for {
		chunk, err := l.in.ReadSlice('\n')
		if err == nil && len(l.line) == 0 {
			return chunk, nil
		}
		if len(l.line)+len(chunk) > l.max {
			return nil, ErrTooLong
		}
		l.line = append(l.line, chunk...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.line, err
		}
	}
}

// Events reads server-sent events. Which kind an event is, its data says.
type Events struct {
	*Lines
	max  int
	data []byte
}

// NewEvents returns a reader that refuses events longer than limit bytes. Release gives its buffer
// back.
func NewEvents(in io.Reader, limit int) *Events {
	return &Events{Lines: NewLines(in, limit+16), max: limit} // the name of the field stands before it
}

// Next returns the data lines of the next event with data, joined by line breaks; they are valid
// until the next call. It returns io.EOF at the end of the stream. It drops an event without an
// end, because it may be incomplete (spec 12.6, trap 1).
func (e *Events) Next() ([]byte, error) {
	e.data = e.data[:0]
	hasData := false
	for {
		line, err := e.read()
		switch field, value, _ := bytes.Cut(line, []byte{':'}); {
		case err != nil:
			return nil, err
		case len(line) == 0 && hasData:
			return e.data, nil
		case string(field) == "data":
			if hasData {
				e.data = append(e.data, '\n')
			}
			value = bytes.TrimPrefix(value, []byte{' '})
			if len(e.data)+len(value) > e.max {
				return nil, ErrTooLong
			}
			e.data = append(e.data, value...)
			hasData = true
		}
	}
}
