package index

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	maxWorkers    = 8
	readAhead     = 16 // files that wait to be written, besides one for each worker
	progressEvery = 50 * time.Millisecond
)

// known is the index's record of a file.
type known struct {
	id        int64
	stamp     workspace.Stamp
	hash      string // SHA-256; empty where it was not read
	indexedAt int64
	skipped   Skip
	seen      bool // by the walk
}

// isUnchanged reports whether a file is still what was read of it, as far as its stamp can tell.
// One that was written just before it was read is read again by the next update (git calls this
// racy).
func (k *known) isUnchanged(now workspace.Stamp) bool {
	return k.stamp.Size == now.Size && k.stamp.Mtime == now.Mtime &&
		k.stamp.Ctime == now.Ctime && now.Settled(k.indexedAt)
}

// file is one that has to be read, and then what was read of it.
type file struct {
	path  string
	stamp workspace.Stamp
	at    int64  // when its stamp was read
	known *known // nil for a new file

	hash    string
	size    int64 // bytes that were read
	skipped Skip
	same    bool // the content is what the index has
	chunks  []chunkRow
	broken  error // its reader panicked
}

// chunkRow is a chunk with its terms.
type chunkRow struct {
	chunk
	hash                [sha256.Size]byte
	path, symbols, body string // terms
}

// Update updates the index from the workspace (spec 8.3): it reads files with a changed stamp,
// chunks those with changed content, and removes deleted files. Updates of one index take turns,
// across processes. progress may be nil; Update calls it on the caller's goroutine, at most every
// 50 ms and at the end. Work done before the context ended stays. Update returns the context's
// error and the codes of Open.
func (x *Index) Update(ctx context.Context, progress func(Progress)) (out Summary, err error) {
	started := time.Now()
	unlock, err := lockFile(ctx, x.config.Path)
	if err != nil {
		return out, explainError(err, x.config.Path)
	}
	defer unlock()
	err = x.useDatabase(ctx, true, func(db *database) error {
		u := &update{index: x, db: db, progress: progress, summary: Summary{Skipped: map[Skip]int64{}}}
		err := u.runUpdate(ctx)
		out = u.summary
		return err
	})
	out.Took = time.Since(started)
	return out, err
}

// Rebuild is Update after all but vectors was thrown away: those belong to texts and not to files,
// and may have cost money.
func (x *Index) Rebuild(ctx context.Context, progress func(Progress)) (Summary, error) {
	unlock, err := lockFile(ctx, x.config.Path)
	if err != nil {
		return Summary{}, explainError(err, x.config.Path)
	}
	err = x.useDatabase(ctx, true, func(db *database) error {
		return inTransaction(ctx, db.write, func(tx *sql.Tx) error { return resetWords(ctx, tx) })
	})
	unlock()
	if err != nil {
		return Summary{}, err
	}
	return x.Update(ctx, progress)
}

// update walks the workspace, reads files with several workers, and writes their results on the
// caller's goroutine.
type update struct {
	index    *Index
	db       *database
	progress func(Progress)
	watch    *watch            // nil: nothing is watched
	known    map[string]*known // by path
	files    []*file           // to be read
	summary  Summary
	shown    time.Time
}

func (u *update) runUpdate(ctx context.Context) (err error) {
	if u.known, err = readFiles(ctx, u.db); err != nil {
		return err
	}
	u.watch = u.index.newWatch()
	defer func() { u.index.setWatch(u.watch, err == nil) }()
	if err := u.findChanged(ctx); err != nil {
		return err
	}
	w, err := newWriter(u.db)
	if err != nil {
		return err
	}
	err = u.writeFiles(ctx, w)
	if err = errors.Join(err, w.endTx(err)); err != nil {
		return err
	}
	u.showProgress(Progress{Done: u.summary.Read, Total: int64(len(u.files)), Bytes: u.summary.Bytes}, true)
	return u.countIndexed(ctx)
}

// findChanged finds the files that have to be read.
func (u *update) findChanged(ctx context.Context) error {
	u.showProgress(Progress{Walking: true}, false)
	u.watch.addDir(".git/info") // for git's exclude file
	walked, err := u.index.root.Walk(ctx, ".", func(e *workspace.WalkEntry) bool {
		if e.Dir {
			u.watch.addDir(e.Path) // before it is listed, so that no file comes unseen
			return true
		}
		if _, err := workspace.Clean(e.Path); err != nil || !utf8.ValidString(e.Path) {
			u.summary.Skipped[SkipName]++
			return true
		}
		k := u.known[e.Path]
		if k != nil {
			if k.seen = true; k.isUnchanged(e.Stamp) {
				return true
			}
		}
		u.files = append(u.files, &file{path: e.Path, stamp: e.Stamp, at: time.Now().UnixNano(), known: k})
		u.showProgress(Progress{Total: int64(len(u.files)), Walking: true}, false)
		return true
	})
	maps.Copy(u.summary.Skipped, map[Skip]int64{
		SkipSecret: walked.Secret, SkipIgnored: walked.Ignored,
		SkipUnreadable: walked.Unreadable,
	})
	if walked.TooMany {
		u.summary.Skipped[SkipBeyond] = 1
	}
	return err
}

