package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// TreeEntry is what lies in a tree: a regular file, or what is none and why it is not read.
type TreeEntry struct {
	Path string // without links, relative to the root
	Size int64  // bytes, of a regular file
	// Why is the code of what is not read: CodePathOutside for a link (none is followed), CodeSpecialFile, CodePathProtected for what may hold a
	// secret, CodeNoPermission. Empty for a regular file.
	Why regie.Code
	// Data is what a file holds, where the walk was to read it.
	Data []byte
}

// TreeBounds bound a walk. Zero fields bound nothing.
type TreeBounds struct {
	Entries int // looked at
	Depth   int // directories below each other
	// File and Files have the walk read each file while it is there, of at most so many bytes, and all together. Zero reads none.
	File, Files int64
}

// Tree lists what lies below a directory, in the order of the paths' bytes, directories themselves left out. No link is followed, neither below
// the directory nor on the way to it, so that all that it names lies where it says. Where there is no such directory the list is empty. It
// returns CodeFileTooLarge where there is more than the bounds say, CodePathOutside where a link leads to the directory, and the codes of OpenDir.
func (r *Root) Tree(dir string, bounds TreeBounds) ([]TreeEntry, error) {
	d, err := r.plainDir(dir)
	switch regie.CodeOf(err) {
	case "":
	case regie.CodeFileNotFound:
		return nil, nil
	default:
		return nil, err
	}
	w := treeWalk{bounds: bounds}
	if err := w.walk(d, 1); err != nil {
		return nil, err
	}
	slices.SortFunc(w.found, func(a, b TreeEntry) int { return strings.Compare(a.Path, b.Path) })
	return w.found, nil
}

// plainDir opens a directory without following any link. The caller closes it, or has walk do so.
func (r *Root) plainDir(dir string) (*Dir, error) {
	clean, err := r.Clean(dir)
	if err != nil {
		return nil, err
	}
	d, err := r.OpenDir(".")
	if err != nil {
		return nil, err
	}
	for _, part := range elements(clean) {
		info, err := d.Lstat(part)
		var next *Dir
		switch {
		case err != nil:
			err = r.explain(err, clean)
		case info.Mode()&fs.ModeSymlink != 0:
			err = regie.Errorf(regie.CodePathOutside, "%s is a link, and is not followed here", path.Join(d.Path, part))
		case !info.IsDir():
			err = regie.Errorf(regie.CodeNotADirectory, "%s is not a directory", path.Join(d.Path, part))
		default:
			next, err = d.Enter(part)
		}
		_ = d.Close() // it was only looked at
		if err != nil {
			return nil, err
		}
		d = next
	}
	return d, nil
}

// treeWalk is a walk on its way.
type treeWalk struct {
	bounds TreeBounds
	seen   int
	bytes  int64 // read
	found  []TreeEntry
}

// walk looks through a directory and closes it.
func (w *treeWalk) walk(d *Dir, depth int) error {
	defer d.Close()
	if w.bounds.Depth > 0 && depth > w.bounds.Depth {
		return regie.Errorf(regie.CodeFileTooLarge, "%s lies deeper than %d directories", d.Path, w.bounds.Depth)
	}
	var dirs []string
	for {
		entries, err := d.Next(256)
		for _, e := range entries {
			if w.seen++; w.bounds.Entries > 0 && w.seen > w.bounds.Entries {
				return regie.Errorf(regie.CodeFileTooLarge, "%s and what lies around it are more than %d files", d.Path, w.bounds.Entries)
			}
			if e.IsDir() {
				dirs = append(dirs, e.Name())
				continue
			}
			one, err := w.look(d, e.Name())
			if err != nil {
				return err
			}
			w.found = append(w.found, one)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return d.root.explain(err, d.Path)
		}
	}
	_ = d.Done()
	for _, name := range dirs {
		next, err := d.Enter(name)
		if err != nil {
			w.found = append(w.found, TreeEntry{Path: path.Join(d.Path, name), Why: codeOr(err)})
			continue
		}
		if err := w.walk(next, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func codeOr(err error) regie.Code {
	if code := regie.CodeOf(err); code != "" {
		return code
	}
	return regie.CodeToolError
}

// look describes what is no directory, and reads it where that was asked for.
func (w *treeWalk) look(d *Dir, name string) (TreeEntry, error) {
	e := TreeEntry{Path: path.Join(d.Path, name)}
	info, err := d.Lstat(name)
	switch {
	case err != nil:
		e.Why = codeOr(d.root.explain(err, e.Path))
	case info.Mode()&fs.ModeSymlink != 0:
		e.Why = regie.CodePathOutside
	case !info.Mode().IsRegular():
		e.Why = regie.CodeSpecialFile
	case protectedName(name, true) == Secret:
		e.Why = regie.CodePathProtected
	case w.bounds.File == 0:
		e.Size = info.Size()
	default:
		if e.Data, err = readSeen(d.at, name, info, min(w.bounds.File, w.bounds.Files-w.bytes), e.Path); regie.CodeOf(err) == regie.CodeFileTooLarge {
			return e, regie.Errorf(regie.CodeFileTooLarge, "%s is too large, or all that is there: at most %d bytes in a file, and %d together", e.Path, w.bounds.File, w.bounds.Files)
		} else if err != nil {
			e.Why = codeOr(d.root.explain(err, e.Path))
		}
		e.Size = int64(len(e.Data))
		w.bytes += e.Size
	}
	return e, nil
}

// readSeen reads the very file that was looked at.
func readSeen(dir *os.Root, name string, seen fs.FileInfo, most int64, shown string) ([]byte, error) {
	f, _, err := openSeen(dir, name, seen)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, regie.Errorf(regie.CodeFileTooLarge, "%s has more than %d bytes", shown, most)
	}
	return data, nil
}

// ReadPlain reads a regular file that no link leads to, on the whole way. It returns CodeFileTooLarge for one with more than most bytes,
// CodePathOutside for a link, CodePathProtected for what may hold a secret, and the codes of OpenFile.
func (r *Root) ReadPlain(name string, most int64) ([]byte, error) {
	clean, err := r.Clean(name)
	if err != nil {
		return nil, err
	}
	var data []byte
	err = retry(clean, func() error {
		data, err = r.readPlain(clean, most)
		return err
	})
	return data, r.explain(err, clean)
}

func (r *Root) readPlain(clean string, most int64) ([]byte, error) {
	dir, base := path.Split(clean)
	d, err := r.plainDir(path.Join(".", dir))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	seen, err := d.Lstat(base)
	switch {
	case err != nil:
		return nil, err
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, regie.Errorf(regie.CodePathOutside, "%s is a link, and is not followed here", clean)
	}
	if err := errors.Join(regular(seen, clean), mayRead(protectedName(base, true), clean)); err != nil {
		return nil, err
	}
	return readSeen(d.at, base, seen, most, clean)
}

// Identity tells a directory from another one that stands at the same path later: its number on its file system, and when it was made, in
// nanoseconds. The file system's own number is left out, because a restart may give another one. Either is 0 where the system does not say.
func (r *Root) Identity() (number uint64, made int64, err error) {
	f, err := r.root.Open(".")
	if err != nil {
		return 0, 0, r.explain(err, ".")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, r.explain(err, ".")
	}
	number, _, _ = inode(info)
	return number, born(f.Fd()), nil
}
