package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// TestLockGone has somebody delete the lock of an update that is under way: the next one holds the
// lock of that name, both write one file, and neither fails or writes upon what it no longer knows.
func TestLockGone(t *testing.T) {
	for _, filled := range []bool{false, true} {
		t.Run(fmt.Sprintf("filled=%t", filled), func(t *testing.T) {
			root, dir, file := place(t, many(20))
			x, other := open(t, root, file), open(t, root, file)
			if filled {
				refresh(t, x)
			}
			for path := range many(20) {
				put(t, dir, path, "common changed")
			}
			var once sync.Once
			s, err := x.Update(t.Context(), func(Progress) {
				once.Do(func() { // it knows what is in the index, and has written nothing yet
					if err := os.Remove(file + ".lock"); err != nil {
						t.Error(err)
					}
					if s := refresh(t, other); s.Files != 20 {
						t.Errorf("the other one: %+v", s)
					}
				})
			})
			if err != nil || s.Files != 20 {
				t.Errorf("%+v, %v", s, err)
			}
			if found, err := x.Search(t.Context(), Query{Text: "common changed", Limit: 100}); err != nil || len(found.Hits) != 20 {
				t.Errorf("%d hits, %v", len(found.Hits), err)
			}
			check(t, file)
		})
	}
}

// TestDirectoryGone deletes the index's whole directory while it is open and another process makes
// it anew all the time: no search and no update ever fails for that.
func TestDirectoryGone(t *testing.T) {
	root, _, file := place(t, many(20))
	x := open(t, root, file)
	refresh(t, x)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			other, err := Open(ctx, root, Config{Path: file})
			if err == nil {
				_, err = other.Rebuild(ctx, nil)
				err = errors.Join(err, other.Close())
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("rebuild: %v", err)
			}
		}
	})
	for i := range 40 {
		if i%10 == 9 {
			if err := os.RemoveAll(filepath.Dir(file)); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
				t.Fatal(err)
			}
		}
		if _, err := x.Search(ctx, Query{Text: "number7"}); err != nil {
			t.Errorf("search %d: %v", i, err)
		}
		fresh, err := Open(ctx, root, Config{Path: file})
		if err != nil {
			t.Errorf("open %d: %v", i, err)
			continue
		}
		if _, err := fresh.Update(ctx, nil); err != nil {
			t.Errorf("update %d: %v", i, err)
		}
		if err := fresh.Close(); err != nil {
			t.Errorf("close %d: %v", i, err)
		}
	}
	stop()
	group.Wait()
	if s := refresh(t, x); s.Files != 20 {
		t.Errorf("in the end: %+v", s)
	}
}
