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
	own     ownPaths
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
		return nil, r.explainError(err, dir)
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

// explainError gives an error of the operating system its code and a sentence (spec 12.5).
func (r *Root) explainError(err error, name string) error {
	_, coded := errors.AsType[*regie.Error](err)
	switch {
	case err == nil || coded:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return regie.Errorf(regie.CodeFileNotFound, "%s does not exist", name)
	case errors.Is(err, syscall.EISDIR):
		return regie.Errorf(regie.CodeNotAFile, "%s is a directory", name)
	case errors.Is(err, fs.ErrExist):
		return regie.Errorf(regie.CodeFileExists, "%s exists already", name)
	case errors.Is(err, syscall.ENOTDIR):
		return regie.Errorf(regie.CodeNotADirectory, "a part of %s is not a directory", name)
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EILSEQ):
		return regie.Errorf(regie.CodePathInvalid, "this file system cannot hold the name %s", name)
	case errors.Is(err, syscall.ELOOP):
		return regie.Errorf(regie.CodePathInvalid, "%s goes through too many links", name)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return regie.Errorf(regie.CodeDiskFull, "the disk is full: %s was not changed", name)
	case errors.Is(err, syscall.EFBIG):
		return regie.Errorf(regie.CodeFileTooLarge, "%s would be larger than this system allows", name)
	case errors.Is(err, syscall.EROFS):
		return regie.Errorf(regie.CodeReadOnly, "%s is on a file system that cannot be written", name)
	case errors.Is(err, syscall.ENXIO):
		return regie.Errorf(regie.CodeSpecialFile, "%s is a socket or a device, not a file", name)
	case errors.Is(err, fs.ErrPermission):
		return regie.Errorf(regie.CodeNoPermission, "the system gives no permission for %s", name)
	case r.escapes != nil && errors.Is(err, r.escapes):
		return regie.Errorf(regie.CodePathOutside, "%s leads out of the workspace", name)
	default:
		return regie.Errorf(regie.CodeToolError, "%s: %v", name, bareError(err))
	}
}

// bareError drops the operation and the absolute path that package os puts around a system's error.
func bareError(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	if failed, ok := errors.AsType[*os.LinkError](err); ok {
		return failed.Err
	}
	return err
}
