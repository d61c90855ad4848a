package gitconfig

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Bounds of reading configuration.
const (
	maxFile   = 1 << 20
	maxFiles  = 300 // of one repository
	maxDeep   = 10  // as git includes
	maxPlaces = 1000
	maxLinks  = 40
	maxHooks  = 200
)

// hookNames are git's hooks, for a workspace that is itself the hooks directory.
var hookNames = []string{
	"applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-post-changelist", "p4-pre-submit",
	"p4-prepare-changelist", "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge",
	"post-receive", "post-rewrite", "post-update", "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit",
	"pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg", "proc-receive", "push-to-checkout",
	"reference-transaction", "sendemail-validate", "update",
}

// Places are the places below root, an absolute path without links, that git runs or believes
// because its configuration or a link names them: as paths in root, of files and of directories
// with all that is in them, whether they are there or not. trees are directories, absolute, in
// which work is done: each has a .git, or is a repository itself. Those around root count without
// being named, and so do the settings of the user and of the system. What always runs something,
// such as .git/hooks, is not among them.
func Places(root string, trees ...string) []string {
	f := &finder{root: root, read: map[string]bool{}}
	f.home, _ = os.UserHomeDir() // without one nothing begins with a tilde
	all := slices.Clone(trees)
	for dir := root; ; dir = filepath.Dir(dir) {
		all = append(all, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, dir := range all {
		f.repository(dir)
	}
	f.bases = slices.DeleteFunc(all, func(dir string) bool {
		return dir != root &&
			len(Directories(filepath.Join(dir, ".git"))) == 0
	})
	for _, path := range f.settings() {
		f.files = 0
		clear(f.read) // a file of the repository may be one of these too, and says more here
		f.config(path)
	}
	slices.Sort(f.found)
	return slices.Compact(f.found)
}

// settings are the files with the settings of the system and of the user: of two that say something
// the last one holds.
func (f *finder) settings() []string {
	system, user := systemFiles, f.global()
	if file := os.Getenv("GIT_CONFIG_SYSTEM"); file != "" {
		system = []string{file}
	}
	if file := os.Getenv("GIT_CONFIG_GLOBAL"); file != "" {
		user = []string{file}
	}
	return absolutes(slices.Concat(system, user))
}

// systemFiles are where git's packages have the settings of the system.
var systemFiles = []string{"/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig"}

// global are the files that hold the user's.
func (f *finder) global() (out []string) {
	if dir := userDirectory(f.home); dir != "" {
		out = append(out, filepath.Join(dir, "config"))
	}
	if f.home != "" {
		out = append(out, filepath.Join(f.home, ".gitconfig"))
	}
	return out
}

// userDirectory returns git's directory for the user's configuration; empty if unknown.
func userDirectory(home string) string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "git")
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".config", "git")
}

func absolutes(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !filepath.IsAbs(name) })
}

// finder looks for them.
type finder struct {
	root, home string
	bases      []string // what paths of hooks and programs are relative to
	own        []string // what lies where git has it anyhow
	read       map[string]bool
	sure       bool // conditions of includes are taken as not met, instead of as met
	files      int
	found      []string
}

// repository reads the configuration of a work tree's repository.
func (f *finder) repository(dir string) {
	dirs := Directories(filepath.Join(dir, ".git"))
	if len(dirs) == 0 {
		if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
			return
		}
		dirs = []string{dir}
	}
	f.bases, f.own, f.files = []string{dir}, nil, 0
	for _, git := range dirs {
		f.own = append(f.own, filepath.Join(git, "config"), filepath.Join(git, "config.worktree"),
			filepath.Join(git, "hooks"))
	}
	for _, git := range dirs {
		for _, name := range []string{"config", "config.worktree"} {
			parse(contents(filepath.Join(git, name)), func(key, value string) {
				if key == "core.worktree" && value != "" {
					f.bases = append(f.bases, absolute(value, git))
				}
			})
		}
	}
	clear(f.read)
	for _, git := range dirs {
		f.config(filepath.Join(git, "config"))
		f.config(filepath.Join(git, "config.worktree"))
		f.hooks(filepath.Join(git, "hooks"))
	}
}

const include = "include.path"

// conditional reports whether a variable includes a file under a condition.
func conditional(key string) bool {
	return strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")
}

