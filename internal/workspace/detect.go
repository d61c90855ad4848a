package workspace

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/regie-run/regie"
)

// How a workspace was found (spec 8.1).
const (
	FoundByRegie     = "regie"     // by a .regie directory
	FoundByGit       = "git"       // by the root of a git work tree
	FoundByDirectory = "directory" // it is the directory itself
)

// Detect finds the workspace that a directory belongs to (spec 8.1): upward to a .regie directory, else the git root, else the
// directory itself; foundBy says which. Marks in the home directory or above it do not count for the directories below, because many
// people keep their settings in git there. A workspace at the home directory, above it, or at / is refused with CodePathProtected
// unless here says that it is meant (decision 32). Else Detect returns the codes of Open.
func Detect(dir, home string, here bool) (root, foundBy string, err error) {
	if strings.IndexByte(dir, 0) >= 0 {
		return "", "", regie.Errorf(regie.CodePathInvalid, "the directory's path holds a NUL character")
	}
	dir, err = filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // so that a workspace has one name
	}
	if err != nil {
		return "", "", (&Root{}).explain(err, dir)
	}
	confined, err := Open(dir)
	if err != nil {
		return "", "", err
	}
	_ = confined.Close() // it was only to see that it is a directory
	if resolved, err := filepath.EvalSymlinks(home); err == nil && home != "" {
		home = resolved
	}
	root, foundBy = dir, FoundByDirectory
	if at, ok := upward(dir, home, isRegie); ok {
		root, foundBy = at, FoundByRegie
	} else if at, ok := upward(dir, home, isGit); ok {
		root, foundBy = at, FoundByGit
	}
	if tooWide(root, home) && !here {
		return "", "", regie.Errorf(regie.CodePathProtected, "the workspace would be %s: go into a project's directory, or say that you mean it with --here", root)
	}
	return root, foundBy, nil
}

func isRegie(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, ".regie"))
	return err == nil && info.IsDir()
}

// isGit finds a repository's directory, and the file that stands for it in a linked work tree.
func isGit(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ".git"))
	return err == nil
}

// Versioned reports whether a file, by its resolved path, lies in a directory that version control watches: git, Jujutsu, Mercurial or
// Subversion, found upward and outside the workspace too. As with Detect, marks in the home directory or above it do not count.
// Whether the file itself is watched is not asked.
func (r *Root) Versioned(resolved string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	if there, err := filepath.EvalSymlinks(home); err == nil {
		home = there
	}
	_, found := upward(filepath.Join(filepath.FromSlash(r.dir), filepath.FromSlash(path.Dir(resolved))), home, func(dir string) bool {
		for _, mark := range []string{".git", ".jj", ".hg", ".svn"} {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				return true
			}
		}
		return false
	})
	return found
}

// tooWide reports whether a workspace there would give an agent everything that a person has.
func tooWide(dir, home string) bool {
	return dir == filepath.Dir(dir) || home != "" && (dir == home || strings.HasPrefix(home, dir+string(filepath.Separator)))
}

// upward looks for a marked directory from dir to the top, leaving out those that are too wide unless they are dir itself.
func upward(dir, home string, marked func(string) bool) (string, bool) {
	for at := dir; ; at = filepath.Dir(at) {
		if at != dir && tooWide(at, home) {
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
