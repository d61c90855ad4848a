package wire

import (
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Lenient is how much of JSON's rules a server may break without harm: bridges repeat keys and cut
// characters in two.
var Lenient = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Said reports whether a field is there and not null.
func Said(raw []byte) bool { return len(raw) > 0 && string(raw) != "null" }

// Claimed reads what a server claims, of the tokens that it has used above all, and reports whether
// it can be read. A claim that cannot costs nobody the reply.
func Claimed(raw []byte, out any) bool {
	return Said(raw) && jsonv2.Unmarshal(raw, out, Lenient) == nil
}

// maxTokens is what a server can claim of one kind of token: more would not be a number that can be
// added up.
const maxTokens = 1 << 40

// Tokens bounds a claim.
func Tokens(claimed int64) int64 { return min(max(claimed, 0), maxTokens) }
