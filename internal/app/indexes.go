package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

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
)

// IndexHybrid is the mode of a search by meaning and by words.
const IndexHybrid = index.Hybrid

// Mentions gives a function that reports whether a text holds a word that a query asks for.
func Mentions(query string) func(text string) bool { return index.Mentions(query) }

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

// isCurrent reports whether the directory of the index is still the one that was opened.
func (x *Index) isCurrent(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && os.SameFile(info, x.info)
}

// indexPath returns where the index of a workspace lies: in the data directory, because it can be
// made again (decision 32), and named after the path of the workspace, which is known before
// anything has run in it.
func indexPath(c config.Config, dir string) string {
	sum := sha256.Sum256([]byte(filepath.Clean(dir)))
	return filepath.Join(c.DataDir, "index", hex.EncodeToString(sum[:8]), "index.db")
}

// backlog is how many chunks an engine embeds without being asked where embedding costs money:
// about a day's work. More is left to regie index, which shows its progress.
const backlog = 2000

// indexes holds the open indexes of the workspaces that an engine's rounds have searched. Opening
// one costs more than most searches, and an open index watches its workspace, so that a search
// without changes reads no file. It implements files.Indexes. Its goroutines are those of the
// watches, and one per index that embeds new chunks after a search; Close ends them.
type indexes struct {
	config config.Config

	ended     context.Context // done when Close is called
	end       context.CancelFunc
	embedding sync.WaitGroup

	mu   sync.Mutex
	open map[string]*shared // by directory
}

// shared is an index that several calls may use.
type shared struct {
	mu    sync.Mutex  // held while it is opened or closed
	index *Index      // nil until it is open
	busy  atomic.Bool // what is new is being embedded
}

func newIndexes(c config.Config) *indexes {
	s := &indexes{config: c, open: map[string]*shared{}}
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// Asks implements files.Indexes.
func (s *indexes) Asks() bool {
	_, _, configured := s.config.Embedding()
	return configured
}

// Index implements files.Indexes. A call for the index of one workspace does not wait for that of
// another one.
func (s *indexes) Index(ctx context.Context, dir string) (x *index.Index, done func(), err error) {
	s.mu.Lock()
	o := s.open[dir]
	if o == nil {
		o = &shared{}
		s.open[dir] = o
	}
	s.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.ended.Err() != nil {
		return nil, nil, regie.Errorf(regie.CodeConflict, "the engine stops")
	}
	if o.index != nil && !o.index.isCurrent(dir) { // it was moved away, and another one took its place
		o.closeIndex()
	}
	if o.index == nil {
		if o.index, err = OpenIndex(ctx, s.config, dir); err != nil {
			return nil, nil, err
		}
		o.index.Watch(context.WithoutCancel(ctx)) // until it is closed
	}
	opened := o.index
	return opened.Index, func() { s.embedNewTexts(opened, &o.busy) }, nil
}

// closeIndex closes an index while its lock is held: what it holds is on the disk, or can be made
// again.
func (o *shared) closeIndex() {
	if o.index != nil {
		_ = o.index.Close()
		o.index = nil
	}
}

// embedNewTexts has what is new in an index embedded, so that the next search finds it by its
// meaning too.
func (s *indexes) embedNewTexts(x *Index, busy *atomic.Bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Err() != nil || !s.Asks() || busy.Swap(true) {
		return
	}
	s.embedding.Go(func() {
		x.embedNew(s.ended)
		busy.Store(false)
	})
}

// embedNew embeds what is new in the index, unless it is much and costs something. It ends with the
// context. What is in its way the next search says.
func (x *Index) embedNew(ctx context.Context) {
	if missing, err := x.Missing(ctx); err == nil && missing > 0 && (missing <= backlog || x.Free()) {
		_, _ = x.Embed(ctx, nil)
	}
}

// Close ends what is being embedded, and closes all indexes.
func (s *indexes) Close() {
	s.end()
	s.mu.Lock()
	open := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	s.embedding.Wait()
	for _, o := range open {
		o.mu.Lock()
		o.closeIndex()
		o.mu.Unlock()
	}
}
