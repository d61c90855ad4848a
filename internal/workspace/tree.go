package workspace

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/regie-run/regie"
)

// TreeEntry is an entry of a tree: a regular file, or another entry and why it is not read.
type TreeEntry struct {
	Path string // without links, relative to the root
	Size int64  // bytes, of a regular file
	// Why is the reason for not reading an entry: CodePathOutside for a link, CodeSpecialFile,
	// CodePathProtected for a possible secret, CodeNoPermission. Empty for a regular file.
	Why regie.Code
	// Data is the file's content, if the walk was to read it.
	Data []byte
}

// TreeBounds bound a Tree. Where a field is zero the bounds of every walk hold.
type TreeBounds struct {
	Entries int // looked at
	Depth   int // directories below each other
	// File and Files have the walk read each file while it is there, of at most so many bytes, and
	// all together. Zero reads none.
	File, Files int64
}

// Tree lists what lies below a directory, in the order of the paths' bytes, directories themselves
// left out. No link is followed, neither below the directory nor on the way to it, so that all that
// it names lies where it says. Where there is no such directory the list is empty. It returns
// CodeFileTooLarge where there is more than the bounds say, CodePathOutside where a link leads to
// the directory, and the codes of OpenFile, and CodeNotADirectory.
func (r *Root) Tree(dir string, bounds TreeBounds) ([]TreeEntry, error) {
	top, err := r.openDir(dir, true)
	if regie.CodeOf(err) == regie.CodeFileNotFound {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	t := treeWalk{root: r, bounds: bounds}
	w := walker{
		ctx: context.Background(), entries: bounds.Entries, depth: bounds.Depth,
		wants: t.wantsEntry, take: t.takeFiles, omit: t.noteOmitted,
	}
	if err := w.walkDir(top); err != nil {
		return nil, err
	}
	slices.SortFunc(t.found, func(a, b TreeEntry) int { return strings.Compare(a.Path, b.Path) })
	return t.found, nil
}

// treeWalk is a Tree on its way.
type treeWalk struct {
	root   *Root
	bounds TreeBounds
	bytes  int64 // read
	found  []TreeEntry
}

// wantsEntry accepts every entry except directories of secrets, which it only records.
func (t *treeWalk) wantsEntry(l *level, entry fs.DirEntry) bool {
	secret := entry.IsDir() && t.root.own.protectionOf(l.entryPath(entry.Name()), entry.Name()) == Secret
	if secret {
		t.found = append(t.found, TreeEntry{Path: l.entryPath(entry.Name()), Why: regie.CodePathProtected})
	}
	return !secret
}

// takeFiles describes the entries other than directories, and reads files if requested.
func (t *treeWalk) takeFiles(l *level, names []string) error {
	for _, name := range names {
		one, err := t.lookUp(l, name)
		if err != nil {
			return err
		}
		t.found = append(t.found, one)
	}
	return nil
}

func (t *treeWalk) noteOmitted(name string, why omission, err error) error {
	switch why {
	case omitMany:
		return regie.Errorf(regie.CodeFileTooLarge, "%s and the files around it are more than %d files", name,
			cmp.Or(t.bounds.Entries, maxInDirectory))
	case omitDeep:
		return regie.Errorf(regie.CodeFileTooLarge, "%s is deeper than %d directories", name,
			cmp.Or(t.bounds.Depth, maxWalkDepth))
	default:
		t.found = append(t.found, TreeEntry{Path: name, Why: t.omissionCode(err, name)})
	}
	return nil
}

// omissionCode returns the code of an entry that cannot be opened. An entry that changed its kind
// is being replaced.
func (t *treeWalk) omissionCode(err error, name string) regie.Code {
	if errors.Is(err, errSwapped) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
		return regie.CodeFileChanged
	}
	return cmp.Or(regie.CodeOf(t.root.explainError(err, name)), regie.CodeToolError)
}

func (t *treeWalk) lookUp(l *level, name string) (TreeEntry, error) {
	e := TreeEntry{Path: l.entryPath(name)}
	seen, err := l.in.lookUp(name)
	switch {
	case err != nil:
		e.Why = t.omissionCode(err, e.Path)
	case seen.Mode.Type() == fs.ModeSymlink:
		e.Why = regie.CodePathOutside
	case !seen.Mode.IsRegular():
		e.Why = regie.CodeSpecialFile
	case t.root.own.protectionOf(e.Path, name) == Secret:
		e.Why = regie.CodePathProtected
	case t.bounds.File == 0:
		e.Size = seen.Size
	default:
		e.Data, err = t.root.ReadPlain(e.Path, min(t.bounds.File, t.bounds.Files-t.bytes))
		if regie.CodeOf(err) == regie.CodeFileTooLarge {
			return e, regie.Errorf(regie.CodeFileTooLarge,
				"%s is too large, or everything together is: at most %d bytes in a file, and %d in total", e.Path,
				t.bounds.File, t.bounds.Files)
		} else if err != nil {
			e.Why = t.omissionCode(err, e.Path)
		}
		e.Size = int64(len(e.Data))
		t.bytes += e.Size
	}
	return e, nil
}

// readMost reads a file that is not too large, and closes it.
func readMost(f *os.File, most int64, shown string) ([]byte, error) {
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

// ReadPlain reads a regular file that no link leads to, on the whole way. It returns
// CodeFileTooLarge for one with more than most bytes, CodePathOutside for a link, CodePathProtected
// for what may hold a secret, and the codes of OpenFile.
func (r *Root) ReadPlain(name string, most int64) (data []byte, err error) {
	err = r.withTarget(name, func(t target, clean string) error {
		if t.path != clean {
			return throughLink(clean)
		}
		if err := mayRead(t.found, clean); err != nil {
			return err
		}
		f, _, err := r.openResolved(t.path, clean)
		if err == nil {
			data, err = readMost(f, most, clean)
		}
		return err
	})
	return data, err
}

// Identity tells a directory from a later one at the same path: its inode number, and its creation
// time in nanoseconds. It leaves out the device number, because a restart may change it. Either is
// 0 where the system does not report it.
func (r *Root) Identity() (number uint64, made int64, err error) {
	f, err := r.root.Open(".")
	if err != nil {
		return 0, 0, r.explainError(err, ".")
	}
	defer f.Close()
	e, err := handle{f}.lookUp(".")
	return e.Ino, e.Born, r.explainError(err, ".")
}
