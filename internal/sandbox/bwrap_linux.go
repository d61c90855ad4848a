package sandbox

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// helperPath is where this program lies inside bubblewrap.
// Older versions of bubblewrap cannot give it another name than its path.
const helperPath = "/run/" + watchName

// tempSize bounds each of the temporary file systems of one command, in bytes: they are memory.
const tempSize = 2 << 30

// findBwrap looks for bubblewrap in the places of the system and in PATH. A program that others than root could have put there is not taken.
func (s *Sandbox) findBwrap() string {
	places := []string{s.config.Bwrap}
	if s.config.Bwrap == "" {
		places = []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"}
		if path, err := exec.LookPath("bwrap"); err == nil && filepath.IsAbs(path) {
			places = append(places, path)
		}
	}
	for _, path := range places {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o022 != 0 || info.Mode()&0o111 == 0 {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid == 0 {
			return path
		}
	}
	return ""
}

// bwrapArgs are bubblewrap's arguments, up to the program that it runs. Later ones lie upon earlier ones.
func (s *Sandbox) bwrapArgs(c *Command, who identity, helper string, env []string, n *nests) []string {
	home := s.insideHome()
	args := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--new-session", "--as-pid-1", "--cap-drop", "ALL",
	}
	if !s.config.Network {
		args = append(args, "--unshare-net")
	}
	if who.namespace {
		id := strconv.Itoa(insideID)
		args = append(args, "--uid", id, "--gid", id)
	}
	size := strconv.Itoa(tempSize)
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/tmp", "--size", size, "--tmpfs", "/var/tmp")
	if home != "/tmp" {
		args = append(args, "--size", size, "--tmpfs", home)
	}
	readable := s.readable(c.Root, who, env)
	for _, path := range readable {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&fs.ModeSymlink != 0 && slices.Contains(systemDirs, path):
			if target, err := os.Readlink(path); err == nil {
				args = append(args, "--symlink", target, path)
			}
		default:
			args = append(args, "--ro-bind-try", path, path)
		}
	}
	args = append(args, "--bind", c.Root, c.Root)
	args = append(append(args, guardArgs(c.Root)...), n.guardArgs()...)
	for _, path := range s.masked(who) {
		visible := within(path, c.Root) || slices.ContainsFunc(readable, func(dir string) bool { return within(path, dir) })
		if info, err := os.Lstat(path); err != nil || !visible {
			continue
		} else if info.IsDir() {
			args = append(args, "--tmpfs", path, "--remount-ro", path)
		} else if info.Mode()&fs.ModeSymlink == 0 {
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	args = append(args, "--ro-bind", helper, helperPath, "--remount-ro", "/", "--chdir", "/")
	return append(args, "--", helperPath)
}

// insideHome is what the home directory is for a command: an empty one of its own.
func (s *Sandbox) insideHome() string {
	home := s.config.Home
	if home == "" || home == "/" || !filepath.IsAbs(home) || slices.ContainsFunc(systemDirs, func(dir string) bool { return within(home, dir) }) {
		return "/tmp"
	}
	return home
}

// guardArgs keep what runs programs outside the sandbox from being written: the hooks and the configuration of git, and what people write for Regie.
// Of a repository in which these are links, or are not there and could be made, nothing may be written.
func guardArgs(root string) (args []string) {
	if _, err := os.Lstat(filepath.Join(root, ".regie")); err == nil {
		args = append(args, "--ro-bind", filepath.Join(root, ".regie"), filepath.Join(root, ".regie"))
	}
	return append(args, guardRepository(filepath.Join(root, ".git"))...)
}

func guardRepository(git string) (args []string) {
	readOnly := func(path string) {
		if _, err := os.Lstat(path); err == nil {
			args = append(args, "--ro-bind", path, path)
		}
	}
	info, err := os.Lstat(git)
	if err != nil {
		return args
	}
	hooks, hooksErr := os.Lstat(filepath.Join(git, "hooks"))
	config, configErr := os.Lstat(filepath.Join(git, "config"))
	if !info.IsDir() || hooksErr != nil || configErr != nil || !hooks.IsDir() || !config.Mode().IsRegular() {
		readOnly(git)
		return args
	}
	args = append(args, "--bind", git, git) // a place of its own, so that it cannot be renamed
	for _, name := range gitRuns {
		readOnly(filepath.Join(git, name))
	}
	return args
}

// bwrapRules are Landlock's inside bubblewrap, which shows nothing that may not be read: they say a second time what may be written.
func (s *Sandbox) bwrapRules(root string) []rule {
	return []rule{
		{"/", accessRead},
		{root, accessWrite},
		{"/tmp", accessWrite},
		{"/var/tmp", accessWrite},
		{s.insideHome(), accessWrite},
		{"/dev", accessDevice},
		{"/dev/shm", accessWrite},
	}
}

// traps are the names that make git or Regie run or believe something, in a workspace that has none of that name.
var traps = []string{".git", ".regie"}

// untrapped are those of the traps that are not there, and what configuration names and is not there.
func (n *nests) untrapped() (out []string) {
	names := slices.Clone(traps)
	for _, name := range gitTraps {
		names = append(names, filepath.Join(".git", name))
	}
	root := n.root
	for _, name := range slices.Concat(names, n.named) {
		if _, err := os.Lstat(filepath.Join(root, name)); err != nil {
			out = append(out, name)
		}
	}
	return out
}

// disarm moves away what a command has made of them: whoever works here next would run what it says. Nothing of the command is alive any more.
func disarm(root string, absent []string) (out []Moved) {
	for _, name := range absent {
		from := filepath.Join(root, name)
		if _, err := os.Lstat(from); err != nil {
			continue
		}
		dir, base := filepath.Split(name)
		for n := 1; n < 1000; n++ {
			to := dir + strings.TrimPrefix(base, ".") + ".made-by-command-" + strconv.Itoa(n)
			if _, err := os.Lstat(filepath.Join(root, to)); err == nil {
				continue
			}
			if os.Rename(from, filepath.Join(root, to)) == nil {
				out = append(out, Moved{name, to})
				out = append(out, beheaded(root, name, to)...)
			}
			break
		}
	}
	return out
}

// beheaded keeps a repository that was moved away from being one under its new name.
func beheaded(root, was, dir string) []Moved {
	var has parts
	entries, _ := os.ReadDir(filepath.Join(root, dir)) // none where it is no directory
	for _, entry := range entries {
		has.see(entry.Name())
	}
	from, to := filepath.Join(dir, "HEAD"), filepath.Join(dir, "HEAD.made-by-command")
	if !has.repository() || os.Rename(filepath.Join(root, from), filepath.Join(root, to)) != nil {
		return nil
	}
	return []Moved{{filepath.Join(was, "HEAD"), to}}
}
