package sandbox

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// helperPath is the path of this program inside bubblewrap. Older versions of bubblewrap cannot
// start it under another name.
const helperPath = "/run/" + watchName

// tempSize bounds each of the temporary file systems of one command, in bytes: they are memory.
const tempSize = 2 << 30

// findBwrap looks for bubblewrap in the places of the system and in PATH. A program that others
// than root could have put there is not taken.
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

// bwrapArgs returns bubblewrap's arguments, up to the program that it runs. Later ones lie upon
// earlier ones.
func (s *Sandbox) bwrapArgs(c *Command, who identity, helper string, env []string, n *nests) []string {
	home := s.insideHome()
	args := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--new-session",
		"--as-pid-1", "--cap-drop", "ALL",
	}
	if !s.config.Network {
		args = append(args, "--unshare-net")
	}
	if who.namespace {
		id := strconv.Itoa(insideID)
		args = append(args, "--uid", id, "--gid", id)
	}
	size := strconv.Itoa(tempSize)
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--size", size, "--tmpfs", "/tmp",
		"--size", size, "--tmpfs", "/var/tmp")
	if home != "/tmp" {
		args = append(args, "--size", size, "--tmpfs", home)
	}
	readable := s.readablePaths(c.Root, who, env)
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
	args = append(args, n.guardArgs(c.ReadOnlyGit)...)
	for _, path := range slices.Concat(s.maskedPaths(who), c.Hidden) {
		visible := isWithin(path, c.Root) || slices.ContainsFunc(readable,
			func(dir string) bool { return isWithin(path, dir) })
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

// insideHome returns the command's home directory, its own and empty.
func (s *Sandbox) insideHome() string {
	home := s.config.Home
	if home == "" || home == "/" || !filepath.IsAbs(home) || slices.ContainsFunc(systemDirs,
		func(dir string) bool { return isWithin(home, dir) }) {
		return "/tmp"
	}
	return home
}

// guardArgs mounts read-only what git and Regie run or trust. A git directory is a mount point, so
// a command cannot rename it. A link stays unmounted: the guard restores it, and its target has its
// own mount. With wholeGit the command writes nothing in git directories.
func (n *nests) guardArgs(wholeGit bool) (args []string) {
	readOnly := func(name string) {
		path := filepath.Join(n.root, name)
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			args = append(args, "--ro-bind", path, path)
		}
	}
	for _, name := range n.closed {
		readOnly(name)
	}
	for _, git := range n.gits { // sorted: what lies in a read-only directory is opened after it
		path := filepath.Join(n.root, git)
		if wholeGit && git != "." {
			readOnly(git)
			continue
		}
		if git != "." {
			args = append(args, "--bind", path, path)
		}
		entries, _ := os.ReadDir(path) // what cannot be read cannot be written either
		for _, entry := range entries {
			if isProtected(git, entry.Name()) {
				readOnly(filepath.Join(git, entry.Name()))
			}
		}
	}
	for _, name := range n.marks {
		if !slices.Contains(n.gits, name) {
			readOnly(name)
		}
	}
	for _, name := range n.named {
		readOnly(name)
	}
	return args
}

// bwrapRules returns Landlock's inside bubblewrap, which shows nothing that may not be read: they
// say a second time what may be written.
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
