package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/regie-run/regie"
)

const (
	maxLinks = 40
	maxTries = 5 // to open a path that is exchanged all the while
)

// errSwapped says that a name meant something else at a second look.
var errSwapped = errors.New("the path was exchanged while it was being opened")

// target is a resolved path.
type target struct {
	path  string // without links; its last elements need not exist
	found Protection
	// internal says that one of the names on the way is Internal. An approval does not lift that.
	internal bool
}

// noteName takes in a name that the path goes through.
func (t *target) noteName(name string, last bool) {
	found := protectedName(name, last)
	t.found, t.internal = max(t.found, found), t.internal || found == Internal
}

// keepOwn takes in that a place on the way is Regie's own: neither read without a person's word,
// nor ever written.
func (t *target) keepOwn(own ownPaths, at string) {
	if own.contain(at) {
		t.found, t.internal = Secret, true
	}
	t.found = max(t.found, protectedPlace(at))
}

// retryResolved calls do with the resolved target of a clean path, and retries while the path
// changes.
func (r *Root) retryResolved(clean string, follow bool, do func(t target) error) error {
	for range maxTries {
		t, err := r.resolvePath(clean, follow)
		if err == nil {
			err = do(t)
		}
		if !errors.Is(err, errSwapped) {
			return r.explainError(err, clean)
		}
	}
	return exchangedError(clean)
}

func exchangedError(name string) error {
	return regie.Errorf(regie.CodeFileChanged, "%s was replaced while it was being opened: try again", name)
}

// resolvePath follows the links of a clean path, the last element's only if follow says so. It
// notes the protection of each name that it goes through, because a link's target is as secret as
// the link. It returns CodePathOutside for a link that leads out.
func (r *Root) resolvePath(clean string, follow bool) (target, error) {
	t := target{}
	var done []string
	todo := splitPath(clean)
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		if part == ".." { // of a link's target
			if len(done) == 0 {
				return t, regie.Errorf(regie.CodePathOutside, "%s leads out of the workspace through a link", clean)
			}
			done = done[:len(done)-1]
			continue
		}
		if t.noteName(part, len(todo) == 0); inRepository(r.root, done, part) {
			t.internal, t.found = true, max(t.found, Internal)
		}
		at := path.Join(append(done, part)...)
		t.keepOwn(r.own, at)
		info, err := r.root.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return missingTarget(r.own, t, clean, append(done, part), todo)
		}
		if err != nil {
			return t, r.explainError(err, clean)
		}
		if info.Mode()&fs.ModeSymlink == 0 || len(todo) == 0 && !follow {
			done = append(done, part)
			continue
		}
		if links++; links > maxLinks {
			return t, regie.Errorf(regie.CodePathInvalid, "%s goes through more than %d links", clean, maxLinks)
		}
		aim, err := r.readLink(at, clean)
		if err != nil {
			return t, err
		}
		if path.IsAbs(aim) {
			if aim, err = r.Clean(aim); err != nil {
				return t, regie.Errorf(regie.CodePathOutside, "%s leads out of the workspace through a link", clean)
			}
			done = nil
		}
		todo = append(splitPath(aim), todo...)
	}
	t.path = path.Join(append([]string{"."}, done...)...)
	return t, nil
}

// splitPath splits a path into its names. A dot or a slash at the end must not make the last name
// look like one on the way.
func splitPath(name string) []string {
	var out []string
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." {
			out = append(out, part)
		}
	}
	return out
}

// readLink reads a link.
func (r *Root) readLink(at, clean string) (string, error) {
	aim, err := r.root.Readlink(at)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EINVAL): // it was a link a moment ago
		return "", errSwapped
	case err != nil:
		return "", r.explainError(err, clean)
	case len(aim) > maxPath:
		return "", regie.Errorf(regie.CodePathInvalid, "%s goes through a link that is too long", clean)
	}
	return aim, nil
}

// missingTarget resolves the rest of a path below done, which does not exist: todo holds no links.
func missingTarget(own ownPaths, t target, clean string, done, todo []string) (target, error) {
	for i, part := range todo {
		if part == ".." {
			return t, regie.Errorf(regie.CodeFileNotFound, "%s goes through a directory that does not exist", clean)
		}
		t.noteName(part, i == len(todo)-1)
	}
	t.path = path.Join(append(done, todo...)...)
	t.keepOwn(own, t.path)
	return t, nil
}

// openParent opens the directory of a resolved path without following any link, and returns the
// last element; of the root itself that is ".". The caller closes it.
func openParent(root *os.Root, resolved string) (*os.Root, string, error) {
	dir, base := path.Split(resolved)
	at, err := root.OpenRoot(".")
	if err != nil {
		return nil, "", err
	}
	for part := range strings.SplitSeq(dir, "/") {
		if part == "" {
			continue
		}
		next, err := stepDown(at, part)
		_ = at.Close() // nothing was written through it
		if err != nil {
			return nil, "", err
		}
		at = next
	}
	return at, base, nil
}

// stepDown goes down one directory and makes sure that it is the one that was seen, not one behind
// a link put there meanwhile.
func stepDown(at *os.Root, part string) (*os.Root, error) {
	seen, err := at.Lstat(part)
	if err != nil {
		return nil, err
	}
	switch {
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, errSwapped
	case !seen.IsDir():
		return nil, regie.Errorf(regie.CodeNotADirectory, "%s is not a directory", part)
	}
	// The dot makes the system insist on a directory: a FIFO put there meanwhile would be waited
	// on.
	next, err := at.OpenRoot(part + "/.")
	if err != nil {
		now, failed := at.Lstat(part)
		if failed != nil || !os.SameFile(seen, now) || errors.Is(err, syscall.ELOOP) ||
			errors.Is(err, syscall.ENOTDIR) {
			return nil, errSwapped
		}
		return nil, err
	}
	got, err := next.Stat(".")
	if err == nil && os.SameFile(seen, got) {
		return next, nil
	}
	_ = next.Close() // nothing was written through it
	return nil, errSwapped
}
