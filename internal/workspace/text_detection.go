package workspace

import (
	"bytes"
	"unicode/utf8"
)

// Sniffed is how many bytes of a file decide whether it is text.
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
