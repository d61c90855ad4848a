//go:build unix && !linux

package workspace

import "golang.org/x/sys/unix"

func stampOf(stat *unix.Stat_t) Stamp {
	return Stamp{
		Size: stat.Size, Mtime: stat.Mtim.Nano(), Ctime: stat.Ctim.Nano(), Ino: uint64(stat.Ino),
		Dev: uint64(stat.Dev),
	} //nolint:unconvert // they differ by system
}

// lookAt describes an entry of a directory, of a link the link itself.
func lookAt(dir int, name string) (found, error) { return statAt(dir, name) }
