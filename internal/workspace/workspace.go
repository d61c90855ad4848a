// Package workspace confines everything that touches files to a directory (spec 8.2): no path leaves the root, whatever a model
// writes and whatever links lie in the way, also while somebody swaps them.
//
// Every access resolves the path first, link by link, to a path without links; then it walks that path directory by directory and
// checks that each is the very directory that was looked at. What it opens is therefore inside the root and is what the name
// rules (protected, secret) were applied to. It starts no goroutine.
package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

const (
	maxPath  = 4096
	maxLinks = 40
)

// Root is a confined directory. Its methods may be called from any goroutine.
type Root struct {
	dir  string
	root *os.Root
}

// Open confines a directory. It returns CodeFileNotFound, CodeNotADirectory or CodeNoPermission. The caller closes it.
func Open(dir string) (*Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, explain(err, dir)
	}
	return &Root{dir: dir, root: root}, nil
}

// Close lets go of the directory.
func (r *Root) Close() error { return r.root.Close() }

// Clean turns a path as a model writes it into a relative, slash-separated one: "." is the root. An absolute path is accepted where
// it lies inside the root by its letters. It returns CodePathInvalid or CodePathOutside.
func (r *Root) Clean(name string) (string, error) {
	switch {
	case name == "":
		return "", regie.Errorf(regie.CodePathInvalid, "the path is empty: name a file, or . for the workspace")
	case len(name) > maxPath:
		return "", regie.Errorf(regie.CodePathInvalid, "the path has %d characters, at most %d are allowed", len(name), maxPath)
	case strings.IndexByte(name, 0) >= 0:
		return "", regie.Errorf(regie.CodePathInvalid, "the path holds a NUL character")
	case !utf8.ValidString(name):
		return "", regie.Errorf(regie.CodePathInvalid, "the path is not valid UTF-8")
	}
	if path.IsAbs(name) {
		inside, ok := strings.CutPrefix(path.Clean(name), strings.TrimSuffix(r.dir, "/")+"/")
		switch {
		case path.Clean(name) == r.dir:
			return ".", nil
		case !ok:
			return "", regie.Errorf(regie.CodePathOutside, "%s lies outside the workspace: paths are relative to it", name)
		}
		name = inside
	}
	// A name such as a/../../b is refused by its letters, before any link is looked at.
	cleaned := path.Clean(name)
	if cleaned == ".." || strings.HasPrefix(cleaned, "../") {
		return "", regie.Errorf(regie.CodePathOutside, "%s leads out of the workspace", name)
	}
	for _, part := range strings.Split(cleaned, "/") {
		if len(part) > 255 {
			return "", regie.Errorf(regie.CodePathInvalid, "a name in the path has %d bytes, at most 255 are allowed", len(part))
		}
	}
	return cleaned, nil
}

// Resolve follows the links of a clean path and returns the path without links that it means; its last element need not exist.
// A link that leads out returns CodePathOutside.
func (r *Root) Resolve(clean string) (string, error) {
	done, todo := []string{}, strings.Split(clean, "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(done) == 0 {
				return "", regie.Errorf(regie.CodePathOutside, "%s leads out of the workspace through a link", clean)
			}
			done = done[:len(done)-1]
			continue
		}
		at := path.Join(append(done, part)...)
		info, err := r.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			// What does not exist holds no links.
			return path.Join(append(append(done, part), todo...)...), leavesBelow(clean, todo)
		case err != nil:
			return "", explain(err, clean)
		case info.Mode()&fs.ModeSymlink == 0:
			done = append(done, part)
			continue
		}
		if links++; links > maxLinks {
			return "", regie.Errorf(regie.CodePathInvalid, "%s goes through more than %d links", clean, maxLinks)
		}
		target, err := r.root.Readlink(at)
		if err != nil {
			return "", explain(err, clean)
		}
		if path.IsAbs(target) {
			inside, err := r.Clean(target)
			if err != nil {
				return "", regie.Errorf(regie.CodePathOutside, "%s leads out of the workspace through a link", clean)
			}
			done, target = nil, inside
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	if len(done) == 0 {
		return ".", nil
	}
	return path.Join(done...), nil
}

// leavesBelow refuses a path that goes up again below something that does not exist.
func leavesBelow(clean string, todo []string) error {
	for _, part := range todo {
		if part == ".." {
			return regie.Errorf(regie.CodeFileNotFound, "%s goes through a directory that does not exist", clean)
		}
	}
	return nil
}

// parent opens the directory of a resolved path without following any link, and returns the last element. The caller closes it.
func (r *Root) parent(resolved string) (*os.Root, string, error) {
	dir, base := path.Split(resolved)
	at, err := r.root.OpenRoot(".")
	if err != nil {
		return nil, "", explain(err, resolved)
	}
	for _, part := range strings.Split(strings.Trim(dir, "/"), "/") {
		if part == "" {
			continue
		}
		next, err := step(at, part)
		_ = at.Close() // it was only read
		if err != nil {
			return nil, "", explain(err, resolved)
		}
		at = next
	}
	return at, base, nil
}