// writeFiles stores the workers' results, and removes deleted files.
func (u *update) writeFiles(ctx context.Context, w *writer) error {
	inner, cancel := context.WithCancel(ctx)
	files := u.readFiles(inner)
	defer func() {
		cancel()
		for range files { // until the workers have ended
		}
	}()
	for f := range files {
		switch {
		case f.broken != nil:
			return f.broken
		case f.skipped == SkipUnreadable: // the next update tries again
			u.summary.Skipped[SkipUnreadable]++
			if f.known == nil {
				continue
			}
			u.summary.Removed++
			if err := w.removeFile(f.known.id, f.path); err != nil {
				return err
			}
			continue
		}
		if err := w.storeFile(f); err != nil {
			return err
		}
		if !f.same {
			u.summary.Changed++
		}
		u.summary.Read++
		u.summary.Bytes += f.size
		u.showProgress(Progress{Done: u.summary.Read, Total: int64(len(u.files)), Bytes: u.summary.Bytes}, false)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for path, k := range u.known {
		if k.seen {
			continue
		}
		u.summary.Removed++
		if err := w.removeFile(k.id, path); err != nil {
			return err
		}
	}
	return nil
}

// readFiles has workers read the files. They end when all are read or the context has ended.
func (u *update) readFiles(ctx context.Context) <-chan *file {
	out := make(chan *file, readAhead)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), maxWorkers, len(u.files)) {
		workers.Go(func() {
			terms := newSplitter()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(u.files) || ctx.Err() != nil {
					return
				}
				f := u.files[i]
				u.files[i] = nil // its text goes when it is written
				f.readFile(u.index, terms)
				select {
				case out <- f:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	go func() {
		workers.Wait()
		close(out)
	}()
	return out
}

// readFile reads the file and cuts it. A panic ends the update, not the program.
func (f *file) readFile(x *Index, terms *splitter) {
	defer func() {
		if r := recover(); r != nil {
			f.broken = regie.Errorf(regie.CodeInternal, "updating the index failed: %s", fmt.Sprint(r))
		}
	}()
	if f.stamp.Size > x.config.MaxFile {
		f.skipped = SkipLarge
		return
	}
	data, err := x.root.ReadPlain(f.path, x.config.MaxFile)
	if err != nil {
		if f.skipped = SkipUnreadable; regie.CodeOf(err) == regie.CodeFileTooLarge { // it has grown
			f.skipped = SkipLarge
		}
		return
	}
	sum := sha256.Sum256(data)
	f.hash, f.size = string(sum[:]), int64(len(data))
	if f.known != nil && f.known.hash == f.hash {
		f.same = true
		return
	}
	text, skipped := decodeText(data)
	if f.skipped = skipped; skipped != "" {
		return
	}
	path := terms.spellTerms(f.path)
	for _, c := range cutChunks(f.path, withoutKeys(text)) {
		f.chunks = append(f.chunks, chunkRow{
			chunk: c, hash: sha256.Sum256([]byte(c.Text)),
			path: path, symbols: terms.spellTerms(c.Symbol), body: terms.spellTerms(c.Text),
		})
	}
}

func (u *update) showProgress(p Progress, last bool) {
	if now := time.Now(); u.progress != nil && (last || now.Sub(u.shown) >= progressEvery) {
		u.shown = now
		u.progress(p)
	}
}

// countIndexed counts the files in the index.
func (u *update) countIndexed(ctx context.Context) error {
	rows, err := u.db.read.QueryContext(ctx, "SELECT skipped, count(*) FROM files GROUP BY skipped")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var why Skip
		var n int64
		if err := rows.Scan(&why, &n); err != nil {
			return err
		}
		if why == "" {
			u.summary.Files = n
		} else {
			u.summary.Skipped[why] += n
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	maps.DeleteFunc(u.summary.Skipped, func(_ Skip, n int64) bool { return n == 0 })
	return u.db.read.QueryRowContext(ctx, "SELECT count(*) FROM chunks").Scan(&u.summary.Chunks)
}
