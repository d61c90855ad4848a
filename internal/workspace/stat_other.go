//go:build !unix

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/regie-run/regie"
)

// openNow has no meaning here.
const openNow = 0

func links(fs.FileInfo) uint64 { return 1 }

// inode is not known here.
func inode(fs.FileInfo) (number uint64, owner uint32, known bool) { return 0, 0, false }

// identity tells a file from others and from itself after a change.
func identity(info fs.FileInfo) regie.Hash {
	return regie.HashOf(fmt.Appendf(nil, "file %s %d %d", info.Name(), info.Size(), info.ModTime().UnixNano()))
}

func giveAway(*os.File, *os.Root) {}

func giveDirAway(_, _ *os.Root) {}

func keepOwner(*os.File, fs.FileInfo) {}

// moveOut cannot move a file out of an open directory here: it is copied.
func moveOut(*os.Root, string, string) error { return errors.ErrUnsupported }
