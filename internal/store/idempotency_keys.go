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

// KeysKept is the least time that an Idempotency-Key is kept (spec 10.2).
const KeysKept = 24 * time.Hour

// KeyedWrite is the record of a write with an Idempotency-Key.
type KeyedWrite struct {
	// Fresh says that the key is new, and Begun when it came first.
	Fresh bool
	Begun time.Time
	// Left says that the process that began the write has ended without answering it.
	Left bool
	// Status is the HTTP status of the recorded answer, 0 where no answer is recorded. Answer is
	// the recorded answer, opaque to the store.
	Status int
	Answer []byte
}

// MaxKey bounds an Idempotency-Key, in characters.
const MaxKey = 200

// IdempotencyKey reads the key from the Idempotency-Key headers of a request, "" without one. It
// returns CodeBadRequest for an invalid key.
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

// HashUnder hashes a request under its Idempotency-Key. Without the key the request cannot be
// guessed from the hash.
func HashUnder(key string, said []byte) (out regie.Hash) {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write(said) // a hash takes everything
	mac.Sum(out[:0])
	return out
}

// SealAnswer seals an answer with the Idempotency-Key of its request. The key is stored nowhere, so
// only a client that repeats it can read the answer. SealAnswer returns nil where sealing fails.
// hash is the stored hash of the key.
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
		return nil, regie.Errorf(regie.CodeCorrupt, "the stored answer for this key cannot be read")
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
