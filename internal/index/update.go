package index

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/index/posting"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	maxWorkers = 8
	jobsAhead  = 64 // each may hold a directory open
	readAhead  = 16 // files that wait to be written, with their text, beside one that each worker has

	// What one commit takes at most: so much is lost by a kill, and read again.
	commitBytes = 32 << 20
	commitFiles = 5000
	commitAfter = 5 * time.Second

	progressEvery = 50 * time.Millisecond
)

// known is what the index has of a file.
type known struct {
	id        int64
	stamp     workspace.Stamp
	hash      string // SHA-256; empty where it was not read
	indexedAt int64
	skipped   Skip
	seen      bool // by the walk
}

// unchanged reports whether a file is still what was read of it, as far as its stamp can tell. One
// that was written just before it was read is read again by the next update (git calls this racy).
func (k *known) unchanged(now workspace.Stamp) bool {
	return k.stamp.Size == now.Size && k.stamp.Mtime == now.Mtime &&
		k.stamp.Ctime == now.Ctime && now.Settled(k.indexedAt)
}

// job is a file that has to be read.
type job struct {
	entry *workspace.WalkEntry
	at    int64  // when its stamp was read
	known *known // nil for a new file
}

// outcome is what a worker made of a job.
type outcome struct {
	job
	hash    string
	size    int64 // bytes that were read
	skipped Skip
	same    bool // the content is what the index has
	chunks  []prepared
}

// prepared is a chunk with its terms.
type prepared struct {
	chunk
	hash   [sha256.Size]byte
	terms  []posting.Term
	length int // of the terms, with repetitions
}

// waiting tells that somebody else is waited for.
func waiting(progress func(Progress)) func() {
	if progress == nil {
		return nil
	}
	return func() { progress(Progress{Waits: true}) }
}

// turn waits for the updates of this process that are under way.
func (x *Index) turn(ctx context.Context, progress func(Progress)) error {
	select {
	case x.updates <- struct{}{}:
		return nil
	default:
	}
	silence := time.NewTimer(lockSilence)
	defer silence.Stop()
	for {
		select {
		case x.updates <- struct{}{}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-silence.C:
			if told := waiting(progress); told != nil {
				told()
			}
		}
	}
}

// Update brings the index up to what the workspace holds (spec 8.3): files whose stamp has moved
// are read, of those the ones with another content are cut into chunks, and those that have gone
// are taken out. Several updates of one index, in whatever processes, come one after the other.
// progress may be nil; it is called on the caller's goroutine, at most every 50 ms and at the end,
// and once where another one is waited for. What was done before the context ended stays. It
// returns the context's error and the codes of Open.
func (x *Index) Update(ctx context.Context, progress func(Progress)) (Summary, error) {
	if err := x.turn(ctx, progress); err != nil {
		return Summary{}, err
	}
	defer func() { <-x.updates }()
	started := time.Now()
	watch := x.watched()
	changes := watch.seen()
	out, err := x.locked(ctx, progress, watch)
	for try := 0; errors.Is(err, errOvertaken) && try < maxTries; try++ { // now for the lock that has its name
		out, err = x.locked(ctx, progress, watch)
	}
	if err == nil {
		watch.covers(changes)
	}
	out.Took = time.Since(started)
	return out, explain(err, x.config.Path)
}

// locked makes one update under the writers' lock.
func (x *Index) locked(ctx context.Context, progress func(Progress), watch *watch) (out Summary, err error) {
	unlock, err := lock(ctx, x.config.Path, waiting(progress))
	if err != nil {
		return out, explain(err, x.config.Path)
	}
	defer unlock()
	var overtaken bool
	err = x.using(ctx, true, func(db *database) error {
		u := &update{index: x, progress: progress, watch: watch}
		var err error
		out, err = u.run(ctx, db)
		db.filled.Store(err == nil)
		x.upTo.Store(db)
		overtaken = errors.Is(err, errOvertaken)
		return err
	})
	if overtaken {
		err = errOvertaken
	}
	return out, err
}

// Rebuild is Update after everything that the index knows was thrown away, but for vectors: they
// belong to texts and not to files, and may have cost money.
func (x *Index) Rebuild(ctx context.Context, progress func(Progress)) (Summary, error) {
	unlock, err := lock(ctx, x.config.Path, waiting(progress))
	if err == nil {
		if err = makeFile(ctx, x.config.Path, true); err != nil && ctx.Err() == nil { // Update makes one
			err = removeFile(x.config.Path)
		}
		unlock()
	}
	if err != nil {
		return Summary{}, explain(err, x.config.Path)
	}
	return x.Update(ctx, progress)
}

