package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// Bounds limit how much of a workspace is saved. An undo does not cover the rest, and the call's
// result says so.
type Bounds struct {
	File  int64         // bytes of one file
	Total int64         // bytes of all files of a workspace
	Files int           // files of a workspace
	Time  time.Duration // for reading what has changed; what is left then is read the next time
	Kept  int64         // bytes that are kept of all workspaces together; those that were used last stay
	Blobs int64         // bytes of contents from before that one command leaves in the store
	Named int           // files listed as changed by one command
}

// DefaultBounds are those of a real workspace.
func DefaultBounds() Bounds {
	return Bounds{
		File: 32 << 20, Total: 1 << 30, Files: 200_000, Time: 30 * time.Second, Kept: 4 << 30,
		Blobs: 256 << 20, Named: 10_000,
	}
}

// Store keeps snapshots. Its methods may be called from any goroutine.
type Store struct {
	dir    string
	skip   string
	bounds Bounds

	mu     sync.Mutex
	places map[regie.ID]*place
}

// New returns a Store that keeps snapshots in a directory, created with the first one. skip is an
// absolute path to leave out of workspaces: Regie's own data.
func New(dir, skip string, bounds Bounds) *Store {
	return &Store{dir: dir, skip: skip, bounds: bounds, places: map[regie.ID]*place{}}
}

// place is the stored data of one workspace.
type place struct {
	*Store
	dir string

	mu      sync.Mutex
	objects *objects
	latest  *tree
	name    regie.Hash // of the latest tree
	trees   int        // files of trees
	sweepAt int64      // bytes of contents at which they are looked through
}

// Secured describes the coverage of a snapshot.
type Secured struct {
	// Tree names the snapshot; zero without one.
	Tree  regie.Hash
	Files int   // that are covered
	Bytes int64 // of these
	Read  int   // of these, files that had to be read
}

