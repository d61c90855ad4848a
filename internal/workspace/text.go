package workspace

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Sniffed is how many bytes of a file tell text from what is none.
const Sniffed = 8 << 10

// NotText reports whether a file's first bytes are not text: a NUL, or much that is not UTF-8.
func NotText(data []byte) bool {
	head := data[:min(len(data), Sniffed)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	if utf8.Valid(head) {
		return false
	}
	bad, total := 0, 0
	// the last character may be cut
	for rest := head; len(rest) > 0 && (len(rest) >= utf8.UTFMax || total == 0); total++ {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			bad++
		}
		rest = rest[size:]
	}
	return bad*10 > total*3
}

// DecodeWide makes UTF-8 of a text in UTF-16, without its byte order mark.
func DecodeWide(data []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return bytes.TrimPrefix([]byte(string(utf16.Decode(units))), []byte("\uFEFF"))
}

// WideText tells a text in UTF-16 from bytes that begin with its mark by chance.
func WideText(data []byte) (order binary.ByteOrder, ok bool) {
	order, ok = WideOrder(data)
	if !ok {
		return nil, false
	}
	text := bytes.TrimSuffix(DecodeWide(data, order), []byte("\uFFFD")) // the last character may be cut
	return order, !bytes.ContainsAny(text, "\uFFFD\uFEFF\x00")
}

// WideOrder returns the byte order of a text in UTF-16 by its byte order mark.
func WideOrder(data []byte) (order binary.ByteOrder, wide bool) {
	switch {
	case len(data) < 2, bytes.HasPrefix(data, []byte{0xFF, 0xFE, 0, 0}): // that of UTF-32
		return nil, false
	case data[0] == 0xFF && data[1] == 0xFE:
		return binary.LittleEndian, true
	case data[0] == 0xFE && data[1] == 0xFF:
		return binary.BigEndian, true
	default:
		return nil, false
	}
}
