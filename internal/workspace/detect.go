package workspace

import (
	"cmp"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/gitconfig"
)

// How a workspace was found (spec 8.1).
const (
	FoundByRegie     = "regie"     // by a .regie directory
	FoundByGit       = "git"       // by the root of a git work tree
	FoundByDirectory = "directory" // it is the directory itself
)

// Detect finds the workspace of a directory (spec 8.1): the nearest .regie directory above, else
// the git root, else the directory itself; foundBy says which. It ignores marks in the home
// directory or above it, because many people keep their settings in git there. It also ignores
// marks of other users, such as in /tmp. It returns CodePathProtected for a workspace at the home
// directory, above it, at / or at a system directory, unless here is true (decision 32). Other
// errors are those of Open.
func Detect(dir, home string, here bool) (root, foundBy string, err error) {
	if strings.IndexByte(dir, 0) >= 0 {
		return "", "", regie.Errorf(regie.CodePathInvalid, "the directory's path contains a NUL character")
	}
	named, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(named) // so that a workspace has one name
	}
	if err != nil {
		return "", "", (&Root{}).explainError(err, cmp.Or(named, dir))
	}
	confined, err := Open(dir)
	if err != nil {
		return "", "", err
	}
	_ = confined.Close() // it was only to see that it is a directory
	homes := homesOf(home)
	root, foundBy = dir, FoundByDirectory
	if at, ok := findUpward(dir, homes, ownedMarks(dir, isRegie)); ok {
		root, foundBy = at, FoundByRegie
	} else if at, ok := findUpward(dir, homes, ownedMarks(dir, isGit)); ok {
		root, foundBy = at, FoundByGit
	}
	if err := homes.refuseRoot(root, here); err != nil {
		return "", "", err
	}
	return root, foundBy, nil
}

// Settled checks that Detect could have found a directory as a workspace: its name is resolved, and
// it is not too wide unless here is true. It returns CodePathInvalid, CodePathProtected and the
// codes of Open.
func Settled(root, home string, here bool) error {
	confined, err := Open(root)
	if err != nil {
		return err
	}
	_ = confined.Close() // it was only to see that it is a directory
	if resolved, err := filepath.EvalSymlinks(root); err != nil || resolved != root {
		return regie.Errorf(regie.CodePathInvalid,
			"%s is an alias of a directory: give the workspace's real path", root)
	}
	return homesOf(home).refuseRoot(root, here)
}

// refuseRoot refuses a workspace that is too wide or the system's, unless here says that it is
// meant.
func (h homes) refuseRoot(root string, here bool) error {
	if here || !h.tooWide(root) && !isSystem(root) {
		return nil
	}
	return regie.Errorf(regie.CodePathProtected,
		"the workspace would be %s: change to a project's directory, or confirm it with --here", root)
}

// isRegie finds a .regie directory. It ignores a link to a directory elsewhere.
func isRegie(dir string) (fs.FileInfo, bool) {
	info, err := os.Lstat(filepath.Join(dir, ".regie"))
	return info, err == nil && info.IsDir()
}

// isGit finds a .git directory, or the .git file of a linked work tree or a submodule.
func isGit(dir string) (fs.FileInfo, bool) {
	name := filepath.Join(dir, ".git")
	info, err := os.Stat(name)
	return info, err == nil && (info.IsDir() || strings.HasPrefix(gitconfig.Line(name), "gitdir:"))
}

// ownedMarks takes of the marks above a directory those that its owner, this program's user or root
// has put there.
func ownedMarks(dir string, marked func(string) (fs.FileInfo, bool)) func(string) bool {
	info, err := os.Stat(dir)
	return func(at string) bool {
		mark, ok := marked(at)
		if !ok || err != nil {
			return ok
		}
		by := statOf(mark).Uid
		return by == statOf(info).Uid || by == 0 || int(by) == os.Geteuid()
	}
}

// homes are the directories that are too wide for a workspace: a person's home, by the environment
// and by the system's own list, and all above. They are compared as files, because a name may be
// written in several ways.
type homes []fs.FileInfo

func homesOf(home string) (out homes) {
	names := []string{home}
	if u, err := user.Current(); err == nil {
		names = append(names, u.HomeDir)
	}
	for _, name := range names {
		resolved, err := filepath.EvalSymlinks(name)
		if err != nil || !filepath.IsAbs(resolved) {
			continue
		}
		for at := resolved; ; at = filepath.Dir(at) {
			if info, err := os.Stat(at); err == nil {
				out = append(out, info)
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return out
}

// tooWide reports whether a workspace there would give an agent everything that a person has.
func (h homes) tooWide(dir string) bool {
	if dir == filepath.Dir(dir) {
		return true
	}
	info, err := os.Stat(dir)
	return err == nil && slices.ContainsFunc(h, func(home fs.FileInfo) bool { return os.SameFile(home, info) })
}

// findUpward looks for a marked directory from dir to the top, leaving out those that are too wide
// unless they are dir itself.
func findUpward(dir string, h homes, marked func(string) bool) (string, bool) {
	for at := dir; ; at = filepath.Dir(at) {
		if at != dir && h.tooWide(at) {
			return "", false
		}
		if marked(at) {
			return at, true
		}
		if at == filepath.Dir(at) {
			return "", false
		}
	}
}
