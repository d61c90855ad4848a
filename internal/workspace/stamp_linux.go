package workspace

import "golang.org/x/sys/unix"

func stampOf(stat *unix.Stat_t) Stamp {
	return Stamp{Size: stat.Size, Mtime: stat.Mtim.Nano(), Ctime: stat.Ctim.Nano(), Ino: stat.Ino, Dev: stat.Dev}
}
