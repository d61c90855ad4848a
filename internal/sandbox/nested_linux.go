package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxDirectories bounds how many directories of a workspace are looked through for repositories below its own.
const maxDirectories = 20_000

// nested are the repositories, and the settings of Regie, below the top of a workspace: the paths of .git and .regie in it. git looks into those that
// lie in a repository by itself, and a person who works in one of them runs what it says.
func nested(root string) (out []string) {
	seen := 0
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read a command cannot reach either
		}
		if entry.IsDir() {
			if seen++; seen > maxDirectories {
				return filepath.SkipAll
			}
		}
		if name := entry.Name(); name != ".git" && name != ".regie" {
			return nil
		}
		if filepath.Dir(path) != root {
			if relative, err := filepath.Rel(root, path); err == nil {
				out = append(out, relative)
			}
		}
		if entry.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
	return out
}

// described are those paths with what the system says of them.
func described(root string, names []string) []fs.FileInfo {
	var out []fs.FileInfo
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil {
			out = append(out, info)
		}
	}
	return out
}

// appeared are those that were not there before a command. One whose directory was renamed was.
func appeared(root string, before []fs.FileInfo) (out []string) {
	for _, name := range nested(root) {
		info, err := os.Lstat(filepath.Join(root, name))
		if err == nil && !slices.ContainsFunc(before, func(old fs.FileInfo) bool { return os.SameFile(old, info) }) {
			out = append(out, name)
		}
	}
	return out
}

// guardNested are guardArgs for what lies below the top. A link is left as it is: nothing can be put in its place.
func guardNested(root string) (args []string) {
	for _, name := range nested(root) {
		path := filepath.Join(root, name)
		info, err := os.Lstat(path)
		switch {
		case err != nil || info.Mode()&fs.ModeSymlink != 0:
		case filepath.Base(path) == ".git":
			args = append(args, guardRepository(path)...)
		default:
			args = append(args, "--ro-bind", path, path)
		}
	}
	return args
}
