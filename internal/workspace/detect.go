package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/regie-run/regie"
)

// Detect finds the workspace that a directory belongs to (spec 8.1): upward to a .regie directory, else the git root, else the
// directory itself; foundBy is "regie", "git" or "directory". A workspace at the home directory or at / is refused unless here
// says that it is meant (decision 32).
func Detect(dir, home string, here bool) (root, foundBy string, err error) {
	dir, err = filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", "", explain(err, dir)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", "", explain(err, dir)
	}
	if !info.IsDir() {
		return "", "", regie.Errorf(regie.CodeNotADirectory, "%s is not a directory", dir)
	}
	root, foundBy = dir, "directory"
	for _, mark := range [...]struct{ name, by string }{{".regie", "regie"}, {".git", "git"}} {
		if at, ok := upward(dir, mark.name); ok {
			root, foundBy = at, mark.by
			break
		}
	}
	if resolved, err := filepath.EvalSymlinks(home); err == nil {
		home = resolved
	}
	if !here && (root == filepath.Dir(root) || root == home) {
		return "", "", regie.Errorf(regie.CodePathProtected, "the workspace would be %s: go into a project's directory, or say that you mean it with --here", root)
	}
	return root, foundBy, nil
}

func upward(dir, name string) (string, bool) {
	for {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return dir, err == nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", false
		}
		dir = above
	}
}
