package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"hash/crc32"
	"math/big"
	"strings"

	"github.com/regie-run/regie"
)

// A secret is "regie_", 43 characters that encode 256 random bits, and 6 that check them. Scanners
// for leaked secrets recognise it offline, and a truncated copy differs from an unknown secret.
const (
	prefix   = "regie_"
	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	random   = 43 // 62^43 > 2^256
	check    = 6  // 62^6 > 2^32
)

// NewSecret returns a random secret.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	text := base62(new(big.Int).SetBytes(b[:]), random)
	return prefix + text + checksum(text)
}

func base62(n *big.Int, width int) string {
	out := make([]byte, width)
	base, digit := big.NewInt(int64(len(alphabet))), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = alphabet[digit.Int64()]
	}
	return string(out)
}

func checksum(text string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(prefix+text)))), check)
}

// Whole reports whether a text has the form of a secret: whether it opens anything is another
// question.
func Whole(secret string) bool {
	text, ok := strings.CutPrefix(secret, prefix)
	return ok && len(text) == random+check && checksum(text[:random]) == text[random:]
}

// Looks reports whether a text is, or holds, what may be a secret: this one's form, or that of an
// older token of a data directory.
func Looks(text string) bool {
	_, after, ok := strings.Cut(text, prefix)
	return ok && len(after) >= random
}

// HashOf is what is stored of a secret. It has 256 random bits, so that nothing slower than one
// hash is needed to keep it.
func HashOf(secret string) regie.Hash { return regie.HashOf([]byte(secret)) }

// Same compares secrets without telling by its time how much is alike.
func Same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
