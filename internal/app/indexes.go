package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/workspace"
)

// What a command sees of an index (spec 8.3).
type (
	// IndexProgress is how far an update has come.
	IndexProgress = index.Progress
	// IndexSummary is what an update found and did.
	IndexSummary = index.Summary
	// IndexEmbedded is what embedding did.
	IndexEmbedded = index.Embedded
	// IndexMode is how it was looked for.
	IndexMode = index.Mode
)

// IndexHybrid is the mode of a search by meaning and by words.
const IndexHybrid = index.Hybrid

// Marks gives a function that finds the words of a text that a query asks for, and which words of
// the query they are.
func Marks(query string) func(text string) (places [][2]int, words []int) {
	return index.NewMarker(query).Marks
}

// Index is the index of one workspace, opened. Several processes may have it open at once.
type Index struct {
	*index.Index
	root *workspace.Root
	info fs.FileInfo // of the directory that was opened
}

// OpenIndex opens the index of the workspace in a directory, and makes it, empty, where there is
// none. It returns the codes of workspace.Open and of index.Open. The caller closes it.
func OpenIndex(ctx context.Context, c config.Config, dir string) (*Index, error) {
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, dirError(err, c.DataDir)
	}
	workspace.Keep(ownPaths(&c)...)
	root, err := workspace.Open(dir)
	if err != nil {
		return nil, err
	}
	out := &Index{root: root}
	settings := index.Config{Path: indexPath(c, dir)}
	if settings.Embedder, err = newEmbedder(&c); err != nil { // a search goes on without it, and says why
		settings.NoEmbedder = regie.Say("the embedder cannot be used: %s", err.Error())
	} else if settings.Embedder != nil {
		settings.Money = embedMoney(&c, settings.Embedder)
	}
	if out.info, err = os.Stat(dir); err == nil {
		out.Index, err = index.Open(ctx, root, settings)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return out, nil
}

// Close lets go of the index, which stays on the disk.
func (x *Index) Close() error { return errors.Join(x.Index.Close(), x.root.Close()) }

// stands reports whether the directory of the index is still the one that was opened.
func (x *Index) stands(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && os.SameFile(info, x.info)
}

// indexPath is where the index of a workspace lies: in the data directory, because it can be made
// again (decision 32), and named after the path of the workspace, which is known before anything
// has run in it.
func indexPath(c config.Config, dir string) string {
	sum := sha256.Sum256([]byte(filepath.Clean(dir)))
	return filepath.Join(c.DataDir, "index", hex.EncodeToString(sum[:8]), "index.db")
}

// maxIndexes is how many indexes an engine keeps open while nobody searches: each watches all
// directories of its workspace, of which a system lets a user watch so many.
const maxIndexes = 8

// backlog is how many chunks an engine embeds by itself where that costs something: so many come of
// the work of a day. More is for regie index, which shows what it does.
const backlog = 2000

// indexes are those of the workspaces that rounds of an engine have searched last: opening one
// costs more than most searches, and one that is open watches its workspace, so that a search in
// which nothing has changed looks at no file. It implements files.Indexes. Its goroutines are those
// of the watches, and one for each index in which something new is embedded after a search, which
// Close ends.
type indexes struct {
	config config.Config

	ended     context.Context // done when Close is called
	end       context.CancelFunc
	embedding sync.WaitGroup

	mu   sync.Mutex
	open []*shared // the one that was used last comes last
}

// shared is an index that several calls may use. Index does not change once it is open; the rest is
// guarded by indexes.mu.
type shared struct {
	*Index
	dir     string
	opening chan struct{} // holds one while it is opened
	uses    int
	left    bool // nobody else gets it: the last one closes it
	busy    bool // what is new is being embedded
}

func newIndexes(c config.Config) *indexes {
	s := &indexes{config: c}
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// Asks implements files.Indexes.
func (s *indexes) Asks() bool {
	_, _, configured := s.config.Embedding()
	return configured
}

// Index implements files.Indexes. Who asks for the index of one workspace does not wait for that of
// another one.
func (s *indexes) Index(ctx context.Context, dir string) (x *index.Index, done func(), err error) {
	for {
		o, err := s.take(dir)
		if err != nil {
			return nil, nil, err
		}
		fresh, err := o.openOnce(ctx, s.config)
		if err == nil && (fresh || o.stands(dir)) {
			return o.Index.Index, func() {
				s.embed(o)
				s.release(o)
			}, nil
		}
		s.leave(o) // it cannot be opened, or was moved away, and another one took its place
		s.release(o)
		if err != nil {
			return nil, nil, err
		}
	}
}

// take finds the index of a directory for one more use.
func (s *indexes) take(dir string) (*shared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Err() != nil {
		return nil, regie.Errorf(regie.CodeConflict, "the engine ends")
	}
	o := &shared{dir: dir, opening: make(chan struct{}, 1)}
	if at := slices.IndexFunc(s.open, func(o *shared) bool { return o.dir == dir }); at >= 0 {
		o = s.open[at]
		s.open = slices.Delete(s.open, at, at+1)
	}
	o.uses++
	if s.open = append(s.open, o); len(s.open) > maxIndexes {
		s.drop(s.open[0])
	}
	return o, nil
}

// openOnce opens an index for all who wait for it, and reports whether it did.
func (o *shared) openOnce(ctx context.Context, c config.Config) (fresh bool, err error) {
	select {
	case o.opening <- struct{}{}:
		defer func() { <-o.opening }()
	case <-ctx.Done(): // somebody else opens it
		return false, context.Cause(ctx)
	}
	if o.Index != nil {
		return false, nil
	}
	if o.Index, err = OpenIndex(ctx, c, o.dir); err == nil {
		o.Watch(context.WithoutCancel(ctx)) // until it is closed
	}
	return true, err
}

// embed has what is new in an index embedded, so that the next search finds it by its meaning too.
func (s *indexes) embed(o *shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Err() != nil || o.busy || !s.Asks() {
		return
	}
	o.busy = true
	o.uses++
	s.embedding.Go(func() {
		o.embedNew(s.ended)
		s.mu.Lock()
		o.busy = false
		s.mu.Unlock()
		s.release(o)
	})
}

// embedNew embeds what is new in the index, unless it is much and costs something. It ends with the
// context. What is in its way the next search says.
func (x *Index) embedNew(ctx context.Context) {
	if missing, err := x.Missing(ctx); err == nil && missing > 0 && (missing <= backlog || x.Free()) {
		_, _ = x.Embed(ctx, nil)
	}
}

// leave has an index closed once nobody uses it.
func (s *indexes) leave(o *shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(o)
}

// drop is leave while the lock is held.
func (s *indexes) drop(o *shared) {
	s.open = slices.DeleteFunc(s.open, func(other *shared) bool { return other == o })
	o.left = true
	o.closeUnused()
}

func (s *indexes) release(o *shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.uses--
	o.closeUnused()
}

// closeUnused closes an index that was left, and that nobody uses.
func (o *shared) closeUnused() {
	if o.left && o.uses == 0 && o.Index != nil {
		_ = o.Close() // what it holds is on the disk, or can be made again
		o.Index = nil
	}
}

// Close closes what nobody uses now, and the rest once that is so.
func (s *indexes) Close() {
	s.end()
	s.mu.Lock()
	for _, o := range slices.Clone(s.open) {
		s.drop(o)
	}
	s.mu.Unlock()
	s.embedding.Wait()
}
