package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/regie-run/regie"
)

// few is how many new files are synced one by one; more are synced all at once, if the system can.
const few = 32

// objects are contents by their SHA-256, each a file that only its owner may read.
type objects struct {
	dir    string
	have   map[regie.Hash]int64 // sizes
	bytes  int64
	fresh  map[regie.Hash]string // that are not surely on the disk: the files that they are in
	buffer []byte
}

// openObjects lists the stored contents.
func openObjects(dir string) (*objects, error) {
	o := &objects{
		dir: dir, have: map[regie.Hash]int64{}, fresh: map[regie.Hash]string{}, buffer: make([]byte, 256<<10),
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	shelves, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, shelf := range shelves {
		if !shelf.IsDir() {
			_ = os.Remove(filepath.Join(dir, shelf.Name())) // a death left it half written
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, shelf.Name()))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			var h regie.Hash
			info, err := file.Info()
			if err != nil || h.UnmarshalText([]byte(shelf.Name()+file.Name())) != nil || !info.Mode().IsRegular() {
				continue
			}
			o.noteSize(h, info.Size())
		}
	}
	return o, nil
}

func (o *objects) noteSize(h regie.Hash, size int64) {
	if _, there := o.have[h]; !there {
		o.have[h] = size
		o.bytes += size
	}
}

func (o *objects) pathOf(h regie.Hash) string {
	name := hex.EncodeToString(h[:])
	return filepath.Join(o.dir, name[:2], name[2:])
}

// putContent stores the content of an open file, up to most bytes, and returns its hash and size.
// It is not durable before syncPut.
func (o *objects) putContent(in *os.File, most int64) (h regie.Hash, size int64, err error) {
	temp, err := os.CreateTemp(o.dir, "new-") // 0600
	if err != nil {
		return h, 0, err
	}
	digest := sha256.New()
	size, err = io.CopyBuffer(io.MultiWriter(digest, temp), onlyReader{io.LimitReader(in, most+1)}, o.buffer)
	if err == nil && size > most {
		err = errGrows
	}
	digest.Sum(h[:0])
	if closing := temp.Close(); err == nil {
		err = closing
	}
	if _, there := o.have[h]; err != nil || there {
		return h, size, errors.Join(err, os.Remove(temp.Name()))
	}
	o.noteSize(h, size)
	o.fresh[h] = temp.Name()
	return h, size, nil
}

var errGrows = errors.New("the file has more bytes than are secured")

// onlyReader hides a reader's other methods.
type onlyReader struct{ io.Reader }

// syncPut makes the contents since the last call durable. A content gets its name only then, so a
// named file is complete even after a power cut.
func (o *objects) syncPut() error {
	if len(o.fresh) == 0 {
		return nil
	}
	if err := o.flushNames(func() []string { return slices.Collect(maps.Values(o.fresh)) }); err != nil {
		return err
	}
	shelves := map[string]bool{o.dir: true}
	for h, temp := range o.fresh {
		to := o.pathOf(h)
		shelves[filepath.Dir(to)] = true
		err := os.Rename(temp, to)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.MkdirAll(filepath.Dir(to), 0o700); err == nil {
				err = os.Rename(temp, to)
			}
		}
		if err != nil {
			return err
		}
	}
	if err := o.flushNames(func() []string { return slices.Collect(maps.Keys(shelves)) }); err != nil {
		return err
	}
	clear(o.fresh)
	return nil
}

// flushNames makes files or directories safe, one by one where only few contents are new.
func (o *objects) flushNames(names func() []string) error {
	if len(o.fresh) > few {
		dir, err := os.Open(o.dir)
		if err != nil {
			return err
		}
		err = syncAll(dir)
		_ = dir.Close() // it was only synced
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	for _, name := range names() {
		if err := syncName(name); err != nil {
			return err
		}
	}
	return nil
}

// syncName makes a file, or the names in a directory, safe. Some systems cannot do the latter, and
// need not.
func syncName(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing is written through it
	if err := f.Sync(); err != nil && runtime.GOOS != "windows" && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// dropUnsynced forgets contents that were put and not synced.
func (o *objects) dropUnsynced() {
	for h, temp := range o.fresh {
		_ = os.Remove(temp) // else the next start does
		o.bytes -= o.have[h]
		delete(o.have, h)
	}
	clear(o.fresh)
}

// getContent reads a content and verifies its hash.
func (o *objects) getContent(h regie.Hash) ([]byte, error) {
	name, fresh := o.fresh[h]
	if !fresh {
		name = o.pathOf(h)
	}
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, regie.Errorf(regie.CodeNotFound, "the former content of the file is no longer stored")
	case err != nil:
		return nil, err
	case regie.HashOf(data) != h:
		return nil, regie.Errorf(regie.CodeCorrupt, "the saved copy of the file is damaged")
	}
	return data, nil
}

// sweepUnnamed removes what keep does not name.
func (o *objects) sweepUnnamed(keep map[regie.Hash]bool) {
	for h, size := range o.have {
		if !keep[h] && os.Remove(o.pathOf(h)) == nil {
			delete(o.have, h)
			o.bytes -= size
		}
	}
}
