package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// TestGuard_FIFO puts a FIFO where git would look: the guard does not wait at it, and takes away what else was planted.
func TestGuard_FIFO(t *testing.T) {
	everyTier(t, func(t *testing.T, b *box) {
		t.Helper()
		r := b.sh(`mkdir -p d x e && mkfifo d/.git e/.regie && git init -q x &&
			printf '#!/bin/sh\necho pwned\n' > x/.git/hooks/pre-commit && chmod +x x/.git/hooks/pre-commit && mkfifo x/.git/commondir`)
		if r.err != nil || len(r.Removed) == 0 {
			t.Errorf("got %+v, %v", r.Result, r.err)
		}
		for _, name := range []string{"d/.git", "e/.regie", "x/.git/hooks/pre-commit", "x/.git/commondir"} {
			if _, err := os.Lstat(filepath.Join(b.root, name)); err == nil {
				t.Errorf("%s is still there", name)
			}
		}
	})
}
