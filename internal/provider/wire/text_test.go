package wire_test

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider/wire"
)

// TestText adds pieces of all sizes and compares with a plain buffer: the whole, any part of it,
// its hash, and what was handed out before.
func TestText(t *testing.T) {
	for seed := range uint64(50) {
		dice := rand.New(rand.NewPCG(seed, 1))
		var text wire.Text
		var digest wire.Digest
		var plain []byte
		head, tail := []byte("head"), []byte("tail")
		type given struct {
			pieces [][]byte
			want   []byte
		}
		var before []given
		for range 60 {
			n := dice.IntN(1 << dice.IntN(17))
			added := make([]byte, n)
			for i := range added {
				added[i] = byte(dice.Uint32())
			}
			text.Add(func(b []byte) []byte {
				for part := range slices.Chunk(added, 1+dice.IntN(5000)) {
					b = append(b, part...)
				}
				return b
			})
			plain = append(plain, added...)
			if got := slices.Concat(text.All()...); !bytes.Equal(got, plain) || text.Len() != len(plain) || len(plain) > 0 && text.Last() != plain[len(plain)-1] {
				t.Fatalf("seed %d: %d bytes, want %d", seed, len(got), len(plain))
			}
			from := dice.IntN(len(plain) + 1)
			to := from + dice.IntN(len(plain)-from+1)
			part := given{text.Pieces(from, to), slices.Clone(plain[from:to])}
			if !bytes.Equal(slices.Concat(part.pieces...), part.want) {
				t.Fatalf("seed %d: from %d to %d", seed, from, to)
			}
			before = append(before, part)
			if dice.IntN(3) == 0 {
				sum, size := digest.Sum(head, text.All(), tail)
				if want := sha256.Sum256(slices.Concat(head, plain, tail)); sum != regie.Hash(want) || size != len(head)+len(plain)+len(tail) {
					t.Fatalf("seed %d: the hash of %d bytes differs", seed, len(plain))
				}
			}
		}
		for _, part := range before {
			if !bytes.Equal(slices.Concat(part.pieces...), part.want) {
				t.Fatalf("seed %d: what was handed out has changed", seed)
			}
		}
	}
	if text := new(wire.Text); text.Last() != 0 || text.Len() != 0 || len(text.All()) != 0 {
		t.Error("an empty text is not empty")
	}
}
