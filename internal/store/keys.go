package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// KeysKept is how long an Idempotency-Key is remembered, at the least (spec 10.2).
const KeysKept = 24 * time.Hour

// KeyedWrite is what is known of a write with an Idempotency-Key.
type KeyedWrite struct {
	// Fresh says that the key came for the first time, and Begun when it did.
	Fresh bool
	Begun time.Time
	// Left says that the process that began the write has ended.
	Left bool
	// Status is the HTTP status of the stored answer, 0 without one; Answer is the stored answer,
	// opaque to the store.
	Status int
	Answer []byte
}

// MaxKey bounds an Idempotency-Key, in characters.
const MaxKey = 200

// IdempotencyKey reads the key of a request from what its headers of that name say; "" where it has
// none, and CodeBadRequest where that is no key.
func IdempotencyKey(headers []string) (string, error) {
	if len(headers) == 0 {
		return "", nil
	}
	key := strings.TrimSpace(headers[0])
	bad := func(c rune) bool { return c < ' ' || c > '~' }
	if len(headers) > 1 || key == "" || len(key) > MaxKey || strings.ContainsFunc(key, bad) {
		return "", regie.Errorf(regie.CodeBadRequest, "an Idempotency-Key is one line of 1 to %d plain characters",
			MaxKey)
	}
	return key, nil
}

// HashUnder is the hash of what was said with an Idempotency-Key: who does not have the key cannot
// guess it from what is remembered.
func HashUnder(key string, said []byte) (out regie.Hash) {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write(said) // a hash takes everything
	mac.Sum(out[:0])
	return out
}

// SealAnswer encrypts an answer with the Idempotency-Key of its request, which is stored nowhere:
// only a repeated request can read it. It returns nil where that fails. The hash is the stored form
// of the key.
func SealAnswer(key string, hash regie.Hash, answer []byte) []byte {
	seal, err := sealOf(key)
	if err != nil {
		return nil
	}
	return seal.Seal(nil, nil, answer, hash[:]) //nolint:gosec // the nonce is random, and the library's own
}

// OpenAnswer opens what SealAnswer sealed.
func OpenAnswer(key string, hash regie.Hash, sealed []byte) ([]byte, error) {
	seal, err := sealOf(key)
	if err != nil {
		return nil, err
	}
	answer, err := seal.Open(nil, nil, sealed, hash[:])
	if err != nil {
		return nil, regie.Errorf(regie.CodeCorrupt, "the answer that was kept for this key cannot be read")
	}
	return answer, nil
}

func sealOf(key string) (cipher.AEAD, error) {
	secret := HashUnder(key, []byte("the answer"))
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
