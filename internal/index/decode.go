package index

import (
	"bytes"
	"regexp"

	"github.com/regie-run/regie/internal/workspace"
)

// What tells a text that a program wrote for programs: minified, or data in lines without end.
const (
	longAverage  = 1000     // bytes of a line
	longLeast    = 16 << 10 // bytes of a file, of which less does no harm
	longestShare = 2        // or one line is more than this part of it
)

// decodeText makes UTF-8 of a file's content, or says why it is not indexed.
func decodeText(data []byte) ([]byte, Skip) {
	if bytes.IndexByte(data, 0) >= 0 || workspace.NotText(data) {
		return nil, SkipBinary
	}
	if longLines(data) {
		return nil, SkipLongLines
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	return bytes.ToValidUTF8(data, []byte("\uFFFD")), ""
}

func longLines(data []byte) bool {
	if len(data) < longLeast {
		return false
	}
	lines, longest := 0, 0
	for rest := data; len(rest) > 0; lines++ {
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			n = len(rest)
		}
		longest = max(longest, n)
		rest = rest[n:]
	}
	return len(data)/lines > longAverage || longest > len(data)/longestShare
}

// privateKey matches a private key inside a text, such as notes or tests. Files with the names of
// keys are never read.
var privateKey = regexp.MustCompile(
	`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[^-]*(?:-----END [A-Z0-9 ]*-----)?`)

// withoutKeys removes private keys from a text and keeps the line numbers: models and the embedder
// see indexed text.
func withoutKeys(text []byte) []byte {
	if !bytes.Contains(text, []byte("PRIVATE KEY")) {
		return text
	}
	return privateKey.ReplaceAllFunc(text, func(key []byte) []byte {
		return append([]byte("[a private key]"), bytes.Repeat([]byte{'\n'}, bytes.Count(key, []byte{'\n'}))...)
	})
}
