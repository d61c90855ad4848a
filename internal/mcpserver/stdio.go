package mcpserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// maxLine bounds one message in bytes.
const maxLine = 16 << 20

// frames passes on a stream of lines and ends at the first line that is not one JSON value with
// unique keys (spec 11.3).
type frames struct {
	in   *bufio.Reader
	left []byte // of the line that is being handed on
}

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	if len(f.left) == 0 {
		line, err := f.readLine()
		if err != nil {
			return 0, err
		}
		if len(bytes.TrimSpace(line)) > 0 && !jsontext.Value(line).IsValid() {
			return 0, regie.Errorf(regie.CodeBadRequest, "a message is one JSON value in UTF-8 without repeated keys")
		}
		f.left = line
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// Close does nothing: the owner of the stream closes it.
func (f *frames) Close() error { return nil }

// readLine reads the next line with its end, which the last one may lack.
func (f *frames) readLine() ([]byte, error) {
	var line []byte
	for {
		piece, err := f.in.ReadSlice('\n')
		if line = append(line, piece...); len(line) > maxLine {
			return nil, errors.New("a message has more than 16 MiB")
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 {
			err = nil
		}
		return line, err
	}
}

// openWriter is a writer that its owner closes.
type openWriter struct{ io.Writer }

// Close does nothing.
func (openWriter) Close() error { return nil }
