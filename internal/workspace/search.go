package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/regie-run/regie"
)

// Bounds of one search (spec 12.5).
const (
	filesInBatch = 32
	batchesAhead = 64 // each holds a directory open
	maxWorkers   = 8
)

// Query is a search.
type Query struct {
	Text          string
	Regex         bool // Text is an expression of RE2
	CaseSensitive bool
	// Path is a directory, which is searched with all below it, or one file.
	Path string
	// Wanted limits the search to files by their path below Path; nil wants all. Holds says whether
	// such files may lie below a directory.
	Wanted, Holds func(relative string) bool
	// Most is how many matches are given.
	Most int
	// Clip is how many bytes of a line are given at most.
	Clip int
}

// Match is a line that holds what was looked for.
type Match struct {
	Path string
	Line int
	// Text is the line without its end, or for a long line the part around the match: then Before
	// and After count the missing bytes at its ends.
	Text          string
	Before, After int
}

// Searched counts what a search read and skipped.
type Searched struct {
	Files, Bytes int64 // that were looked through
	Binary       int64 // files that are no text
	Clipped      int64 // files searched only in their first 16 MiB
	Passed
	More    bool // there are more matches than were wanted
	Stopped bool // its context ended before it did
}

// Search looks through the text files of a directory, or one file, and calls found with each line
// that matches. It goes in the order of the tree: the files of a directory by name, then its
// directories. It follows no links, and leaves out protected files (spec 8.2), ignored files and
// binary files. It does search a path that is itself ignored, because the caller named it. found
// returns false to end the search. When the context ends, Search sets Stopped and keeps the matches
// so far.
//
// It returns the codes of OpenFile, CodeNotADirectory and CodeBadPattern. It starts one goroutine
// that walks and some that search; they end before it returns.
func (r *Root) Search(ctx context.Context, q Query, found func(Match) bool) (Searched, error) {
	wanted, err := compilePattern(q.Text, q.Regex, q.CaseSensitive)
	if err != nil {
		return Searched{}, err
	}
	if q.Wanted == nil {
		q.Wanted = func(string) bool { return true }
	}
	if q.Holds == nil {
		q.Holds = func(string) bool { return true }
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &search{
		ctx: inner, query: q, most: q.Most + 1, order: make(chan *batch, batchesAhead),
		idle: make(chan *scanner, maxWorkers),
	}
	start, err := s.beginSearch(r)
	if err != nil {
		return Searched{}, err
	}
	for range min(runtime.GOMAXPROCS(0), maxWorkers) {
		s.idle <- &scanner{search: s, pattern: wanted}
	}
	s.group.Go(func() {
		defer close(s.order)
		s.runGuarded(start)
	})
	s.collectMatches(cancel, found)
	s.group.Wait()
	if what := s.broken.Load(); what != nil {
		return Searched{}, regie.Errorf(regie.CodeToolError, "the search failed: %s", *what)
	}
	s.passed.Unreadable += s.seen.Unreadable
	s.seen.Passed, s.seen.Stopped = s.passed, ctx.Err() != nil
	return s.seen, nil
}

// search is one search on its way.
type search struct {
	ctx    context.Context // it lives as long as the search
	query  Query
	most   int                    // matches that are looked for
	idle   chan *scanner          // that have no batch
	group  sync.WaitGroup         // of the walk and the batches
	order  chan *batch            // to the collector, in the order of the tree
	seen   Searched               // the collector's
	passed Passed                 // the walk's, until it ends
	broken atomic.Pointer[string] // what a goroutine panicked with
}

// runGuarded does a part of the work on a goroutine of the search: a panic there ends the search,
// not the program.
func (s *search) runGuarded(do func()) {
	defer func() {
		if r := recover(); r != nil {
			what := fmt.Sprint(r)
			s.broken.CompareAndSwap(nil, &what)
		}
	}()
	do()
}

// batch are some files of one directory.
type batch struct {
	in    *opened
	names []string
	found []Match
	seen  Searched      // of these files
	done  chan struct{} // closed when found and seen are all there is
}

// beginSearch opens where the search begins, and returns what walks it.
func (s *search) beginSearch(r *Root) (walk func(), err error) {
	top, err := r.beginWalk(r.openDir(s.query.Path, false))
	if regie.CodeOf(err) == regie.CodeNotADirectory {
		return s.beginFile(r)
	}
	return func() { s.walkTree(top) }, err
}

// beginFile prepares a search in one file, under the same rules as in a directory.
func (s *search) beginFile(r *Root) (walk func(), err error) {
	place, err := r.Place(s.query.Path)
	if err != nil {
		return nil, err
	}
	// what it leads to a moment later is for others to say: here this very file is opened, without
	// links
	if place.Secret {
		return nil, mayRead(Secret, s.query.Path)
	}
	f, _, err := r.OpenFile(s.query.Path) // for its codes
	if err != nil {
		return nil, err
	}
	_ = f.Close() // nothing was read
	top, err := r.beginWalk(r.openDir(path.Dir(place.Path), true))
	return func() { s.sendFiles(top.in, []string{path.Base(place.Path)}); top.in.releaseDir() }, err
}

// sendFiles gives files of a directory to a scanner and to the collector. It reports whether the
// search goes on.
func (s *search) sendFiles(in *opened, names []string) bool {
	b := &batch{in: in, names: names, done: make(chan struct{})}
	in.uses.Add(1)
	select {
	case s.order <- b:
	case <-s.ctx.Done():
		in.releaseDir()
		return false
	}
	w := <-s.idle
	s.group.Go(func() {
		s.runGuarded(func() { w.scanBatch(b) })
		s.idle <- w
		b.in.releaseDir()
		close(b.done)
	})
	return true
}

// walkTree sends the files of a directory and of all below it.
func (s *search) walkTree(top level) {
	w := walker{ctx: s.ctx, prepare: (*level).ownIgnores, take: s.sendLevel}
	w.wants = func(l *level, entry fs.DirEntry) bool {
		filter := s.query.Wanted
		if entry.IsDir() {
			filter = s.query.Holds
		}
		return filter(path.Join(l.relative, entry.Name())) && w.keepsEntry(l, entry)
	}
	_ = w.walkDir(top) // only the end of the search ends it, which collect knows of
	s.passed = w.passed
}

// sendLevel sends the files of a directory.
func (s *search) sendLevel(l *level, files []string) error {
	for len(files) > 0 {
		n := min(filesInBatch, len(files))
		if !s.sendFiles(l.in, files[:n:n]) {
			return errEnough
		}
		files = files[n:]
	}
	return nil
}

// collectMatches passes on the matches of the batches in order, up to the limit.
func (s *search) collectMatches(cancel func(), found func(Match) bool) {
	left, enough := s.query.Most, false
	for b := range s.order {
		<-b.done
		s.seen.Files += b.seen.Files
		s.seen.Bytes += b.seen.Bytes
		s.seen.Binary += b.seen.Binary
		s.seen.Clipped += b.seen.Clipped
		s.seen.Unreadable += b.seen.Unreadable
		for _, m := range b.found {
			switch {
			case enough:
			case left == 0:
				s.seen.More, enough = true, true
			default:
				left--
				enough = !found(m)
			}
		}
		if enough {
			cancel()
		}
	}
}

// clipLine gives a line as a match shows it, of a long one the part around the place where the
// match begins.
func (s *search) clipLine(m Match, line []byte, start int) Match {
	line = bytes.TrimSuffix(line, []byte("\r"))
	from, to := 0, len(line)
	if most := s.query.Clip; most > 0 && len(line) > most {
		from = max(0, min(start-most/4, len(line)-most))
		to = min(len(line), from+most)
		for from > 0 && from < to && isTail(line[from]) {
			from++
		}
		for to < len(line) && to > from && isTail(line[to]) {
			to--
		}
	}
	m.Text, m.Before, m.After = string(line[from:to]), from, len(line)-to
	return m
}

// isTail reports whether a byte goes on with a character, in UTF-8.
func isTail(b byte) bool { return b&0xC0 == 0x80 }