// update is one update on its way.
type update struct {
	index    *Index
	progress func(Progress)
	watch    *watch            // nil: nothing is watched
	known    map[string]*known // the walker's until it has ended
	walked   workspace.Walked
	walkErr  error
	names    int64 // files that no tool could name

	queued  atomic.Int64 // files that the walk has come to and that have to be read
	counted atomic.Int64 // all of them, where they were counted
	walking atomic.Bool
	counter sync.WaitGroup
	done    int64
	unread  int64 // files that could not be read
	bytes   int64
	shown   time.Time
	broken  atomic.Pointer[string] // what a goroutine panicked with
}

func (u *update) run(ctx context.Context, db *database) (out Summary, err error) {
	var last int64
	if u.known, last, err = db.files(ctx); err != nil {
		return out, err
	}
	w, err := newWriter(ctx, db, last)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	u.walking.Store(true)
	u.tell(false)
	u.watch.add(".git/info") // for git's exclude file
	inner, cancel := context.WithCancel(ctx)
	results, wait := u.start(inner)
	err = u.write(ctx, w, results, &out)
	cancel()
	for range results { // what is on its way holds directories open until it is taken
	}
	wait()
	switch {
	case err != nil:
		return out, err
	case u.broken.Load() != nil:
		return out, regie.Errorf(regie.CodeInternal, "the index's update broke down: %s", *u.broken.Load())
	case u.walkErr != nil:
		return out, u.walkErr
	}
	for path, k := range u.known {
		if !k.seen {
			if err := w.remove(k.id); err != nil {
				return out, err
			}
			out.Removed++
			delete(u.known, path)
		}
	}
	if err := w.commit(); err != nil {
		return out, err
	}
	if err := w.merge(ctx); err != nil {
		return out, err
	}
	u.tell(true)
	out.Read, out.Bytes = u.done, u.bytes
	err = u.summary(ctx, db, &out)
	return out, err
}

// start has the workspace walked and its files read. The caller reads the results to their end and
// then waits.
func (u *update) start(ctx context.Context) (<-chan outcome, func()) {
	jobs, results := make(chan job, jobsAhead), make(chan outcome, readAhead)
	var walker, workers sync.WaitGroup
	walker.Go(func() {
		defer close(jobs)
		defer u.walking.Store(false)
		u.sound(func() {
			u.walked, u.walkErr = u.index.root.Walk(ctx, ".", func(e *workspace.WalkEntry) bool {
				return u.visit(ctx, e, jobs)
			})
		})
	})
	for range min(runtime.GOMAXPROCS(0), maxWorkers) {
		workers.Go(func() {
			r := newReader(u.index.config.MaxFile)
			for j := range jobs {
				u.sound(func() { results <- r.read(ctx, j) })
				j.entry.Release()
			}
		})
	}
	go func() {
		workers.Wait()
		close(results)
	}()
	return results, func() {
		walker.Wait()
		u.counter.Wait()
	}
}

// sound does a part of the work on a goroutine of the update: a panic there ends the update, not
// the program.
func (u *update) sound(do func()) {
	defer func() {
		if r := recover(); r != nil {
			what := fmt.Sprint(r)
			u.broken.CompareAndSwap(nil, &what)
		}
	}()
	do()
}

// visit sorts out which files have to be read. It reports whether the walk goes on.
func (u *update) visit(ctx context.Context, e *workspace.WalkEntry, jobs chan<- job) bool {
	if e.Dir {
		u.watch.add(e.Path) // before it is listed, so that no file comes unseen
		return true
	}
	if _, err := workspace.Clean(e.Path); err != nil || !utf8.ValidString(e.Path) {
		u.names++
		return true
	}
	k := u.known[e.Path]
	if k != nil {
		if k.seen = true; k.unchanged(e.Stamp) {
			return true
		}
	}
	e.Keep()
	select {
	case jobs <- job{entry: e, at: time.Now().UnixNano(), known: k}:
		if u.queued.Add(1) == jobsAhead && u.progress != nil { // from here on the walk waits for the readers
			u.counter.Go(func() { u.sound(func() { u.count(ctx) }) })
		}
		return true
	case <-ctx.Done():
		e.Release()
		return false
	}
}

