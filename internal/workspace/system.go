package workspace

import (
	"path/filepath"
	"slices"
	"strings"
)

// System directories need here to become a workspace (decision 32): an agent there changes the
// machine itself or shared files. systemTrees include everything below them; people keep projects
// below the others.
var (
	systemTrees = []string{
		"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/lost+found", "/proc", "/sbin", "/sys",
		"/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/libx32", "/usr/sbin",
		"/usr/share",
		"/Library", "/System", "/private/etc", // macOS
		"/gnu/store", "/nix",
	}
	systemPlaces = []string{
		"/home", "/media", "/mnt", "/opt", "/root", "/run", "/run/media", "/run/user", "/snap", "/srv", "/tmp", "/usr",
		"/usr/local", "/usr/local/bin", "/usr/local/etc", "/usr/local/lib", "/usr/local/sbin", "/usr/local/share",
		"/usr/src", "/var", "/var/backups", "/var/cache", "/var/lib", "/var/local", "/var/log", "/var/mail", "/var/opt",
		"/var/run", "/var/spool", "/var/tmp",
		"/Applications", "/Users", "/Volumes", "/private", "/private/tmp", "/private/var", // macOS
	}
	// peoplesPlaces lie in a system's trees, and are not the system's.
	peoplesPlaces = []string{"/dev/shm"}
)

// isSystem reports whether a directory, by its resolved name, is one of the system's.
func isSystem(dir string) bool {
	for _, place := range peoplesPlaces {
		if isBelow(dir, place) && dir != place {
			return false
		}
	}
	for _, tree := range systemTrees {
		if isBelow(dir, tree) {
			return true
		}
	}
	return slices.Contains(systemPlaces, dir)
}

// isBelow reports whether a directory is another one or lies in it; both are absolute and clean.
func isBelow(dir, top string) bool {
	rest, ok := strings.CutPrefix(dir, top)
	return ok && (rest == "" || rest[0] == filepath.Separator)
}
