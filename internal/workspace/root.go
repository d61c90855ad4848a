package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/regie-run/regie"
)

// Root is a confined directory (spec 8.2). Its methods may be called from any goroutine.
type Root struct {
	dir  string
	root *os.Root
	// escapes is what os.Root says of a path that leaves it; package os does not export it.
	escapes error
	own     []string // paths below it that are Regie's own
}

// Open confines a directory, given by its absolute path. It returns CodePathInvalid,
// CodeFileNotFound, CodeNotADirectory or CodeNoPermission. The caller closes it.
func Open(dir string) (*Root, error) {
	if !filepath.IsAbs(dir) || strings.IndexByte(dir, 0) >= 0 {
		return nil, regie.Errorf(regie.CodePathInvalid, "the workspace %q is not an absolute path", dir)
	}
	r := &Root{dir: path.Clean(filepath.ToSlash(dir))}
	r.own = ownBelow(r.dir)
	var err error
	// The dot makes the system insist on a directory: a FIFO would be waited on.
	if r.root, err = os.OpenRoot(strings.TrimSuffix(r.dir, "/") + "/."); err != nil {
		if errors.Is(err, syscall.ENOTDIR) {
			return nil, regie.Errorf(regie.CodeNotADirectory, "%s is not a directory", dir)
		}
		return nil, r.explain(err, dir)
	}
	_, err = r.root.Lstat("..")
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		r.escapes = failed.Err
	}
	return r, nil
}

// Close lets go of the directory.
func (r *Root) Close() error { return r.root.Close() }

// Dir is the directory's absolute path, for what takes no open directory, such as a watch: nothing
// is read or written by it.
func (r *Root) Dir() string { return filepath.FromSlash(r.dir) }

// systemErrors are the errors of the operating system that have a code and a sentence (spec 12.5).
// The first one that fits holds.
var systemErrors = []struct {
	is   error
	code regie.Code
	text string
}{
	{fs.ErrNotExist, regie.CodeFileNotFound, "%s does not exist"},
	{syscall.EISDIR, regie.CodeNotAFile, "%s is a directory"},
	{fs.ErrExist, regie.CodeFileExists, "%s exists already"},
	{syscall.ENOTDIR, regie.CodeNotADirectory, "a part of %s is not a directory"},
	{syscall.ENAMETOOLONG, regie.CodePathInvalid, "this file system cannot hold the name %s"},
	{syscall.EILSEQ, regie.CodePathInvalid, "this file system cannot hold the name %s"},
	{syscall.ELOOP, regie.CodePathInvalid, "%s goes through too many links"},
	{syscall.ENOSPC, regie.CodeDiskFull, "the disk is full: %s was not changed"},
	{syscall.EDQUOT, regie.CodeDiskFull, "the disk is full: %s was not changed"},
	{syscall.EFBIG, regie.CodeFileTooLarge, "%s would be larger than this system allows"},
	{syscall.EROFS, regie.CodeReadOnly, "%s lies on a file system that cannot be written"},
	{syscall.ENXIO, regie.CodeSpecialFile, "%s is a socket or a device, not a file"},
	{fs.ErrPermission, regie.CodeNoPermission, "the system gives no permission for %s"},
}

// explain gives an error of the operating system its code and a sentence.
func (r *Root) explain(err error, name string) error {
	if _, coded := errors.AsType[*regie.Error](err); err == nil || coded {
		return err
	}
	for _, e := range systemErrors {
		if errors.Is(err, e.is) {
			return regie.Errorf(e.code, e.text, name)
		}
	}
	if r.escapes != nil && errors.Is(err, r.escapes) {
		return regie.Errorf(regie.CodePathOutside, "%s leads out of the workspace", name)
	}
	return regie.Errorf(regie.CodeToolError, "%s: %v", name, bare(err))
}

// bare drops the operation and the absolute path that package os puts around a system's error.
func bare(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	if failed, ok := errors.AsType[*os.LinkError](err); ok {
		return failed.Err
	}
	return err
}
