package wire

import (
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Lenient is how much of JSON's rules a server may break without harm: bridges repeat keys and cut
// characters in two.
var Lenient = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Said reports whether a field is present and not null.
func Said(raw []byte) bool { return len(raw) > 0 && string(raw) != "null" }

// Claimed decodes a value that a server reports, such as the tokens used. It returns false if the
// value is unreadable; the reply stays valid.
func Claimed(raw []byte, out any) bool {
	return Said(raw) && jsonv2.Unmarshal(raw, out, Lenient) == nil
}

// maxTokens bounds the tokens that a server can report of one kind, so that sums do not overflow.
const maxTokens = 1 << 40

// Tokens bounds a claim.
func Tokens(claimed int64) int64 { return min(max(claimed, 0), maxTokens) }
