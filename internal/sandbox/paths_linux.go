package sandbox

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/gitconfig"
)

// systemDirs hold the parts of programs. Other top directories, such as /home, /root, /var, /srv
// and /run, stay hidden from commands: they belong to people and servers.
var systemDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
	"/etc", "/opt", "/nix", "/gnu",
}

// keptByOwner are the system directories that may hold files for root alone. If a command runs with
// the rights of root's files, they are searched for such files.
var keptByOwner = []string{"/etc", "/opt"}

// toolDirs are the parts of a home directory that commands see: programs and libraries, but not the
// files with keys next to them.
var toolDirs = []string{
	"go/bin", "go/pkg", "sdk", ".cargo/bin", ".cargo/registry", ".cargo/git", ".rustup", ".pyenv", ".nvm", ".local/bin",
	".local/lib", ".local/share/uv",
	".local/share/mise", ".local/share/pnpm", ".asdf/shims", ".asdf/installs", ".asdf/bin", ".rbenv", ".volta/bin",
	".volta/tools", ".bun/bin", ".deno/bin", ".sdkman/candidates",
	".dotnet", "bin",
}

// nameService are the files for name lookup, needed with a network.
var nameService = []string{"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf"}

// identityFor returns the identity of commands in a workspace. If Regie runs as root, they run as
// the workspace's owner. If the owner is root too, they keep access to root's files, but no other
// right of root, in a user namespace.
func identityFor(root string) (identity, error) {
	if syscall.Geteuid() != 0 {
		return identity{}, nil
	}
	info, err := os.Stat(root)
	if err != nil {
		return identity{}, regie.Errorf(regie.CodeFileNotFound, "the workspace %s cannot be looked at: %v", root, err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return identity{namespace: true}, nil
	}
	return identity{uid: int(owner.Uid), gid: int(owner.Gid)}, nil
}

// unfitOwner says why commands cannot be given to the owner of a workspace.
func (s *Sandbox) unfitOwner(root string, tier Tier) error {
	who, err := identityFor(root)
	if err == nil && who.namespace && tier == Landlock && !canUnshare() {
		err = regie.Errorf(regie.CodeNoSandbox,
			"regie runs as root, and without user namespaces commands in root's workspace would be root too")
	}
	return err
}

// readablePaths returns the paths outside the workspace that commands may read.
func (s *Sandbox) readablePaths(root string, who identity, env []string) []string {
	out := slices.Clone(systemDirs)
	add := func(path string) {
		covered := slices.ContainsFunc(out, func(dir string) bool { return isWithin(path, dir) })
		wide := s.config.Home != "" && isWithin(s.config.Home, path) || isWithin(root, path) ||
			path == "/tmp" || path == "/var/tmp"
		if !covered && !wide && filepath.IsAbs(path) && !s.isHidden(path) && who.canReach(path) {
			out = append(out, filepath.Clean(path))
		}
	}
	if s.config.Home != "" {
		for _, dir := range toolDirs {
			add(filepath.Join(s.config.Home, dir))
		}
	}
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, "PATH="); ok {
			for _, dir := range filepath.SplitList(value) {
				add(dir)
			}
		}
	}
	for _, path := range s.config.Read {
		add(path)
	}
	for _, dir := range linkedDirs(root) {
		add(dir)
	}
	if s.config.Network {
		out = append(out, nameService...)
	}
	return out
}

