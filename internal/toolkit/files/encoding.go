package files

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// encoding is how a file writes its text.
type encoding struct {
	text      []byte           // in UTF-8, or as it is
	order     binary.ByteOrder // of UTF-16; nil for bytes
	bytesOnly bool             // it is text, and not UTF-8: Latin-1 perhaps, nobody can tell
}

// encodingOf reads a file that is to be edited. It refuses what would not come out as it went in.
func encodingOf(before *workspace.Content) (*encoding, error) {
	if order, wide := workspace.WideOrder(before.Data); wide {
		e := &encoding{order: order, text: workspace.DecodeWide(before.Data, order)}
		if !bytes.Equal(e.encode(e.text), before.Data) {
			return nil, about("path", regie.Errorf(regie.CodeBadArguments,
				"%s begins like a text in UTF-16 and holds what is none: it cannot be edited", before.Path))
		}
		return e, nil
	}
	if workspace.NotText(before.Data) {
		return nil, about("path", regie.Errorf(regie.CodeBadArguments,
			"%s is not text: it cannot be edited", before.Path))
	}
	return &encoding{text: before.Data, bytesOnly: !utf8.Valid(before.Data)}, nil
}

// encode gives the bytes of a text, a byte order mark in front where it had one.
func (e *encoding) encode(text []byte) []byte {
	if e.order == nil {
		return text
	}
	units := utf16.Encode([]rune("\uFEFF" + string(text)))
	out := make([]byte, 2*len(units))
	for i, unit := range units {
		e.order.PutUint16(out[2*i:], unit)
	}
	return out
}

// mark is the byte order mark of UTF-8.
var mark = []byte("\uFEFF")

// unended reports whether the last line of a text has no end.
func unended(text []byte) bool { return len(text) > 0 && text[len(text)-1] != '\n' }

// lineEnd is how the lines of a text end.
func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// wideName names the encoding for a model.
func wideName(order binary.ByteOrder) string {
	if order == binary.BigEndian {
		return "UTF-16, big endian"
	}
	return "UTF-16, little endian"
}
