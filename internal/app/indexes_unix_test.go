//go:build unix

package app

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/regie-run/regie/internal/config"
)

// TestIndexesApart: an index that cannot be opened yet keeps nobody from that of another workspace.
func TestIndexesApart(t *testing.T) {
	t.Parallel()
	c := config.Config{DataDir: t.TempDir()}
	all := newIndexes(c)
	defer all.Close()
	slow, quick := t.TempDir(), t.TempDir()
	path := indexPath(c, slow)
	fatal(t, os.MkdirAll(filepath.Dir(path), 0o700))
	held, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	fatal(t, err)
	fatal(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX))
	opened := make(chan error)
	go func() {
		_, _, err := all.Index(t.Context(), slow)
		opened <- err
	}()
	for taken := 0; taken == 0; {
		all.mu.Lock()
		taken = len(all.open)
		all.mu.Unlock()
	}
	_, done, err := all.Index(t.Context(), quick)
	fatal(t, err)
	done()
	fatal(t, held.Close())
	fatal(t, <-opened)
}