// canReach reports whether commands that run as another user than root can reach a path.
func (who identity) canReach(path string) bool {
	if who.uid == 0 {
		return true
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// isHidden reports whether a path is, or lies in, a place that no command may read.
func (s *Sandbox) isHidden(path string) bool {
	return slices.ContainsFunc(s.config.Hidden, func(h string) bool { return isWithin(path, h) })
}

// maskedPaths returns the closed paths in readable directories: hidden ones, and, for commands with
// access to root's files, those for root alone.
func (s *Sandbox) maskedPaths(who identity) []string {
	out := slices.Clone(s.config.Hidden)
	if !who.namespace {
		return out
	}
	for _, dir := range keptByOwner {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Type()&fs.ModeSymlink != 0 {
				return nil //nolint:nilerr // what cannot be looked at cannot be read by a command either
			}
			info, err := entry.Info()
			if err != nil {
				return nil //nolint:nilerr // it is gone
			}
			if entry.IsDir() && info.Mode()&0o005 != 0o005 {
				out = append(out, path)
				return fs.SkipDir
			}
			if !entry.IsDir() && info.Mode()&0o004 == 0 {
				out = append(out, path)
			}
			return nil
		})
	}
	return out
}

// rulesAround returns rules that open a directory except its holes. A directory with a hole is
// opened name by name, so commands cannot create entries directly in it.
func rulesAround(dir string, holes []string, a access) []rule {
	if slices.ContainsFunc(holes, func(h string) bool { return isWithin(dir, h) }) {
		return nil
	}
	if !slices.ContainsFunc(holes, func(h string) bool { return isWithin(h, dir) }) {
		return []rule{{dir, a}}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	out := []rule{{dir, accessList}}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case entry.Type()&fs.ModeSymlink != 0: // what it leads to has rules of its own
		case entry.IsDir():
			out = append(out, rulesAround(path, holes, a)...)
		case !slices.Contains(holes, path):
			out = append(out, rule{path, a})
		}
	}
	return out
}

// devices are those that every program may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// processFiles are what commands see of /proc without a process namespace: the machine, and
// themselves.
var processFiles = []string{
	"/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/uptime", "/proc/loadavg",
	"/proc/filesystems", "/proc/sys/kernel/osrelease",
	"/proc/sys/kernel/ostype", "/proc/sys/kernel/pid_max", "/proc/sys/kernel/cap_last_cap",
	"/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count", "/proc/sys/fs/pipe-max-size",
	"/proc/sys/kernel/ngroups_max",
	"/proc/sys/kernel/random",
}

func absolutePath(name, from string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(from, name)
}

// linkedDirs returns the directories outside a workspace that git needs if it is a linked work
// tree: its part of the main repository, and that repository. The repository must name this
// workspace as its own. Otherwise a file in the workspace could expose any directory to commands.
func linkedDirs(root string) []string {
	git := filepath.Join(root, ".git")
	dirs := gitconfig.Directories(git)
	info, err := os.Lstat(git)
	if len(dirs) != 2 || err != nil || !info.Mode().IsRegular() ||
		filepath.Dir(dirs[0]) != filepath.Join(dirs[1], "worktrees") {
		return nil
	}
	back, err := os.Stat(absolutePath(cmp.Or(gitconfig.Line(filepath.Join(dirs[0], "gitdir")), "."), dirs[0]))
	if err != nil || !os.SameFile(back, info) {
		return nil
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dirs[1], name)); err != nil {
			return nil
		}
	}
	return dirs
}

// landlockRules returns the rules of the tier Landlock. A rule cannot restrict another one, so the
// whole workspace is writable except parts not searched for repositories. The guard restores what
// git and Regie run.
func (s *Sandbox) landlockRules(n *nests, temp string, who identity, env []string) []rule {
	root := n.root
	var out []rule
	holes := s.maskedPaths(who)
	for _, dir := range s.readablePaths(root, who, env) {
		out = append(out, rulesAround(dir, holes, accessRead)...)
	}
	holes = slices.Clone(s.config.Hidden)
	for _, name := range n.closed {
		path := filepath.Join(root, name)
		out = append(out, rulesAround(path, s.config.Hidden, accessRead)...)
		holes = append(holes, path)
	}
	out = append(out, rulesAround(root, holes, accessWrite)...)
	out = append(out, rule{temp, accessWrite})
	for _, path := range devices {
		out = append(out, rule{path, accessDevice})
	}
	for _, path := range processFiles {
		out = append(out, rule{path, accessRead})
	}
	return out
}