// errSwapped says that a directory was exchanged for something else between two looks.
var errSwapped = regie.Errorf(regie.CodePathOutside, "the path changed while it was being opened")

// step goes down one directory and makes sure that it is the one that was seen, not one behind a link put there meanwhile.
func step(at *os.Root, part string) (*os.Root, error) {
	seen, err := at.Lstat(part)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		if seen.Mode()&fs.ModeSymlink != 0 {
			return nil, errSwapped
		}
		return nil, regie.Errorf(regie.CodeNotADirectory, "%s is not a directory", part)
	}
	next, err := at.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	got, err := next.Stat(".")
	if err != nil || !os.SameFile(seen, got) {
		return nil, errors.Join(errSwapped, next.Close())
	}
	return next, nil
}

// OpenFile opens a regular file for reading, with the path that it was found at. It never blocks on a FIFO or a device. It returns
// CodeSpecialFile, CodeNotAFile, CodeFileNotFound, CodePathOutside, CodePathInvalid or CodePathProtected for a secret.
func (r *Root) OpenFile(name string) (*os.File, fs.FileInfo, error) {
	resolved, err := r.lookup(name)
	if err != nil {
		return nil, nil, err
	}
	if IsSecret(resolved) {
		return nil, nil, regie.Errorf(regie.CodePathProtected, "%s looks like a secret: reading it needs a person's approval, which this run cannot ask for", name)
	}
	return r.open(resolved, name)
}

// lookup cleans and resolves a path.
func (r *Root) lookup(name string) (string, error) {
	clean, err := r.Clean(name)
	if err != nil {
		return "", err
	}
	return r.Resolve(clean)
}

func (r *Root) open(resolved, name string) (*os.File, fs.FileInfo, error) {
	if resolved == "." {
		return nil, nil, regie.Errorf(regie.CodeNotAFile, "%s is a directory", name)
	}
	dir, base, err := r.parent(resolved)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	// Without O_NONBLOCK opening a FIFO would wait for a writer for ever.
	f, err := dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if errors.Is(err, syscall.ELOOP) {
			err = errSwapped
		}
		if errors.Is(err, syscall.ENXIO) { // a socket
			err = regie.Errorf(regie.CodeSpecialFile, "%s is a socket, not a file", name)
		}
		return nil, nil, explain(err, name)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = regie.Errorf(regie.CodeNotAFile, "%s is a directory", name)
	case !info.Mode().IsRegular():
		err = regie.Errorf(regie.CodeSpecialFile, "%s is not a regular file (%s)", name, info.Mode().Type())
	default:
		return f, info, nil
	}
	return nil, nil, errors.Join(explain(err, name), f.Close())
}

// ReadDir returns a directory's entries by name, at most limit of them, and whether there were more.
func (r *Root) ReadDir(name string, limit int) (entries []fs.DirEntry, more bool, err error) {
	resolved, err := r.lookup(name)
	if err != nil {
		return nil, false, err
	}
	at, _, err := r.parent(resolved + "/.")
	if err != nil {
		return nil, false, err
	}
	defer at.Close()
	f, err := at.Open(".")
	if err != nil {
		return nil, false, explain(err, name)
	}
	defer f.Close()
	entries, err = f.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, explain(err, name)
	}
	if len(entries) > limit {
		return entries[:limit], true, nil
	}
	return entries, false, nil
}

// Stat describes what a path means, links followed.
func (r *Root) Stat(name string) (fs.FileInfo, error) {
	resolved, err := r.lookup(name)
	if err != nil {
		return nil, err
	}
	if resolved == "." {
		info, err := r.root.Stat(".")
		return info, explain(err, name)
	}
	at, base, err := r.parent(resolved)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	info, err := at.Lstat(base)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errSwapped
	}
	return info, explain(err, name)
}

// explain gives an error of the operating system its code and a sentence.
func explain(err error, name string) error {
	var coded *regie.Error
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return regie.Errorf(regie.CodeFileNotFound, "%s does not exist", name)
	case errors.Is(err, fs.ErrExist):
		return regie.Errorf(regie.CodeFileExists, "%s exists already", name)
	case errors.Is(err, syscall.ENOTDIR):
		return regie.Errorf(regie.CodeNotADirectory, "a part of %s is not a directory", name)
	case errors.Is(err, syscall.EISDIR):
		return regie.Errorf(regie.CodeNotAFile, "%s is a directory", name)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return regie.Errorf(regie.CodePathInvalid, "a name in the path is too long for this file system")
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return regie.Errorf(regie.CodeDiskFull, "the disk is full: %s was not changed", name)
	case errors.Is(err, syscall.EROFS):
		return regie.Errorf(regie.CodeReadOnly, "%s lies on a read-only file system", name)
	case errors.Is(err, fs.ErrPermission):
		return regie.Errorf(regie.CodeNoPermission, "no permission for %s", name)
	case strings.Contains(err.Error(), "escapes from parent"):
		return regie.Errorf(regie.CodePathOutside, "%s leads out of the workspace", name)
	default:
		return regie.Errorf(regie.CodeToolError, "%s: %v", name, err)
	}
}
