package snapshot

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/regie-run/regie"
)

// keepTree stores a tree, unless it is the latest one.
func (p *place) keepTree(now *tree) (regie.Hash, error) {
	data := now.encodeTree()
	name := regie.HashOf(data)
	if name == p.name {
		return name, nil
	}
	if err := p.writeSynced(filepath.Join("trees", name.String()), data); err != nil {
		return name, err
	}
	latest := filepath.Join(p.dir, "latest") // not synced: without it the next process reads all once more
	if err := os.WriteFile(latest+".new", []byte(name.String()), 0o600); err != nil {
		return name, err
	}
	if err := os.Rename(latest+".new", latest); err != nil {
		return name, err
	}
	p.latest, p.name = now, name
	p.trees++
	return name, nil
}

// writeSynced stores a small file atomically and durably.
func (p *place) writeSynced(name string, data []byte) error {
	to := filepath.Join(p.dir, name)
	temp, err := os.CreateTemp(p.dir, "new-")
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if closing := temp.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(temp.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return syncName(filepath.Dir(to))
}

// manyTracked is how many compared calls keep their tree: their results may not be stored yet.
const manyTracked = 16

// removeUnneeded deletes trees of calls with stored results, and contents that no tree names.
func (p *place) removeUnneeded() {
	done, _ := filepath.Glob(filepath.Join(p.dir, "calls", "*"+doneMark)) // ids are in the order of time
	for i := range max(0, len(done)-manyTracked) {
		_ = os.Remove(done[i]) // else it is there for a while longer
	}
	if p.trees <= manyTrees && p.objects.bytes <= p.sweepAt {
		return
	}
	names, live := p.neededTrees()
	var bytes int64
	for h := range live {
		bytes += p.objects.have[h]
	}
	if p.sweepAt = 2*bytes + spare; p.objects.bytes > p.sweepAt {
		p.objects.sweepUnnamed(live)
	}
	files, _ := os.ReadDir(filepath.Join(p.dir, "trees")) // one that cannot be read is swept another time
	p.trees = len(names)
	for _, f := range files {
		if !names[f.Name()] {
			_ = os.Remove(filepath.Join(p.dir, "trees", f.Name())) // else it is there for a while longer
		}
	}
}

// manyTrees is how many files of trees lie there before those that nothing needs are removed.
const manyTrees = 2 * manyTracked

// spare is how many bytes of contents may lie there that no tree names.
const spare = 64 << 20

// abandoned is how long a call's tree is kept without a Compare.
const abandoned = 30 * 24 * time.Hour

// neededTrees returns the trees that are needed, by their names, and the contents that they name.
func (p *place) neededTrees() (names map[string]bool, contents map[regie.Hash]bool) {
	names, contents = map[string]bool{}, map[regie.Hash]bool{}
	note := func(t *tree) {
		for i := range t.nodes {
			contents[t.nodes[i].Hash] = true
		}
	}
	if p.latest != nil {
		names[p.name.String()] = true
		note(p.latest)
	}
	calls, _ := os.ReadDir(filepath.Join(p.dir, "calls"))
	for _, call := range calls {
		path := filepath.Join(p.dir, "calls", call.Name())
		info, err := call.Info()
		if err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.Remove(path) // else it is there for a while longer
			continue
		}
		var name regie.Hash
		data, err := os.ReadFile(path)
		if err != nil || name.UnmarshalText(data) != nil || names[name.String()] {
			continue
		}
		names[name.String()] = true
		if t, err := p.readTree(name); err == nil {
			note(t)
		}
	}
	return names, contents
}

// doneMark ends the name of a compared call's file.
const doneMark = ".done"

// markDone marks a call as compared. Its tree stays for a while, because its result may not be
// stored yet.
func (p *place) markDone(call regie.ID) {
	name := filepath.Join(p.dir, "calls", call.String())
	_ = os.Rename(name, name+doneMark) // else it was noted before
}

// Forget removes all that is kept of a workspace.
func (s *Store) Forget(id regie.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.places[id]; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(s.places, id)
	}
	return os.RemoveAll(filepath.Join(s.dir, id.String()))
}

// evictOldest removes the least recently used workspaces if all together exceed the bound. Those in
// use here stay.
func (s *Store) evictOldest(opened regie.ID) {
	type other struct {
		id    regie.ID
		bytes int64
		used  time.Time
	}
	var others []other
	var total int64
	dirs, _ := os.ReadDir(s.dir) // what cannot be read is not counted
	for _, dir := range dirs {
		id, err := regie.ParseID(dir.Name())
		if err != nil {
			continue
		}
		bytes, used := usageOf(filepath.Join(s.dir, dir.Name()))
		if total += bytes; id != opened && s.places[id] == nil {
			others = append(others, other{id, bytes, used})
		}
	}
	slices.SortFunc(others, func(a, b other) int { return a.used.Compare(b.used) })
	for _, o := range others {
		if total > s.bounds.Kept && os.RemoveAll(filepath.Join(s.dir, o.id.String())) == nil {
			total -= o.bytes
		}
	}
}

// usageOf returns the stored bytes of a workspace, and the time of its last use.
func usageOf(dir string) (bytes int64, used time.Time) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone by now
		}
		if info, err := d.Info(); err == nil {
			if info.Mode().IsRegular() {
				bytes += info.Size()
			}
			if info.ModTime().After(used) {
				used = info.ModTime()
			}
		}
		return nil
	})
	return bytes, used
}
