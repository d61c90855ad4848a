package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Lines reads a stream of JSON lines. A last line without its end counts: whether it is whole, its
// JSON says.
type Lines struct {
	in   *bufio.Reader
	line []byte
}

// NewLines returns a reader of lines.
func NewLines(in io.Reader) *Lines { return &Lines{in: bufio.NewReaderSize(in, 16<<10)} }

// Next returns the next line that is not blank; it is valid until the next call. It returns io.EOF
// at the end, and bufio.ErrTooLong for a line over MaxEvent.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.read()
		if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))); len(line) > 0 &&
			(err == nil || errors.Is(err, io.EOF)) {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (l *Lines) read() ([]byte, error) {
	l.line = l.line[:0]
	for {
		chunk, err := l.in.ReadSlice('\n')
		if err == nil && len(l.line) == 0 {
			return chunk, nil
		}
		if len(l.line)+len(chunk) > MaxEvent {
			return nil, bufio.ErrTooLong
		}
		l.line = append(l.line, chunk...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.line, err
		}
	}
}
