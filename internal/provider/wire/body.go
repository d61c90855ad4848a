package wire

import (
	"crypto/sha256"
	"hash"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// Body is a request's body in pieces, which are not copied. The transport may still read it when
// the answer is here already, so whoever owns the bytes writes only behind them.
type Body struct {
	pieces [][]byte
	size   int64
}

// NewBody returns the pieces as one body.
func NewBody(pieces ...[]byte) *Body {
	b := &Body{pieces: pieces}
	for _, piece := range pieces {
		b.size += int64(len(piece))
	}
	return b
}

// Size is the length of the whole body in bytes.
func (b *Body) Size() int64 { return b.size }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (n int, err error) {
	for n < len(p) && len(b.pieces) > 0 {
		copied := copy(p[n:], b.pieces[0])
		n += copied
		if b.pieces[0] = b.pieces[0][copied:]; len(b.pieces[0]) == 0 {
			b.pieces = b.pieces[1:]
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close implements io.Closer.
func (b *Body) Close() error { return nil }

// Digest is the hash of a request that grows: what stays is read once, so that its cost does not
// grow with the thread (decision 31).
type Digest struct {
	sum    hash.Hash
	hashed int
}

// Sum returns the SHA-256 of a request and its length: head, which is the same at each call, then
// what only grows behind what it was at the call before, in pieces, then the rest.
func (d *Digest) Sum(head []byte, grown [][]byte, rest ...[]byte) (regie.Hash, int) {
	length := 0
	for _, piece := range grown {
		length += len(piece)
	}
	if d.sum == nil || length < d.hashed {
		d.sum, d.hashed = sha256.New(), 0
		d.sum.Write(head)
	}
	at := 0
	for _, piece := range grown {
		if end := at + len(piece); end > d.hashed {
			d.sum.Write(piece[max(0, d.hashed-at):])
		}
		at += len(piece)
	}
	d.hashed = length
	whole := d.clone(head, grown)
	size := len(head) + length
	for _, piece := range rest {
		whole.Write(piece)
		size += len(piece)
	}
	var sum regie.Hash
	whole.Sum(sum[:0])
	return sum, size
}

func (d *Digest) clone(head []byte, grown [][]byte) hash.Hash {
	if cloner, ok := d.sum.(hash.Cloner); ok {
		if clone, err := cloner.Clone(); err == nil {
			return clone
		}
	}
	// The standard library's SHA-256 can be cloned; without that the cost grows with the thread,
	// the result does not change.
	whole := sha256.New()
	whole.Write(head)
	for _, piece := range grown {
		whole.Write(piece)
	}
	return whole
}

// AppendString writes a JSON string. Plain ASCII, which is nearly everything, is copied as it is.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendEscaped(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	out, err := jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil { // valid text always encodes
		return append(b, `""`...)
	}
	return out
}