// config notes a configuration file and the files that it names.
func (f *finder) config(path string) {
	f.note(path)
	f.walk(path, 0, func(path, key, value string) {
		switch {
		case value == "" || key == "core.worktree" || plainKeys.MatchString(key) || strings.HasPrefix(key, "alias.") && value[0] != '!':
		case key == include || conditional(key):
			f.note(f.expanded(value, filepath.Dir(path)))
		case key == "core.hookspath":
			for _, base := range f.bases {
				f.hooks(f.expanded(value, base))
			}
		default: // in any other use git may run what it names
			f.command(value)
		}
	})
}

// walk calls each for the variables of a configuration file and of the files that it includes, in
// git's order.
func (f *finder) walk(path string, depth int, each func(path, key, value string)) {
	if depth > maxDeep || f.files >= maxFiles || f.read[path] {
		return
	}
	f.read[path] = true
	f.files++
	parse(contents(path), func(key, value string) {
		each(path, key, value)
		if value != "" && (key == include || conditional(key) && !f.sure) {
			f.walk(f.expanded(value, filepath.Dir(path)), depth+1, each)
		}
	})
}

// hooks notes a directory of hooks and the targets of links in it. Husky's directory, called _,
// runs the files of its parent.
func (f *finder) hooks(dir string) {
	if filepath.Base(dir) == "_" {
		f.hooks(filepath.Dir(dir))
	}
	if at := f.note(dir); at == f.root {
		for _, name := range hookNames {
			f.note(filepath.Join(dir, name))
		}
	}
	list, err := os.Open(dir)
	if err != nil {
		return
	}
	defer func() { _ = list.Close() }() // it was only read
	entries, _ := list.ReadDir(maxHooks)
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink != 0 {
			f.note(filepath.Join(dir, entry.Name()))
		}
	}
}

// command notes the programs of a command that lie in the workspace.
func (f *finder) command(command string) {
	for _, base := range f.bases {
		is := func(word string) (file, directory bool) {
			info, err := os.Stat(f.expanded(word, base))
			return err == nil && !info.IsDir(), err == nil && info.IsDir()
		}
		for _, word := range programs(command, func(word string) bool { file, _ := is(word); return file }) {
			if _, directory := is(word); !directory {
				f.note(f.expanded(word, base))
			}
		}
	}
}

// note records a place and the links that lead to it within the workspace, and returns the resolved
// path.
func (f *finder) note(name string) (at string) {
	add := func(path string) {
		relative, err := filepath.Rel(f.root, path)
		if err == nil && filepath.IsLocal(relative) && relative != "." &&
			!slices.Contains(f.own, path) && len(f.found) < maxPlaces {
			f.found = append(f.found, filepath.ToSlash(relative))
		}
	}
	at = filepath.VolumeName(name) + string(filepath.Separator)
	for todo, links := elements(name[len(filepath.VolumeName(name)):]), 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		next := filepath.Join(at, part) // .. goes up from where a link has led
		target, err := os.Readlink(next)
		if err != nil || part == ".." {
			at = next
			continue
		}
		add(next)
		if links++; links > maxLinks {
			return next
		}
		if filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(filepath.VolumeName(target)):]
		}
		todo = append(elements(target), todo...)
	}
	add(at)
	return at
}

// elements are the names of a path.
func elements(name string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(name), "/"),
		func(part string) bool { return part == "" || part == "." })
}

// expanded returns the absolute path of a value.
func (f *finder) expanded(value, base string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok && f.home != "" {
		return f.home + "/" + rest
	}
	return absolute(value, base)
}

// absolute does not clean the path: a part of it may be a link.
func absolute(name, from string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return from + string(filepath.Separator) + name
}

// contents returns the content of a small regular file; nil if it cannot be opened.
func contents(path string) []byte {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, _ := io.ReadAll(io.LimitReader(f, maxFile)) // what was read until then counts
	return data
}

// Directories returns the directories that a .git leads to, with links resolved: the one of this
// work tree, and the one that it shares with others.
func Directories(git string) []string {
	info, err := os.Lstat(git)
	if err != nil {
		return nil
	}
	dir := git
	if info.Mode().IsRegular() {
		name, ok := strings.CutPrefix(Line(git), "gitdir: ")
		if !ok {
			return nil
		}
		dir = absolute(name, filepath.Dir(git))
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil
	}
	out := []string{dir}
	if shared := Line(filepath.Join(dir, "commondir")); shared != "" {
		if shared, err = filepath.EvalSymlinks(absolute(shared, dir)); err == nil {
			out = append(out, shared)
		}
	}
	return out
}

// Line returns the first line of a small file; empty if there is no such file.
func Line(path string) string {
	first, _, _ := strings.Cut(string(contents(path)), "\n")
	return strings.TrimSpace(first)
}