// Take saves a workspace before a call runs in it; the snapshot is durable on return. It returns
// CodeDiskFull without room, and the codes of workspace.Open.
func (s *Store) Take(ctx context.Context, at regie.Workspace, call regie.ID) (Secured, error) {
	p, err := s.openPlace(at.ID)
	if err != nil {
		return Secured{}, explainError(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeUnneeded()
	_, said, err := p.takeSnapshot(ctx, at.Root, nil)
	// not synced: it only protects the tree from the sweep, which a power cut does not run, so an
	// unchanged workspace costs no sync
	if err == nil {
		err = os.WriteFile(filepath.Join(p.dir, "calls", call.String()), []byte(said.Tree.String()), 0o600)
	}
	return said, explainError(err)
}

// skippedPath returns the path to leave out of a workspace, relative to it.
func (s *Store) skippedPath(root string) string {
	skip, err := filepath.EvalSymlinks(s.skip)
	if err != nil {
		return ""
	}
	inside, err := filepath.Rel(root, skip)
	if err != nil || inside == "." || !filepath.IsLocal(inside) {
		return ""
	}
	return filepath.ToSlash(inside)
}

// countFile counts a file in, unless it is beyond the bounds.
func (s *Store) countFile(e *workspace.SurveyEntry, said *Secured) bool {
	if e.Size > s.bounds.File || said.Bytes+e.Size > s.bounds.Total || said.Files >= s.bounds.Files {
		return false
	}
	said.Files++
	said.Bytes += e.Size
	return true
}

// openPlace opens the stored data of a workspace.
func (s *Store) openPlace(id regie.ID) (*place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.places[id]; p != nil {
		return p, nil
	}
	p := &place{Store: s, dir: filepath.Join(s.dir, id.String())}
	for _, dir := range []string{"trees", "calls"} {
		if err := os.MkdirAll(filepath.Join(p.dir, dir), 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if p.objects, err = openObjects(filepath.Join(p.dir, "objects")); err != nil {
		return nil, err
	}
	if data, err := os.ReadFile(filepath.Join(p.dir, "latest")); err == nil && p.name.UnmarshalText(data) == nil {
		if p.latest, err = p.readTree(p.name); err != nil {
			p.latest, p.name = nil, regie.Hash{} // it is only what makes the next one fast
		}
	}
	trees, _ := os.ReadDir(filepath.Join(p.dir, "trees")) // it was just made
	p.trees, p.sweepAt = len(trees), spare
	s.places[id] = p
	s.evictOldest(id)
	return p, nil
}

// readTree reads a tree by its name.
func (p *place) readTree(name regie.Hash) (*tree, error) {
	if name == p.name && p.latest != nil {
		return p.latest, nil
	}
	data, err := os.ReadFile(filepath.Join(p.dir, "trees", name.String()))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, regie.Errorf(regie.CodeNotFound,
			"the content of the workspace before the command is no longer stored here")
	case err != nil:
		return nil, err
	case regie.HashOf(data) != name:
		return nil, errTree
	}
	return decodeTree(data)
}

// takeSnapshot saves the content of a workspace as its latest tree. before is the tree with the
// ignore files to apply; nil applies the present ones.
func (p *place) takeSnapshot(ctx context.Context, dir string, before *tree) (*tree, Secured, error) {
	var said Secured
	root, err := workspace.Open(dir)
	if err != nil {
		return nil, said, err
	}
	defer func() { _ = root.Close() }() // it was only read
	t := &taking{place: p, said: &said, until: time.Now().Add(p.bounds.Time), read: map[string]node{}}
	if t.known = map[string]*node{}; p.latest != nil {
		t.known = p.latest.byPath()
	}
	// A covered file stays covered, even if a command adds it to an ignore file.
	how := workspace.Surveying{
		File: t.takeFile, Skip: p.skippedPath(dir),
		Known: func(name string) bool { return t.known[name] != nil },
	}
	if before != nil {
		how.Rules = before.rulesOf()
	}
	found, err := root.Survey(ctx, how)
	if err == nil {
		err = p.objects.syncPut()
	}
	if err != nil {
		p.objects.dropUnsynced()
		return nil, said, err
	}
	now := &tree{
		nodes: make([]node, len(found.Entries)), rules: found.Rules, git: gitState(dir, found.Repositories),
		blind: found.Blind, aside: found.Aside, repositories: found.Repositories,
	}
	for i := range found.Entries {
		e := &found.Entries[i]
		now.nodes[i] = node{SurveyEntry: *e}
		if n, ok := t.read[e.Path]; ok {
			now.nodes[i] = n
		} else if n := t.known[e.Path]; n != nil && e.Mode.IsRegular() && n.Stamp == e.Stamp {
			now.nodes[i].Hash, now.nodes[i].Read = n.Hash, n.Read
		}
	}
	if p.latest != nil && len(t.read) == 0 && now.equalTo(p.latest) {
		said.Tree = p.name
		return p.latest, said, nil
	}
	said.Tree, err = p.keepTree(now)
	return now, said, err
}

// rulesOf returns the ignore files that counted in the directories that there were.
func (t *tree) rulesOf() func(dir string) (workspace.Rules, bool) {
	dirs := map[string]bool{".": true}
	for i := range t.nodes {
		if t.nodes[i].Mode.IsDir() {
			dirs[t.nodes[i].Path] = true
		}
	}
	return func(dir string) (workspace.Rules, bool) { return t.rules[dir], dirs[dir] }
}

// maxRefs bounds how many references of a repository are looked at.
const maxRefs = 20_000

// gitState changes with each commit, checkout and reset in one of the repositories of a directory,
// and with branches, tags and stashes. If .git is a file, the repository is outside, where a
// confined command cannot write.
func gitState(dir string, repositories []string) (out regie.Hash) {
	digest, seen := sha256.New(), 0
	look := func(name string) {
		if info, err := os.Lstat(name); err == nil {
			fmt.Fprintln(digest, name, info.Size(), info.ModTime().UnixNano())
		}
	}
	for _, name := range repositories {
		git := filepath.Join(dir, filepath.FromSlash(name))
		for _, name := range []string{"HEAD", "logs/HEAD", "logs/refs/stash", "packed-refs"} {
			look(filepath.Join(git, name))
		}
		_ = filepath.WalkDir(filepath.Join(git, "refs"), func(name string, _ fs.DirEntry, err error) error {
			if seen++; err != nil || seen > maxRefs {
				return filepath.SkipAll
			}
			look(name)
			return nil
		})
	}
	digest.Sum(out[:0])
	return out
}

// taking is one snapshot on its way.
type taking struct {
	*place
	said  *Secured
	known map[string]*node
	until time.Time
	read  map[string]node // files that were read for it, or could not be
}

// takeFile secures one file.
func (t *taking) takeFile(e *workspace.SurveyEntry, open func() (*os.File, error)) error {
	if !t.countFile(e, t.said) {
		t.read[e.Path] = node{SurveyEntry: *e}
		return nil
	}
	if n := t.known[e.Path]; n != nil && n.Stamp == e.Stamp && !n.Hash.IsZero() && e.Settled(n.Read) {
		if _, there := t.objects.have[n.Hash]; there {
			return nil
		}
	}
	out := node{SurveyEntry: *e, Read: time.Now().UnixNano()}
	f, err := (*os.File)(nil), errLate
	if time.Now().Before(t.until) {
		f, err = open()
	}
	if err == nil {
		out.Hash, _, err = t.objects.putContent(f, t.bounds.File)
		_ = f.Close() // it was only read
	}
	switch {
	case err == nil:
		t.said.Read++
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return err
	default: // there was no time for it, it cannot be read, or it is gone by now
		out.Hash = regie.Hash{}
		t.said.Files--
		t.said.Bytes -= e.Size
	}
	t.read[e.Path] = out
	return nil
}

var errLate = errors.New("there was no time to read it")

// explainError gives an error of the operating system a code and a sentence.
func explainError(err error) error {
	_, coded := errors.AsType[*regie.Error](err)
	switch {
	case err == nil || coded, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return regie.Errorf(regie.CodeDiskFull,
			"the disk is full: the files that the command may change could not be backed up, so it was not run")
	default:
		return regie.Errorf(regie.CodeToolError,
			"the files that the command may change could not be backed up, so it was not run: %v", err)
	}
}