// count finds out how many files have to be read, for people who wait.
func (u *update) count(ctx context.Context) {
	n := int64(0)
	_, err := u.index.root.Walk(ctx, ".", func(e *workspace.WalkEntry) bool {
		if k := u.known[e.Path]; !e.Dir && (k == nil || !k.unchanged(e.Stamp)) {
			n++
		}
		return true
	})
	if err == nil {
		u.counted.Store(n)
	}
}

// write stores what the workers make, some files at a time.
func (u *update) write(ctx context.Context, w *writer, results <-chan outcome, out *Summary) error {
	for o := range results {
		if ctx.Err() != nil {
			break
		}
		if o.skipped == SkipUnreadable { // it is tried again the next time
			if u.unread++; o.known != nil {
				out.Removed++
				if err := w.remove(o.known.id); err != nil {
					return err
				}
			}
			continue
		}
		if err := w.put(&o); err != nil {
			return err
		}
		if !o.same {
			out.Changed++
		}
		u.done++
		u.bytes += o.size
		u.tell(false)
	}
	if err := w.commit(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (u *update) tell(last bool) {
	now := time.Now()
	if u.progress == nil || !last && now.Sub(u.shown) < progressEvery {
		return
	}
	u.shown = now
	queued, walking := u.queued.Load(), u.walking.Load()
	p := Progress{Done: u.done, Total: queued, Bytes: u.bytes, Walking: walking}
	if counted := u.counted.Load(); walking && counted > queued {
		p.Total, p.Walking = counted, false
	}
	u.progress(p)
}

// summary counts what is in the index, and what is not.
func (u *update) summary(ctx context.Context, db *database, out *Summary) error {
	out.Skipped = map[Skip]int64{}
	rows, err := db.read.QueryContext(ctx, "SELECT skipped, count(*) FROM files GROUP BY skipped")
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
			out.Files = n
			continue
		}
		out.Skipped[why] = n
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for why, n := range map[Skip]int64{
		SkipSecret: u.walked.Secret, SkipIgnored: u.walked.Ignored, SkipSystem: u.walked.System,
		SkipUnreadable: u.walked.Unreadable + u.unread, SkipName: u.names,
	} {
		out.Skipped[why] += n
	}
	if u.walked.TooMany {
		out.Skipped[SkipBeyond] = 1
	}
	maps.DeleteFunc(out.Skipped, func(_ Skip, n int64) bool { return n == 0 })
	return db.read.QueryRowContext(ctx, "SELECT count(*) FROM chunks").Scan(&out.Chunks)
}

// reader reads files and cuts them. It belongs to one worker.
type reader struct {
	most   int64
	buffer []byte
	terms  *splitter
}

func newReader(most int64) *reader { return &reader{most: most, terms: newSplitter()} }

// read makes chunks of a file.
func (r *reader) read(ctx context.Context, j job) outcome {
	o := outcome{job: j}
	switch {
	case ctx.Err() != nil: // nobody takes it
		return o
	case j.entry.Stamp.Size > r.most:
		o.skipped = SkipLarge
		return o
	}
	data, err := r.content(j.entry)
	switch {
	case err != nil:
		o.skipped = SkipUnreadable
		return o
	case int64(len(data)) > r.most: // it has grown
		o.skipped = SkipLarge
		return o
	}
	sum := sha256.Sum256(data)
	o.hash, o.size = string(sum[:]), int64(len(data))
	if j.known != nil && j.known.hash == o.hash {
		o.same, o.skipped = true, j.known.skipped
		return o
	}
	text, skipped := decode(data)
	if o.skipped = skipped; skipped != "" {
		return o
	}
	text = withoutKeys(text)
	for _, c := range cut(j.entry.Path, text) {
		terms, length := r.terms.chunk(j.entry.Path, c.Symbol, c.Text)
		o.chunks = append(o.chunks, prepared{
			chunk: c, hash: sha256.Sum256([]byte(c.Text)),
			terms: slices.Clone(terms), length: length,
		})
	}
	return o
}

// content reads a file up to one byte beyond what may be indexed. What it returns is good until the
// next call.
func (r *reader) content(e *workspace.WalkEntry) ([]byte, error) {
	f, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if r.buffer == nil {
		r.buffer = make([]byte, 64<<10)
	}
	for n := 0; ; {
		if n == len(r.buffer) {
			r.buffer = append(r.buffer, make([]byte, min(int64(n), math.MaxInt32))...)
		}
		m, err := f.Read(r.buffer[n:])
		n += m
		if errors.Is(err, io.EOF) || int64(n) > r.most {
			return r.buffer[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
}
