package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Digest is the hash of a request that grows: what stays is read once, so that its cost does not
// grow with the thread (decision 31).
type Digest struct {
	sum    hash.Hash
	hashed int
	excess int // bytes of images above their weight
}

// AppendImage writes an image in base64 behind prefix. In sizes it counts as provider.ImageWeight.
func (d *Digest) AppendImage(b []byte, prefix string, image *provider.Media) []byte {
	d.excess += base64.StdEncoding.EncodedLen(len(image.Data)) - provider.ImageWeight
	return base64.StdEncoding.AppendEncode(append(b, prefix...), image.Data)
}

// Sum returns the SHA-256 of a request and its size. head is the same at each call, grown only
// grows, rest is new each time.
func (d *Digest) Sum(head, grown []byte, rest ...[]byte) (regie.Hash, int) {
	if d.sum == nil || len(grown) < d.hashed {
		d.sum, d.hashed = sha256.New(), 0
		d.sum.Write(head)
	}
	d.sum.Write(grown[d.hashed:])
	d.hashed = len(grown)
	cloner, _ := d.sum.(hash.Cloner) // the standard library's SHA-256 is one
	whole, err := cloner.Clone()
	if err != nil { // which it never returns
		return regie.Hash{}, 0
	}
	size := len(head) + len(grown) - d.excess
	for _, piece := range rest {
		_, _ = whole.Write(piece)
		size += len(piece)
	}
	return regie.Hash(whole.Sum(nil)), size
}

// AppendNumber writes a further member of a JSON object; nil writes nothing.
func AppendNumber(b []byte, name string, number *float64) []byte {
	if number == nil {
		return b
	}
	b = append(AppendString(append(b, ','), name), ':')
	return strconv.AppendFloat(b, *number, 'g', -1, 64)
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

// Blank reports whether a text has no character that can be seen.
func Blank(text string) bool { return strings.TrimSpace(text) == "" }
