//go:build unix

package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/index"
)

// TestIndexesApart: an index that cannot be opened yet keeps nobody from that of another workspace,
// and who gives up waiting takes nobody along.
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
	type got struct {
		x    *index.Index
		done func()
		err  error
	}
	ask := func(ctx context.Context) <-chan got {
		out := make(chan got, 1)
		go func() {
			x, done, err := all.Index(ctx, slow)
			out <- got{x, done, err}
		}()
		return out
	}
	first, stopFirst := context.WithCancel(t.Context())
	opener := ask(first)
	for taken := 0; taken == 0; {
		all.mu.Lock()
		taken = len(all.open)
		all.mu.Unlock()
	}
	_, done, err := all.Index(t.Context(), quick)
	fatal(t, err)
	done()
	second, stopSecond := context.WithCancel(t.Context())
	waiter, impatient := ask(t.Context()), ask(second)
	for uses := 0; uses < 3; {
		all.mu.Lock()
		for _, o := range all.open {
			if o.dir == slow {
				uses = o.uses
			}
		}
		all.mu.Unlock()
	}
	stopSecond()
	if r := <-impatient; !errors.Is(r.err, context.Canceled) {
		t.Errorf("who gave up got %v", r.err)
	}
	stopFirst()
	if r := <-opener; !errors.Is(r.err, context.Canceled) {
		t.Errorf("who opened it and gave up got %v", r.err)
	}
	fatal(t, held.Close())
	r := <-waiter
	if r.err != nil {
		t.Fatal(r.err)
	}
	if _, err := r.x.Update(t.Context(), nil); err != nil {
		t.Error(err)
	}
	r.done()
}
